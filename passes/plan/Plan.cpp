//===- Plan.cpp - write the plan of every attention ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(...) outs(...) {...}
// becomes
//   attn.attention ins(...) outs(...) plan(<"per-head", q = 48, k = 128>) {...}
//
// The plan is the one that the planner of the machine predicts to be fastest, among the schedules that the option
// allows. The number of threads is known only at the call, so one thread decides, and then 16 threads among the plans
// that one thread computes nearly as fast. A user who knows the number can give it in the option `workers`; plans that
// are up to 5 % slower with one thread are then considered too. The pass changes attributes only, so users can edit its
// result and resume compilation from it. An attention that has a plan keeps it. Attentions of element types other than
// f32, f16 and bf16 are refused, because there is no code generation for them.
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

/// A plan may be slower with one thread than the fastest plan by kNearly, or by kNearlyIfKnown if the user names the
/// number of threads. It is chosen if it is faster than that plan by kClearly with many threads.
static constexpr double kNearly = 0.01, kNearlyIfKnown = 0.05, kClearly = 0.02;

/// Returns one of `predictions`, which begin with the fastest one. The schedule unfused, which has scores in memory, is
/// used only if there is no other.
static PlanAttr chooseFor(PlannerInterface planner, const AttentionShape &shape,
                          ArrayRef<Prediction> predictions, int64_t workers, double tolerance) {
  auto isFused = [](const Prediction &prediction) {
    return prediction.plan.getSchedule() != Schedule::Unfused;
  };
  const Prediction *fastest = llvm::find_if(predictions, isFused);
  if (fastest == predictions.end())
    return predictions.front().plan;
  PlanAttr chosen = fastest->plan;
  std::optional<double> least = planner.predictPlanOfWorkers(shape, chosen, workers);
  for (const Prediction &other : llvm::make_filter_range(predictions, isFused)) {
    if (!least || other.cost > (1 + tolerance) * fastest->cost)
      break;
    double cost = *planner.predictPlanOfWorkers(shape, other.plan, workers);
    // A plan must be clearly faster: the predictions assume that all tasks of a loop take equally long.
    if (cost < (1 - kClearly) * *least) {
      chosen = other.plan;
      least = cost;
    }
  }
  return chosen;
}

namespace {
struct Plan : attn::impl::PlanBase<Plan> {
  using PlanBase::PlanBase;

  void runOnOperation() override {
    PlannerInterface planner = getPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    if (workers < 0) {
      getOperation().emitError() << "expected at least 0 workers, got " << int64_t(workers);
      return signalPassFailure();
    }
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
      op.setPlanAttr(chooseFor(planner, AttentionShape::get(op), predictions,
                               workers ? workers : kManyWorkers,
                               workers ? kNearlyIfKnown : kNearly));
      return WalkResult::advance();
    });
    if (planned.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
