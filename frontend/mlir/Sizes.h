//===- Sizes.h - what ops require of sizes -----------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_MLIR_SIZES_H
#define ATTN_FRONTEND_MLIR_SIZES_H

#include "frontend/mlir/FunctionSizes.h"

namespace attn {

/// Requires in every call of a function what its ops require of sizes:
///  * Sizes that must be equal get one symbol, if two of them are symbols. The range of a symbol is narrowed if it must be
///    a number, or if a slice would otherwise lie outside its tensor. The runtime checks both.
///  * Any other equation or inequality becomes a condition, which the runtime checks too.
/// Fails
///  * if the file itself names the symbols (`namedByFile`), but gives different names to sizes that must be equal;
///  * if no call meets a requirement, such as x.0 + 1 == x.0;
///  * if a requirement has a size that does not follow from the sizes of the arguments.
mlir::LogicalResult requireSizes(FunctionSizes &sizes, bool namedByFile);

} // namespace attn

#endif // ATTN_FRONTEND_MLIR_SIZES_H
