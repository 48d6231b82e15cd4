//===- FusedUpdate.h - an update fused with its product ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// If a contraction computes %scores just before the update, most tiles never store a score nor search
// for a maximum. Their probabilities are relative to the reference that %max holds, and are computed
// from the accumulators of each register block before the block is stored. The sums of the tile show
// whether the reference was too small. In that case, or if there is no reference yet, the scores are
// stored and updated as OnlineToVector.cpp describes:
//
//   scf.while (%exact = any %max needs exact exponents) {
//     %scores = product, each block: %exact ? products : probabilities, tile sums
//     %again = scf.if %exact { update of stored scores; false }
//              else { %big = any (tile sums >= 2^20, or NaN); if not %big: sum += tile sums; %big }
//     scf.condition(%again)
//   }
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_FUSEDUPDATE_H
#define ATTN_CODEGEN_CPU_FUSEDUPDATE_H

#include "codegen/cpu/ScoreRegion.h"
#include "dialect/Attn.h"

#include "mlir/Analysis/AliasAnalysis.h"

namespace attn {

/// A tile whose probabilities add up to this or more is computed again with its own maximum, so that sums
/// and accumulators stay far from overflow.
inline constexpr double kBigSum = 1 << 20;

/// Lowers `op` together with the contraction that computes its scores, and erases the contraction.
/// If there is no such contraction, does nothing and returns false. `createUpdate` lowers the update
/// of stored scores.
bool createFusedUpdate(mlir::OpBuilder &builder, OnlineUpdateOp op, TargetAttr target,
                       const ScoreRegion &region, mlir::AliasAnalysis &aliases,
                       llvm::function_ref<void(mlir::OpBuilder &)> createUpdate);

/// Lowers the contraction that computes the scores of `op`, if there is one. The products then have the same bits as
/// those of the preceding update, so that the probabilities add up to 1.
void createStoredProduct(mlir::OpBuilder &builder, OnlineProbabilitiesOp op, TargetAttr target,
                         mlir::AliasAnalysis &aliases);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_FUSEDUPDATE_H
