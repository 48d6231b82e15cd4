//===- Types.h - which tensors can be compiled -------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_CHECKS_TYPES_H
#define ATTN_FRONTEND_CHECKS_TYPES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// Checks that attn supports all element types in `function`, and that each argument and result fits into the address
/// space. The arguments and results must have names.
mlir::LogicalResult verifyTypes(mlir::func::FuncOp function);

} // namespace attn

#endif // ATTN_FRONTEND_CHECKS_TYPES_H
