//===- Describe.h - print the content of a library --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_DESCRIBE_H
#define ATTN_TOOLS_DESCRIBE_H

#include "codegen/emit/Interface.h"

#include "llvm/Support/raw_ostream.h"

namespace attn {

/// Writes the signature, the levels, the sizes and the report of `function`. `level` is the level at which the function
/// runs here. If it is empty, no level runs here, and the best level is described.
void describeFunction(const FunctionInfo &function, llvm::StringRef level, llvm::raw_ostream &out);

} // namespace attn

#endif // ATTN_TOOLS_DESCRIBE_H
