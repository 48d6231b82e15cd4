//===- Choose.h - which schedule and tiles an attention gets -----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Decisions as pure functions of (CPU, shape).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_CHOOSE_H
#define ATTN_CODEGEN_CPU_CHOOSE_H

#include "codegen/cpu/Cost.h"

namespace attn {

/// All candidate plans for `shape`, the fastest first. If `only` is set, they all have that schedule.
llvm::SmallVector<Prediction> predictPlans(CpuAttr cpu, const AttentionShape &shape,
                                           std::optional<Schedule> only = std::nullopt);

/// The predicted time of one plan, in the unit of Cost.h.
double predictPlan(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan);

/// The width of the panels that `columns` columns of a weight are packed into; divides `columns`.
int64_t choosePanelWidth(CpuAttr cpu, int64_t columns);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_CHOOSE_H
