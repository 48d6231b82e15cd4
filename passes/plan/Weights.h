//===- Weights.h - values that depend on weights only ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_WEIGHTS_H
#define ATTN_PASSES_PLAN_WEIGHTS_H

#include "mlir/IR/Value.h"

namespace attn {

/// True if `value` is a weight of its function, or is computed from weights alone, by pure ops.
bool dependsOnWeightsOnly(mlir::Value value);

} // namespace attn

#endif // ATTN_PASSES_PLAN_WEIGHTS_H
