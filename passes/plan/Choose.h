//===- Choose.h - which schedule and tiles an attention gets -----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Decisions as pure functions of (target values, shape).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_CHOOSE_H
#define ATTN_PASSES_PLAN_CHOOSE_H

#include "passes/plan/Cost.h"

namespace attn {

/// A plan and its predicted cost, in the unit of Cost.h.
struct Prediction {
  PlanAttr plan;
  double cost;
};

/// All candidate plans for `shape`, the best first. Tries only `schedules`, or all if it is empty.
llvm::SmallVector<Prediction> predictPlans(TargetAttr target, const AttentionShape &shape,
                                           llvm::ArrayRef<Schedule> schedules = {});

/// The width of the panels that `columns` columns of a weight are packed into; divides `columns`.
int64_t choosePanelWidth(TargetAttr target, int64_t columns);

} // namespace attn

#endif // ATTN_PASSES_PLAN_CHOOSE_H
