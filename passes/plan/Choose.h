//===- Choose.h - which schedule and tiles an attention gets -----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Decisions as pure functions of (target values, shape): no IR, so that a table can test them and a report can
// print them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_CHOOSE_H
#define ATTN_PASSES_PLAN_CHOOSE_H

#include "dialect/Attn.h"

namespace attn {

/// Sizes of an attention; ShapedType::kDynamic where known at the call only.
struct AttentionShape {
  int64_t queries, keys;
};

/// The tiles of an attention on a target.
PlanAttr choosePlan(TargetAttr target, AttentionShape shape, Schedule schedule);

/// The width of the panels that `columns` columns of a weight are packed into; divides `columns`.
int64_t choosePanelWidth(TargetAttr target, int64_t columns);

} // namespace attn

#endif // ATTN_PASSES_PLAN_CHOOSE_H
