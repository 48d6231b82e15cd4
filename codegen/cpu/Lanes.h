//===- Lanes.h - loops over vectors of exactly L lanes -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// L is the number of elements in a vector register. LLVM may scalarise vectors that are not exactly as long as a
// register, so the passes of this stage cover a dimension with full vectors of L lanes and one partial, masked vector.
// These helpers emit only the code that a size needs: no mask for a static multiple of L, and no loop for a size below
// L.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_LANES_H
#define ATTN_CODEGEN_CPU_LANES_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

namespace attn {

/// L adjacent elements along the contiguous last dimension of buffers, starting at `offset`.
struct Lanes {
  int64_t count;
  mlir::Value offset;
  /// A vector<Lxi1> that selects the lanes before the end of the dimension; null if all lanes are before it.
  mlir::Value mask;

  mlir::VectorType vectorOf(mlir::Type element) const {
    return mlir::VectorType::get(count, element);
  }

  /// Returns these lanes with `size` adjacent elements in place of each element. `size` must be a power of two.
  Lanes ofGroups(mlir::OpBuilder &builder, mlir::Location loc, int64_t size) const;

  /// Loads elements of `buffer` at `indices`, the last of which is the offset. Lanes beyond the end
  /// get the lanes of the vector `fill`, or zero without `fill`.
  mlir::Value load(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                   mlir::ValueRange indices, mlir::Value fill = {}) const;
  void store(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Value buffer,
             mlir::ValueRange indices) const;
};

/// Calls `body` to emit the code for the vectors of [0, size): inside a loop for the full vectors, and once more for
/// the partial vector. Carries values from each vector to the next and returns the last values.
using VectorBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::OpBuilder &, const Lanes &, mlir::ValueRange)>;
llvm::SmallVector<mlir::Value> forEachVector(mlir::OpBuilder &builder, mlir::Location loc,
                                             mlir::OpFoldResult size, int64_t lanes,
                                             mlir::ValueRange inits, VectorBody body);

/// Emits a loop over [begin, end) that carries values, but no loop op if the loop is known to have at most one
/// iteration. Returns the last values.
using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Value,
                                                                   mlir::ValueRange)>;
llvm::SmallVector<mlir::Value> createLoop(mlir::OpBuilder &builder, mlir::Location loc,
                                          mlir::OpFoldResult begin, mlir::OpFoldResult end,
                                          int64_t step, mlir::ValueRange inits, LoopBody body);

/// Calls `body` with groups of `unroll` indices, then with single indices for the tail of [0, size).
using UnrolledBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::OpBuilder &, llvm::ArrayRef<mlir::Value>, mlir::ValueRange)>;
llvm::SmallVector<mlir::Value> createUnrolledLoop(mlir::OpBuilder &builder, mlir::Location loc,
                                                  mlir::OpFoldResult size, int64_t unroll,
                                                  mlir::ValueRange inits, UnrolledBody body);

/// The greatest multiple of `factor` that is at most `size`. If `size` is known to be a multiple, returns
/// `size` itself, so that callers emit no code for a tail.
mlir::OpFoldResult roundDown(mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult size,
                             int64_t factor);

/// A float constant of `type`, a float type or a vector of one.
mlir::Value floatConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                          double value);

/// The constant 0 of `type`, a type of numbers or a vector of numbers.
mlir::Value zeroConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type);

/// The sum of two floats or two integers, or of each lane of two vectors.
mlir::Value createAdd(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);

/// Converts `value`, a number or a vector of numbers, to elements of the type `element`. Converts floats to a float
/// type and signed integers to an integer type.
mlir::Value createConversion(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                             mlir::Type element);

/// Whether a float, or each lane of a vector of floats, equals `constant`.
mlir::Value createIsEqual(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          double constant);

/// Whether any lane of a vector of i1 is true.
mlir::Value createAny(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lanes);

/// Returns the greater of `a` and `b`, or `b` if either is NaN. This is a single instruction if the machine's maximum
/// behaves in the same way.
mlir::Value createMax(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);

/// Combines values as a balanced tree: short chains keep the pipelines full.
mlir::Value reduceTree(llvm::ArrayRef<mlir::Value> values,
                       llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

/// The buffer that `view` is a part of.
mlir::Value getSource(mlir::Value view);

/// Whether the elements of the last dimension are adjacent.
bool isRowContiguous(mlir::MemRefType type);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_LANES_H
