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

/// All candidate plans for `shape`, the best first. Tries only `schedules`, or all if it is empty.
llvm::SmallVector<Prediction> predictPlans(CpuAttr cpu, const AttentionShape &shape,
                                           llvm::ArrayRef<Schedule> schedules = {});

/// The width of the panels that `columns` columns of a weight are packed into; divides `columns`.
int64_t choosePanelWidth(CpuAttr cpu, int64_t columns);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_CHOOSE_H
