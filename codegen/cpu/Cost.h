//===- Cost.h - how long a plan takes ----------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Pure functions of a CPU, a shape and a plan predict times. They need no IR, so that tests and the report can call
// them. The unit is the time of one multiply-add of a full vector at the peak rate of one core; only the comparison of
// plans matters.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_COST_H
#define ATTN_CODEGEN_CPU_COST_H

#include "codegen/cpu/MultiplyAdd.h"
#include "passes/plan/Planner.h"

namespace attn {

/// The time of c[rows, columns] += a[rows, depth] * b[depth, columns] in register blocks, with factors of
/// `bytesPerFactor` bytes in memory. A guarded product skips the zeros of one operand. With an epilogue, sums are not
/// split into parts, because an epilogue needs complete sums.
double predictProduct(CpuAttr cpu, const MultiplyAdd &instruction, int64_t bytesPerFactor,
                      int64_t rows, int64_t columns, int64_t depth, bool isGuarded = false,
                      bool hasEpilogue = false);

/// `cost` plus the part of the time to move `bytes` from and to memory that the computation does not hide.
double addTraffic(CpuAttr cpu, double cost, double bytes);

/// The number of keys that the first `queries` queries need. A mask that depends on the values of an input is assumed
/// to hide no key.
int64_t countKeys(mlir::MLIRContext *context, const AttentionShape &shape, int64_t queries);

/// The time to round queries, keys and values to a narrower type in a separate phase.
double predictRounding(CpuAttr cpu, const AttentionShape &shape);

/// The time of an attention and of the projections before it, with the schedule that the function is named after, the
/// tiles of `plan`, and `workers` threads that compute tasks. All tasks of one loop are assumed to take equally long.
double predictPerHead(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan, int64_t workers);
double predictPhased(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan, int64_t workers);
double predictWholeScores(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan, int64_t workers);
double predictDecode(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan, int64_t workers);
double predictUnfused(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan, int64_t workers);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_COST_H
