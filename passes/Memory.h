//===- Memory.h - which tensors lie in the same memory -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_MEMORY_H
#define ATTN_PASSES_MEMORY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace attn {

/// A copy of `tensor` in memory of its own.
mlir::Value copyOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor);

/// The operand in whose memory a destination-style op or a loop computes `result`, or null.
mlir::OpOperand *initOf(mlir::OpResult result);

/// The operands through which ops overwrite or reshape the memory of `from`, from the first to the last, until it holds
/// `result`. Empty if `result` is in other memory, or is `from` itself.
llvm::SmallVector<mlir::OpOperand *> writesInPlace(mlir::Value from, mlir::Value result);

/// Calls `visit` for every in-out argument of `function` and the operand of its return that is written to it.
void forEachInOut(
    mlir::func::FuncOp function,
    llvm::function_ref<void(mlir::BlockArgument argument, mlir::OpOperand &result)> visit);

} // namespace attn

#endif // ATTN_PASSES_MEMORY_H
