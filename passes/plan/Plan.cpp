//===- Plan.cpp - write the plan of every attention ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(...) outs(...) {...}
// becomes
//   attn.attention ins(...) outs(...) plan(<"per-head", q = 48, k = 128>) {...}
//
// The plan is the one that Cost.h predicts to be fastest, of the schedules that the option leaves.
// Attributes only: the result can be edited and compilation resumed from it. An attention that has
// a plan keeps it. Refused are tensors of other types than f32, for which there are no loops yet.
// Test: test/passes/plan/plan.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/plan/Choose.h"

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
    TargetAttr target = getTarget(getOperation());
    if (!target) {
      getOperation().emitError() << "expected '" << AttnDialect::kTargetAttr
                                 << "' on an enclosing module";
      return signalPassFailure();
    }
    // Scores go to memory only where a user says so.
    SmallVector<Schedule> choice = {Schedule::PerHead, Schedule::Phased, Schedule::WholeScores};
    if (!schedule.empty()) {
      std::optional<Schedule> given = symbolizeSchedule(schedule);
      if (!given) {
        getOperation().emitError() << "expected a schedule, got '" << schedule << "'";
        return signalPassFailure();
      }
      choice = {*given};
    }
    WalkResult planned = getOperation().walk([&](AttentionOp op) -> WalkResult {
      if (failed(verifyF32(op)))
        return WalkResult::interrupt();
      if (op.getPlan())
        return WalkResult::advance();
      op.setPlanAttr(predictPlans(target, AttentionShape::get(op), choice).front().plan);
      return WalkResult::advance();
    });
    if (planned.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
