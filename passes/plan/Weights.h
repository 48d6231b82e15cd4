//===- Weights.h - values that depend on weights only ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_WEIGHTS_H
#define ATTN_PASSES_PLAN_WEIGHTS_H

#include "mlir/IR/Value.h"

namespace attn {

/// Whether `value` is a weight of its function, or pure ops compute it from weights alone.
bool dependsOnWeightsOnly(mlir::Value value);

} // namespace attn

#endif // ATTN_PASSES_PLAN_WEIGHTS_H
