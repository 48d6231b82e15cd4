//===- Contraction.h - contractions on buffers, in register blocks -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_CONTRACTION_H
#define ATTN_CODEGEN_CPU_CONTRACTION_H

#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/MultiplyAdd.h"

#include "mlir/Analysis/AliasAnalysis.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn {

/// A contraction of two buffers, which may be a convolution (passes/Product.h), the instruction that computes it, and
/// the roles of its loops.
///
/// The lanes run along n, a loop that is contiguous in the output and in one input. This input is the vector operand,
/// and the other input is the scalar operand. The rows of a register block run along m, a parallel loop of the scalar
/// operand. All other parallel loops are plain loops outside the block. All reductions are loops inside the block, so
/// that the accumulators stay in registers. Each vector of the block has one accumulator or, if the sum is long and the
/// block is small, two: one for the even products and one for the odd ones.
///
/// If the instruction adds a group of products, it replaces the innermost reduction loop. The length of that loop is
/// then the size of the group, and the elements of a group are adjacent in both inputs.
struct Contraction {
  struct Roles {
    unsigned vectorInput; // 0 or 1: the input that has n
    unsigned n;
    std::optional<unsigned> m;
    llvm::SmallVector<unsigned> outer, reductions; // without the loop that the instruction covers
  };

  /// Returns `op` as a contraction. Returns none if `op` is not a sum of products of strided buffers, or if `cpu` has
  /// no instruction for its types.
  static std::optional<Contraction> match(mlir::linalg::LinalgOp op, CpuAttr cpu);

  /// Returns the register block: that of the attribute `attn.block`, or else the one chosen for `cpu`. Its depth is the
  /// length of the parts into which the sum is split, or 0 if the sum is not split. Parts are added to the output one
  /// after the other. `roles` must be set.
  BlockAttr getBlock(CpuAttr cpu) const;
  /// The length of a part of the sum in steps of the outermost reduction; none if the sum is not split.
  std::optional<int64_t> getSplit(CpuAttr cpu) const;

  /// Whether n is a loop of the input whose zeros are skipped.
  bool guardsVectors() const { return skipsZeros && roles->vectorInput == 0; }

  mlir::linalg::LinalgOp op;
  const MultiplyAdd *instruction;
  bool skipsZeros; // products whose factor in the first input is zero are not added
  std::optional<Roles> roles; // none if no loop can be n
};

/// The initial value of the sums: a scalar, or a buffer that is read through a map over the loops of the contraction.
/// The elements of a buffer are added to the sums after the last product.
struct Start {
  /// Returns the output itself as the start: products are added to the contents of the output.
  static Start ofOutput(const Contraction &contraction);

  mlir::Value value;
  mlir::AffineMap map;     // null for a scalar
  mlir::Operation *writer; // the op that stored the start to the output; null for the output itself
};

/// Finds the fill or broadcast that wrote the output before the contraction, and returns its value. Returns the output
/// itself if there is none, or if an op between the two accesses the output or changes the source of the broadcast.
Start findStart(const Contraction &contraction, mlir::AliasAnalysis &aliases);

/// The size of each loop: static if any operand has a static size for the loop.
llvm::SmallVector<mlir::OpFoldResult> getLoopSizes(mlir::OpBuilder &builder,
                                                   mlir::linalg::LinalgOp op);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_CONTRACTION_H
