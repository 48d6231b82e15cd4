//===- JoinHeads.h - one product for all heads -------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_JOINHEADS_H
#define ATTN_PASSES_PLAN_JOINHEADS_H

#include "dialect/Attn.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn {

/// The product that computes `value`, directly or through the reshapes that split joined heads (JoinHeads.cpp) and join
/// the panels of packed weights (PackOperands.cpp). Null if there is none.
mlir::linalg::LinalgOp findProjection(mlir::Value value);

/// Returns the number of key heads if one product computes the keys of all heads, or if JoinHeads.cpp can rewrite the
/// query, the key and the value so that each comes from one such product. Returns 1 otherwise, or if the head size is
/// unknown or 0.
int64_t countJoinedHeads(AttentionOp op);

} // namespace attn

#endif // ATTN_PASSES_PLAN_JOINHEADS_H
