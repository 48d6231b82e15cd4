//===- PredictOps.h - how long the ops of a graph take -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_PREDICTOPS_H
#define ATTN_CODEGEN_CPU_PREDICTOPS_H

#include "dialect/Attn.h"

#include <optional>

namespace attn {

/// The predicted time of `op` with the ops inside it, in the unit of Cost.h. The attentions in `op` must have plans.
/// None if the time depends on a size that is known only at the call.
std::optional<double> predictOp(mlir::Operation *op, CpuAttr cpu);

/// The number of iterations of `op` if it is a loop, and 1 for any other op. None if the number depends on a size that
/// is known only at the call.
std::optional<double> countIterations(mlir::Operation *op);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_PREDICTOPS_H
