//===- Sizes.h - which sizes of the arguments must agree ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_SIZES_H
#define ATTN_FRONTEND_SIZES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// Gives one symbol to the dimensions of arguments that an operation requires to be equal, so that the runtime checks
/// that they are equal. Narrows the range of a dimension that must have one fixed size, or that keeps a slice inside
/// its tensor. Fails if the file itself names the symbols (`namedByFile`) and has different ones for sizes that must be
/// equal, if sizes that must be equal remain different expressions, such as x.0 + 1 and x.0, or if a slice may lie
/// outside its tensor.
mlir::LogicalResult tieSizes(mlir::func::FuncOp function, bool namedByFile);

} // namespace attn

#endif // ATTN_FRONTEND_SIZES_H
