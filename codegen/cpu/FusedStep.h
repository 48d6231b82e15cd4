//===- FusedStep.h - probabilities in register blocks -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Most steps neither store a score nor search for a maximum. They compute probabilities relative to %max, the maximum
// of previous tiles, from the accumulators of each register block before the block is stored. Afterwards, the sums of
// the tile's probabilities show whether %max was too small. If it was, the step computes the products again, stores
// them, and updates the state as OnlineToVector.cpp describes. It does so at once if %max needs exact exponents
// (Exp2.h), for example because it is still -inf:
//
//   scf.while (%exact = any %max needs exact exponents, or %grows) {
//     %scores = product, each block: %exact ? products : probabilities, tile sums
//     %again = scf.if %exact { update of stored products; %grows = any maximum grew too much; false }
//              else { %big = any (tile sums >= 2^20, or NaN); if not %big: sum += tile sums; %big }
//     scf.condition(%again)
//   }
//
// %grows is in memory, and is false at the beginning of each task. If scores grow from tile to tile, as with ALiBi,
// where they grow towards the position of the query, %grows avoids the first attempt, which would fail.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_FUSEDSTEP_H
#define ATTN_CODEGEN_CPU_FUSEDSTEP_H

#include "codegen/cpu/Contraction.h"
#include "codegen/cpu/ScoreRegion.h"
#include "dialect/Attn.h"

namespace attn {

/// A tile whose probabilities add up to this number or more is computed again with its own maximum, so that sums and
/// accumulators stay far from overflow.
inline constexpr double kBigSum = 1 << 20;

/// Whether `products`, the products K Q^T of a tile, are computed in register blocks with keys in rows and queries in
/// lanes.
bool areInRegisterBlocks(const Contraction &products);

/// Lowers the scores of `op` and the update of its state, but not the product with the values. `products` computes the
/// products K Q^T; its sums start from `zero`. `ofGroups` is the instruction for probabilities in groups, or null if
/// the probabilities replace the scores. If `ofGroups` is not null, a register block must consist of whole groups.
/// `createUpdate` lowers the update from stored products, and returns whether the sums of the tile relative to the old
/// maxima were too big.
void createFusedStep(mlir::OpBuilder &builder, OnlineStepOp op, const Contraction &products,
                     const Start &zero, CpuAttr cpu, const ScoreRegion &region,
                     const MultiplyAdd *ofGroups,
                     llvm::function_ref<mlir::Value(mlir::OpBuilder &)> createUpdate);

/// Lowers `products` and stores them. The products have the same bits as those of createFusedStep(). Probabilities that
/// are computed from them, and divided by the sums of createFusedStep(), therefore add up to 1.
void createStoredProducts(mlir::OpBuilder &builder, const Contraction &products, const Start &zero,
                          CpuAttr cpu);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_FUSEDSTEP_H
