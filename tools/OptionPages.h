//===- OptionPages.h - what others show of a tool's options -----*- C++ -*-===//
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

/// The options that --help shows, in its order.
llvm::SmallVector<const llvm::cl::Option *> getVisibleOptions();

/// From the registered options of `tool`, which `does` something.
void writeManPage(llvm::StringRef tool, llvm::StringRef does, llvm::raw_ostream &out);
void writeBashCompletion(llvm::StringRef tool, llvm::raw_ostream &out);

} // namespace attn

#endif // ATTN_TOOLS_OPTIONPAGES_H
