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

/// The predicted time of `op`, an op of a function after the stage plan, with the ops inside it, in the unit of Cost.h.
/// None if it depends on a size that is known only at the call.
std::optional<double> predictOp(mlir::Operation *op, CpuAttr cpu);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_PREDICTOPS_H
