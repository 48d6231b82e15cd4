//===- Plan.cpp - write the plan of every attention ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(...) outs(...) {...}
// becomes
//   attn.attention ins(...) outs(...) plan(<"per-head", q = 48, k = 128>) {...}
//
// The plan is the one that the planner of the machine predicts to be fastest, among the schedules that the option
// allows. The pass changes attributes only, so users can edit its result and resume compilation from it. An attention
// that has a plan keeps it. Attentions of element types other than f32, f16 and bf16 are refused, because there is no
// code generation for them.
// Test: test/passes/plan/plan.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/plan/Planner.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PLAN
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
struct Plan : attn::impl::PlanBase<Plan> {
  using PlanBase::PlanBase;

  void runOnOperation() override {
    PlannerInterface planner = getPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    std::optional<Schedule> only;
    if (!schedule.empty()) {
      only = symbolizeSchedule(schedule);
      if (!only) {
        getOperation().emitError() << "expected a schedule, got '" << schedule << "'";
        return signalPassFailure();
      }
    }
    WalkResult planned = getOperation().walk([&](AttentionOp op) -> WalkResult {
      if (failed(verifyElementTypes(op)))
        return WalkResult::interrupt();
      if (op.getPlan())
        return WalkResult::advance();
      // Only the schedule decode computes a state.
      auto among = op.getState() ? Schedule::Decode : only;
      SmallVector<Prediction> predictions = planner.predictPlans(AttentionShape::get(op), among);
      if (predictions.empty())
        return op.emitError() << "expected a schedule that the target supports, got '"
                              << stringifySchedule(*among) << "'";
      // The schedule unfused, which has scores in memory, is used only if the option names it or if there is no other.
      auto *chosen = llvm::find_if(predictions, [](const Prediction &prediction) {
        return prediction.plan.getSchedule() != Schedule::Unfused;
      });
      op.setPlanAttr((chosen == predictions.end() ? predictions.front() : *chosen).plan);
      return WalkResult::advance();
    });
    if (planned.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
