//===- Choose.h - the tiles of attentions on GPUs ------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_CHOOSE_H
#define ATTN_CODEGEN_GPU_CHOOSE_H

#include "passes/plan/Planner.h"

namespace attn {

llvm::SmallVector<Prediction> predictPlans(GpuAttr gpu, const AttentionShape &shape,
                                           std::optional<Schedule> only);
double predictPlan(GpuAttr gpu, const AttentionShape &shape, PlanAttr plan);

/// The part of a product that one warp computes: rows, and matrices of 8 columns as its vectors.
BlockAttr planBlock(GpuAttr gpu, const ProductShape &shape);
TaskSize planTask(GpuAttr gpu, const ProductShape &shape, BlockAttr block);

/// Whether a warp has registers for the accumulators of `block`, in whole matrices.
bool hasRegisters(BlockAttr block);

} // namespace attn

#endif // ATTN_CODEGEN_GPU_CHOOSE_H
