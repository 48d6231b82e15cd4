//===- FillInRegion.cpp - fills of schedules that skip no tiles ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(%q, %k, %v) mask(#attn.causal) plan(<"whole-scores", ...>) {fill = -1.0e9 : f32}
// becomes
//   attn.attention ins(%q, %k, %v) plan(<"whole-scores", ...>) score {
//     ^bb0(%b, %q, %k, %s):  yield (select (%k <= %q), %s, -1.0e9) }
//
// A tile of the schedules per-head and phased on a CPU first computes the pairs that the mask keeps, and computes all
// pairs only if the row of a query needs the fill (TileKeys.cpp). Other schedules, GPUs, and attentions that return
// their probabilities compute all pairs. So do attentions whose fill is added to scores that have no known bound.
// Test: test/passes/plan/fill-in-region.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"
#include "passes/ScoreBlock.h"
#include "passes/ScoreBound.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_FILLINREGION
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Whether the tasks of `op` compare the maximum of each row with the fill.
static bool testsRows(AttentionOp op) {
  PlanAttr plan = *op.getPlan();
  return llvm::is_contained({Schedule::PerHead, Schedule::Phased}, plan.getSchedule()) &&
         plan.getStages() == 0 && !op.returnsProbabilities() && (!op.getAdded() || boundScore(op));
}

namespace {
struct FillInRegion : attn::impl::FillInRegionBase<FillInRegion> {
  void runOnOperation() override {
    getOperation().walk([&](AttentionOp op) {
      if (!op.getFill() || testsRows(op))
        return;
      OpBuilder builder(op);
      if (op.getScore().empty())
        createScoreBlock(builder, op, op.getScore());
      fillScores(builder, op, op.getScore().front());
      op.removeMaskAttr();
      op.removeFillAttr();
      op.setAdded(false);
    });
  }
};
} // namespace
