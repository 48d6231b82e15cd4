//===- Lanes.h - loops over vectors of exactly L lanes -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// LLVM scalarises vectors whose length is not a register's, so every pass of this stage covers a
// dimension by full vectors of L lanes and one partial vector, masked. These helpers emit just what
// a size needs: a static size without a remainder has no mask, a size below L no loop.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_LANES_H
#define ATTN_CODEGEN_CPU_LANES_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

namespace attn {

/// L neighbours along the contiguous last dimension of some buffers, from `offset` on.
struct Lanes {
  int64_t count;
  mlir::Value offset;
  /// Lanes below the end, vector<Lxi1>; null where all of them are.
  mlir::Value mask;

  mlir::VectorType vectorOf(mlir::Type element) const {
    return mlir::VectorType::get(count, element);
  }

  /// Elements of `buffer` at `indices`, the last of them the offset; `fill` in the lanes beyond the
  /// end, a vector, zeros unless given.
  mlir::Value load(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                   mlir::ValueRange indices, mlir::Value fill = {}) const;
  void store(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Value buffer,
             mlir::ValueRange indices) const;
};

/// Calls `body` where the vectors of [0, size) are computed: in a loop for the full ones, once for
/// the rest. Carries values from each to the next and returns the last.
using VectorBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::OpBuilder &, const Lanes &, mlir::ValueRange)>;
llvm::SmallVector<mlir::Value> forEachVector(mlir::OpBuilder &builder, mlir::Location loc,
                                             mlir::OpFoldResult size, int64_t lanes,
                                             mlir::ValueRange inits, VectorBody body);

/// A loop over [begin, end) that carries values; none where it is known to be empty. Returns the
/// last values.
using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Value,
                                                                   mlir::ValueRange)>;
llvm::SmallVector<mlir::Value> createLoop(mlir::OpBuilder &builder, mlir::Location loc,
                                          mlir::OpFoldResult begin, mlir::OpFoldResult end,
                                          int64_t step, mlir::ValueRange inits, LoopBody body);

/// Calls `body` with groups of `unroll` indices that cover [0, size), then with single ones.
using UnrolledBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::OpBuilder &, llvm::ArrayRef<mlir::Value>, mlir::ValueRange)>;
llvm::SmallVector<mlir::Value> createUnrolledLoop(mlir::OpBuilder &builder, mlir::Location loc,
                                                  mlir::OpFoldResult size, int64_t unroll,
                                                  mlir::ValueRange inits, UnrolledBody body);

/// Whether `size` is known to be a multiple of `factor`.
bool isMultiple(mlir::OpFoldResult size, int64_t factor);

/// The greatest multiple of `factor` that is at most `size`; `size` itself where it is known to be one,
/// so that no code follows for a rest.
mlir::OpFoldResult roundDown(mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult size,
                             int64_t factor);

/// A float constant of `type`, a float or a vector of them.
mlir::Value floatConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                          double value);

/// Whether a float, or which lanes of a vector of them, equal `constant`.
mlir::Value createIsEqual(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          double constant);

/// Whether any lane of a vector of i1 is true.
mlir::Value createAny(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lanes);

/// The greater of two; `b` where either is NaN, and one instruction where it is the machine's
/// maximum.
mlir::Value createMax(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);

/// Combines values as a balanced tree: short chains keep the pipelines full.
mlir::Value reduceTree(llvm::ArrayRef<mlir::Value> values,
                       llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

/// The buffer that `view` is a part of.
mlir::Value getSource(mlir::Value view);

/// Whether the elements of the last dimension are neighbours.
bool isRowContiguous(mlir::MemRefType type);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_LANES_H
