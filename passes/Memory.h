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

/// Writes the elements of `tensor` to `buffer`, which no other tensor shares.
void materialize(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor,
                 mlir::Value buffer);

/// The operand in whose memory a destination-style op or a loop computes `result`, or null.
mlir::OpOperand *initOf(mlir::OpResult result);

/// The operands of the ops that overwrite or reshape the memory of `from`, in the order of execution, until this memory
/// holds `result`. Empty if `result` is in other memory, or is `from` itself.
llvm::SmallVector<mlir::OpOperand *> writesInPlace(mlir::Value from, mlir::Value result);

/// Calls `visit` for every in-out argument of `function`, with the operand of the return that is written to the
/// argument.
void forEachInOut(
    mlir::func::FuncOp function,
    llvm::function_ref<void(mlir::BlockArgument argument, mlir::OpOperand &result)> visit);

} // namespace attn

#endif // ATTN_PASSES_MEMORY_H
