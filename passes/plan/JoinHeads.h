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

/// The product that computes `value`, directly or, if JoinHeads.cpp has joined the heads, through a reshape. Null if
/// there is none.
mlir::linalg::LinalgOp findProjection(mlir::Value value);

/// If products for all heads compute, or can compute, the query, the key and the value, returns the number of heads of
/// keys that one product computes; otherwise returns 1.
int64_t countJoinedHeads(AttentionOp op);

} // namespace attn

#endif // ATTN_PASSES_PLAN_JOINHEADS_H
