//===- Choose.h - choose the tiles of attentions on GPUs -----------*- C++ -*-===//
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

/// The block of a product that one warp computes. Its `vectors` are matrices of 8 columns.
BlockAttr planBlock(GpuAttr gpu, const ProductShape &shape);
TaskSize planTask(GpuAttr gpu, const ProductShape &shape, BlockAttr block);

/// Whether `block` consists of whole matrices, and whether a warp has enough registers for its accumulators.
bool hasRegisters(BlockAttr block);

} // namespace attn

#endif // ATTN_CODEGEN_GPU_CHOOSE_H
