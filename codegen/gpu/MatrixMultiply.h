//===- MatrixMultiply.h - multiply matrices with one warp ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The lanes of a warp hold a matrix together. Lane l, with g = l / 4 and t = l % 4, holds these elements of a 16 x 8
// accumulator, in this order: (g, 2t), (g, 2t + 1), (g + 8, 2t) and (g + 8, 2t + 1). The PTX manual (mma.m16n8k16,
// mma.m16n8k8) says which lane holds which elements of the factors.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_MATRIXMULTIPLY_H
#define ATTN_CODEGEN_GPU_MATRIXMULTIPLY_H

#include "codegen/gpu/Threads.h"

namespace attn {

/// The rows and the columns of an accumulator.
inline constexpr int64_t kMatrixRows = 16, kMatrixColumns = 8;

/// The elements of an accumulator that one lane holds.
using Accumulator = std::array<mlir::Value, 4>;

/// The registers in which one lane holds its elements of a factor.
using Factor = llvm::SmallVector<mlir::Value, 4>;

/// Multiplies matrices of one element type and adds the products to sums of f32. Each number of an f32 factor is split
/// into two numbers of tf32. Of the four products of two split numbers, the three greatest are added. The relative
/// error of the product of two numbers is then at most 2^-19.
class MatrixMultiply {
public:
  /// Returns none if no instruction multiplies matrices of `element`.
  static std::optional<MatrixMultiply> get(mlir::Type element);

  /// The number of products that one instruction adds to each sum.
  int64_t depth() const { return 2 * chunk(); }
  /// The number of elements in 16 bytes, which ldmatrix reads at once and cp.async copies at once.
  int64_t chunk() const { return 128 / element.getIntOrFloatBitWidth(); }

  /// The left factor, 16 x depth, at (row, column) of `tile`, which is in shared memory.
  Factor loadLeft(ThreadBuilder &b, mlir::Value tile, mlir::Value row, int64_t column) const;
  /// Two right factors, depth x 8 each, whose columns are the 16 rows of `tile` that begin at `row`.
  std::array<Factor, 2> loadRight(ThreadBuilder &b, mlir::Value tile, mlir::Value row,
                                  int64_t column) const;
  /// Two right factors, depth x 8 each: element (i, j) is element (row + i, column + j) of `tile`. For f32, toLeft()
  /// permutes the columns of left factors, and loadLeft() does not; `isBesideLoaded` is true if the left factor comes
  /// from loadLeft().
  std::array<Factor, 2> loadRightRows(ThreadBuilder &b, mlir::Value tile, mlir::Value row,
                                      mlir::Value column, bool isBesideLoaded) const;
  /// The left factors of a product that sums over the columns of `accumulators`, rounded to the element type.
  llvm::SmallVector<Factor> toLeft(ThreadBuilder &b,
                                   llvm::ArrayRef<Accumulator> accumulators) const;

  /// Adds left * right to `sums`.
  void multiply(ThreadBuilder &b, const Factor &left, const Factor &right, Accumulator &sums) const;

private:
  explicit MatrixMultiply(mlir::Type element) : element(element) {}
  std::array<Factor, 2> loadMatrices(ThreadBuilder &b, mlir::Value tile, mlir::Value row,
                                     mlir::Value column, bool transposes) const;
  mlir::Value toRegister(ThreadBuilder &b, mlir::Value value) const;

  mlir::Type element;
};

} // namespace attn

#endif // ATTN_CODEGEN_GPU_MATRIXMULTIPLY_H
