//===- OptionPages.h - manual page and shell completion ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_OPTIONPAGES_H
#define ATTN_TOOLS_OPTIONPAGES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// The options that users may set, sorted by category and name. They include rare options, which only --help-all
/// displays.
llvm::SmallVector<const llvm::cl::Option *> getVisibleOptions();

/// These functions write the registered options of `tool`: as a manual page, and as a completion for bash. `does` says
/// what the tool does.
void writeManPage(llvm::StringRef tool, llvm::StringRef does, llvm::raw_ostream &out);
void writeBashCompletion(llvm::StringRef tool, llvm::raw_ostream &out);

} // namespace attn

#endif // ATTN_TOOLS_OPTIONPAGES_H
