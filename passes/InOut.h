//===- InOut.h - arguments that a function writes to -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_INOUT_H
#define ATTN_PASSES_INOUT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// The operands through which ops write over the memory of `from` or reshape it, from the first to the last, until it
/// holds `result`. Empty if `result` lies elsewhere, or is the same value.
llvm::SmallVector<mlir::OpOperand *> writesInPlace(mlir::Value from, mlir::Value result);

/// Calls `visit` for every in-out argument of `function` and the operand of its return that is written to it.
void forEachInOut(
    mlir::func::FuncOp function,
    llvm::function_ref<void(mlir::BlockArgument argument, mlir::OpOperand &result)> visit);

} // namespace attn

#endif // ATTN_PASSES_INOUT_H
