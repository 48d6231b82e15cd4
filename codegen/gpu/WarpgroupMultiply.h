//===- WarpgroupMultiply.h - multiply matrices with four warps ----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// wgmma, an instruction of sm_90a, multiplies a left matrix of 64 rows by a right matrix in shared memory; four warps
// execute it together. Each warp holds 16 rows of the result, in the layout of the accumulators of mma.sync
// (MatrixMultiply.h). The left matrix is in shared memory, or in registers in the layout of the left factor of
// mma.sync.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_WARPGROUPMULTIPLY_H
#define ATTN_CODEGEN_GPU_WARPGROUPMULTIPLY_H

#include "codegen/gpu/MatrixMultiply.h"

namespace attn {

/// The number of warps of a warpgroup, the number of rows that they multiply, and the largest number of columns of one
/// instruction.
inline constexpr int64_t kWarpgroupWarps = 4, kWarpgroupRows = 64, kWarpgroupColumns = 256;

/// Whether products of `element` use wgmma in a block of `warps` warps, each of which computes `rows` rows and
/// `columns` columns.
bool multipliesByWarpgroups(GpuAttr gpu, mlir::Type element, int64_t warps, int64_t rows,
                            int64_t columns);

/// The registers of a thread of the producers, which copy tiles for `warpgroups` other warpgroups (ProduceTiles.cpp),
/// and of a thread of these others.
///
/// All threads of a block start with the same number of registers, and setmaxnreg only moves registers between its
/// warpgroups. If the warpgroups ask for more than that, the kernel never ends (deadlock). The threads of a block of three
/// warpgroups start with 168 registers, the most that the multiprocessor has for each; a producer then keeps 40, and a
/// thread of the other two warpgroups gets 232. With four warpgroups, 128 become 32 and 160. Two warpgroups keep the
/// registers with which they start.
int64_t countProducerRegisters(int64_t warpgroups);
int64_t countConsumerRegisters(int64_t warpgroups);

/// The number of warps of a task that computes a product, and the number of rows in which these warps are arranged.
inline constexpr int64_t kWarpsOfProduct = 4;
inline int64_t rowsOfWarps(bool isByWarpgroups) {
  return isByWarpgroups ? kWarpgroupWarps : kWarpsOfProduct / 2;
}

class WarpgroupMultiply {
public:
  explicit WarpgroupMultiply(mlir::Type element) : element(element) {}

  /// The number of products that one instruction adds to each sum.
  static constexpr int64_t kDepth = 16;

  /// Descriptions of factors. The rows of the swizzled `tile`, from `row` on, are rows of the left matrix or columns of
  /// the right matrix. Each group of 16 columns, among the first `depth` columns of the tile, is one factor.
  Factor describeRows(ThreadBuilder &b, mlir::Value tile, mlir::Value row, int64_t depth) const;
  /// Descriptions of factors. The rows of the swizzled `tile` are rows of the right matrix. Each group of 16 rows,
  /// among the first `depth` rows, is one factor.
  Factor describeColumns(ThreadBuilder &b, mlir::Value tile, int64_t depth) const;

  /// Whether the columns of the right matrix are rows or columns of its tile.
  enum class Right { Rows, Columns };

  /// Adds the product of each left factor and the right factor with the same number to `sums`, the accumulators of a
  /// warp. With `clears`, the sums start from 0. The left factors are results of describeRows().
  void multiply(ThreadBuilder &b, const Factor &left, const Factor &right, Right order, bool clears,
                llvm::MutableArrayRef<Accumulator> sums) const;
  /// Adds the products as above, with left factors in registers.
  void multiply(ThreadBuilder &b, llvm::ArrayRef<Factor> left, const Factor &right, Right order,
                llvm::MutableArrayRef<Accumulator> sums) const;

  /// Like multiply(), but these functions only start the products. `sums`, and factors in registers, must not be used
  /// before wait().
  void start(ThreadBuilder &b, const Factor &left, const Factor &right, Right order, bool clears,
             llvm::MutableArrayRef<Accumulator> sums) const;
  void start(ThreadBuilder &b, llvm::ArrayRef<Factor> left, const Factor &right, Right order,
             llvm::MutableArrayRef<Accumulator> sums) const;
  /// Waits until the products of all calls of start() are complete, except those of the last `running` calls. `sums`
  /// can then be used.
  static void wait(ThreadBuilder &b, int64_t running, llvm::MutableArrayRef<Accumulator> sums);

private:
  mlir::Value describe(ThreadBuilder &b, mlir::Value tile, mlir::Value offset) const;

  mlir::Type element;
};

/// Makes the writes of this thread to shared memory, and those that it has waited for, visible to wgmma.
void showToWarpgroups(ThreadBuilder &b);

} // namespace attn

#endif // ATTN_CODEGEN_GPU_WARPGROUPMULTIPLY_H
