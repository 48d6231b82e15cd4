//===- Sizes.h - which sizes of the arguments must agree ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_SIZES_H
#define ATTN_FRONTEND_SIZES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// Finds the dimensions of arguments that must be equal because an operation requires it, and gives them one symbol.
/// The runtime then checks that they are equal. Narrows the range of a dimension if an operation requires one fixed
/// size, or if a slice would otherwise lie outside its tensor. Fails
///  * if the file itself names the symbols (`namedByFile`), but gives different names to sizes that must be equal;
///  * if sizes that must be equal remain different expressions, such as x.0 + 1 and x.0;
///  * if an operation requires a size outside the range that the file gives;
///  * if a slice may lie outside its tensor, and narrowing the range of one symbol does not prevent this.
mlir::LogicalResult tieSizes(mlir::func::FuncOp function, bool namedByFile);

} // namespace attn

#endif // ATTN_FRONTEND_SIZES_H
