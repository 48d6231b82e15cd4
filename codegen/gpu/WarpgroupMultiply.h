//===- WarpgroupMultiply.h - products of matrices of four warps ---*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// wgmma, an instruction of sm_90a, multiplies a left matrix of 64 rows by a right matrix in shared memory; four warps
// execute it together. Each warp holds 16 rows of the result, in the layout of the accumulators of mma.sync
// (MatrixMultiply.h). The left matrix is in shared memory, or in registers in the layout of the left factor of mma.sync.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_WARPGROUPMULTIPLY_H
#define ATTN_CODEGEN_GPU_WARPGROUPMULTIPLY_H

#include "codegen/gpu/MatrixMultiply.h"

namespace attn {

/// The warps of a warpgroup, the rows that they multiply, and the most columns of one instruction.
inline constexpr int64_t kWarpgroupWarps = 4, kWarpgroupRows = 64, kWarpgroupColumns = 256;

/// Whether products of `element` in a block of `warps` warps, with `rows` rows and `columns` columns each, use wgmma.
bool multipliesByWarpgroups(GpuAttr gpu, mlir::Type element, int64_t warps, int64_t rows,
                            int64_t columns);

/// The warps of a task of a product, and how many of them are above each other.
inline constexpr int64_t kWarpsOfProduct = 4;
inline int64_t rowsOfWarps(bool isByWarpgroups) {
  return isByWarpgroups ? kWarpgroupWarps : kWarpsOfProduct / 2;
}

class WarpgroupMultiply {
public:
  explicit WarpgroupMultiply(mlir::Type element) : element(element) {}

  /// The products that one instruction adds to each sum.
  static constexpr int64_t kDepth = 16;

  /// Factors whose rows, from `row` of the swizzled `tile` on, are rows of the left matrix or columns of the right one. There
  /// is one for each 16 of the first `depth` columns of the tile.
  Factor describeRows(ThreadBuilder &b, mlir::Value tile, mlir::Value row, int64_t depth) const;
  /// Factors whose rows, each 16 of the first `depth` rows of the swizzled `tile`, are rows of the right matrix.
  Factor describeColumns(ThreadBuilder &b, mlir::Value tile, int64_t depth) const;

  /// The columns of `right` are rows or columns of its tile.
  enum class Right { Rows, Columns };

  /// Adds the products of all pairs of factors to `sums`, the accumulators of a warp; `clears` starts from 0. The left
  /// factors are descriptions of rows.
  void multiply(ThreadBuilder &b, const Factor &left, const Factor &right, Right order, bool clears,
                llvm::MutableArrayRef<Accumulator> sums) const;
  /// Adds the products as above, with left factors in registers.
  void multiply(ThreadBuilder &b, llvm::ArrayRef<Factor> left, const Factor &right, Right order,
                llvm::MutableArrayRef<Accumulator> sums) const;

  /// These only start the products. `sums`, and factors in registers, must not be used before wait().
  void start(ThreadBuilder &b, const Factor &left, const Factor &right, Right order, bool clears,
             llvm::MutableArrayRef<Accumulator> sums) const;
  void start(ThreadBuilder &b, llvm::ArrayRef<Factor> left, const Factor &right, Right order,
             llvm::MutableArrayRef<Accumulator> sums) const;
  /// Waits until at most the last `running` of the products that this warp started run. `sums` are ready then.
  static void wait(ThreadBuilder &b, int64_t running, llvm::MutableArrayRef<Accumulator> sums);

private:
  mlir::Value describe(ThreadBuilder &b, mlir::Value tile, mlir::Value offset) const;

  mlir::Type element;
};

/// Makes what this thread wrote to shared memory, or knows to be written, visible to wgmma.
void showToWarpgroups(ThreadBuilder &b);

} // namespace attn

#endif // ATTN_CODEGEN_GPU_WARPGROUPMULTIPLY_H
