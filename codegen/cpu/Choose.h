//===- Choose.h - which schedule and tiles an attention gets -----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The decisions about schedules, tiles and panels, as functions without side effects.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_CHOOSE_H
#define ATTN_CODEGEN_CPU_CHOOSE_H

#include "codegen/cpu/Cost.h"

namespace attn {

/// All candidate plans for `shape`, the fastest first. If `only` is set, all plans have that schedule.
llvm::SmallVector<Prediction> predictPlans(CpuAttr cpu, const AttentionShape &shape,
                                           std::optional<Schedule> only = std::nullopt);

/// The predicted time of one plan with `workers` threads, in the unit of Cost.h.
double predictPlan(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan, int64_t workers = 1);

/// The panels that a weight is packed into for a product.
Panel choosePanel(CpuAttr cpu, const ProductShape &shape);

/// Returns the part of a product or a convolution that one task computes. Tasks have about equally many rows, enough to
/// be worth the cost of a task. The elements of these rows take at most half of L2, unless a task would then have too few
/// rows for each panel that it reads. A task computes a part of the columns if the right operand is not in panels, takes
/// more than half of L2, and has rows of more than 4096 bytes. If `block` is not null, the rows are whole blocks.
TaskSize planTask(CpuAttr cpu, const ProductShape &shape, BlockAttr block);

/// The next two functions implement the methods of PlannerInterface that have the same names (passes/plan/Planner.td).
bool multipliesFaster(CpuAttr cpu, mlir::Type type, int64_t depth);
bool isFasterRounded(CpuAttr cpu, const AttentionShape &shape, mlir::Type type,
                     std::optional<Schedule> only);

/// Whether `graph` compiles to the same code for both CPUs. It does if they differ only in capabilities for products,
/// and none of these capabilities is for an element type of `graph` or for the type to which its products round their
/// factors.
bool makesSameCode(CpuAttr cpu, CpuAttr other, mlir::ModuleOp graph);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_CHOOSE_H
