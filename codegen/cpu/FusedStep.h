//===- FusedStep.h - probabilities in register blocks -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Most steps never store a score nor search for a maximum. Their probabilities are relative to the reference that
// %max holds, and are computed from the accumulators of each register block before the block is stored. The sums of
// the tile show whether the reference was too small. In that case, or if there is no reference yet, the products are
// stored and updated as OnlineToVector.cpp describes:
//
//   scf.while (%exact = any %max needs exact exponents) {
//     %scores = product, each block: %exact ? products : probabilities, tile sums
//     %again = scf.if %exact { update of stored products; false }
//              else { %big = any (tile sums >= 2^20, or NaN); if not %big: sum += tile sums; %big }
//     scf.condition(%again)
//   }
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
/// products of the scores, which start from zero. `createUpdate` lowers the update from stored products.
void createFusedStep(mlir::OpBuilder &builder, OnlineStepOp op, const Contraction &products,
                     const Start &zero, TargetAttr target, const ScoreRegion &region,
                     llvm::function_ref<void(mlir::OpBuilder &)> createUpdate);

/// Lowers `products` and stores them. They have the same bits as the products of createFusedStep(), so that
/// probabilities that are computed from both add up to 1.
void createStoredProducts(mlir::OpBuilder &builder, const Contraction &products, const Start &zero,
                          TargetAttr target);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_FUSEDSTEP_H
