//===- Sizes.h - which sizes of the arguments must agree ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_SIZES_H
#define ATTN_FRONTEND_SIZES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// Gives dimensions of arguments that an operation needs equal one symbol, which the runtime then
/// checks, and a dimension that must have one size the range of that size. In a function that named
/// its symbols itself, and where sizes are needed equal that no symbol can tie, this is an error.
mlir::LogicalResult tieSizes(mlir::func::FuncOp function, bool namedByFile);

} // namespace attn

#endif // ATTN_FRONTEND_SIZES_H
