//===- FusedStep.h - probabilities in register blocks -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Most steps never store a score nor search for a maximum. Their probabilities are relative to the reference that
// %max holds, and are computed from the accumulators of each register block before the block is stored. The sums of
// the tile show whether the reference was too small. In that case, or if there is no reference yet, the products are
// stored and updated as OnlineToVector.cpp describes:
//
//   scf.while (%exact = any %max needs exact exponents, or %grows) {
//     %scores = product, each block: %exact ? products : probabilities, tile sums
//     %again = scf.if %exact { update of stored products; %grows = any maximum grew too much; false }
//              else { %big = any (tile sums >= 2^20, or NaN); if not %big: sum += tile sums; %big }
//     scf.condition(%again)
//   }
//
// %grows is in memory and begins as false in each task. Where scores grow from tile to tile, as with ALiBi on the way to
// the query's own position, it saves the first attempt.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_FUSEDSTEP_H
#define ATTN_CODEGEN_CPU_FUSEDSTEP_H

#include "codegen/cpu/Contraction.h"
#include "codegen/cpu/ScoreRegion.h"
#include "dialect/Attn.h"

namespace attn {

/// A tile whose probabilities add up to this or more is computed again with its own maximum, so that sums
/// and accumulators stay far from overflow.
inline constexpr double kBigSum = 1 << 20;

/// Whether `products`, the products K Q^T of a tile, are computed in register blocks with keys in rows and queries in
/// lanes.
bool areInRegisterBlocks(const Contraction &products);

/// Lowers the scores of `op` and the update of its state, but not the product with the values. `products` are the
/// products of the scores, which start from zero. `ofGroups` is the instruction for probabilities in groups, or null if
/// they replace the scores. With it, register blocks have whole groups of rows. `createUpdate` lowers the update from
/// stored products, and returns whether the sums of the tile relative to the old maxima were too big.
void createFusedStep(mlir::OpBuilder &builder, OnlineStepOp op, const Contraction &products,
                     const Start &zero, CpuAttr cpu, const ScoreRegion &region,
                     const MultiplyAdd *ofGroups,
                     llvm::function_ref<mlir::Value(mlir::OpBuilder &)> createUpdate);

/// Lowers `products` and stores them. They have the same bits as the products of createFusedStep(), so that
/// probabilities that are computed from both add up to 1.
void createStoredProducts(mlir::OpBuilder &builder, const Contraction &products, const Start &zero,
                          CpuAttr cpu);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_FUSEDSTEP_H
