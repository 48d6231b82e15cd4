//===- Describe.h - what a library holds, for people ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_DESCRIBE_H
#define ATTN_TOOLS_DESCRIBE_H

#include "codegen/emit/Interface.h"

#include "llvm/Support/raw_ostream.h"

namespace attn {

/// Writes the signature of `function`, its levels, sizes and report. `level` is the one that runs
/// here, or empty: none does, and the best is described.
void describeFunction(const FunctionInfo &function, llvm::StringRef level, llvm::raw_ostream &out);

} // namespace attn

#endif // ATTN_TOOLS_DESCRIBE_H
