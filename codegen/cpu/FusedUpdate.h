//===- FusedUpdate.h - an update that takes its product in ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Where a contraction computes %scores just before, most tiles never store a score nor look for a
// maximum: weights are relative to the reference that %max holds, and are made of the accumulators of
// each register block before those are stored. The sums of the tile tell whether the reference was too
// small; then, and where there is none yet, scores are stored and updated as OnlineToVector.cpp
// says:
//
//   scf.while (%exact = any %max needs exact exponents) {
//     %scores = product, each block: %exact ? itself : weights, tile sums
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

/// A tile whose weights add up to more is done again with its own maximum: sums and accumulators stay
/// far from overflow.
inline constexpr double kBigSum = 1 << 20;

/// Lowers `op` together with the contraction that computes its scores, which is erased. Returns
/// false, having done nothing, where there is none. `createUpdate` lowers the update of scores that
/// are stored.
bool createFusedUpdate(mlir::OpBuilder &builder, OnlineUpdateOp op, TargetAttr target,
                       const ScoreRegion &region, mlir::AliasAnalysis &aliases,
                       llvm::function_ref<void(mlir::OpBuilder &)> createUpdate);

/// Lowers the contraction that computes the scores of `op`, if there is one: its products have the same bits as those
/// of the update before, so that the probabilities add up to 1.
void createStoredProduct(mlir::OpBuilder &builder, OnlineWeightsOp op, TargetAttr target,
                         mlir::AliasAnalysis &aliases);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_FUSEDUPDATE_H
