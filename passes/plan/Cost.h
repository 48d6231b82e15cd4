//===- Cost.h - how long a plan takes ----------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Predictions as pure functions of (target values, shape, plan): no IR, so that a table can test them and a report can
// print them. The unit is the time of one multiply-add of a full vector at the peak rate of one core; only the
// comparison of plans matters.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_COST_H
#define ATTN_PASSES_PLAN_COST_H

#include "dialect/Attn.h"

namespace attn {

/// Sizes of an attention. A size that is known only at the call counts as `kTypicalSize`.
struct AttentionShape {
  static constexpr int64_t kTypicalSize = 1024;

  /// The shape of `op`; `depth` comes from the products that compute its operands.
  static AttentionShape get(AttentionOp op);

  int64_t heads = 1;  // batch items times heads, of keys and values
  int64_t groups = 1; // heads of queries for each of these
  int64_t queries = 1, keys = 1;
  int64_t d = 1, e = 1;  // head sizes of queries and keys, and of values
  int64_t depth = 0;     // length of the sums of the projections before; 0: none
  bool knowsKeys = true; // whether the number of keys is known before the call
  bool hasRegion = false;
  MaskInterface mask;
  unsigned numBatch = 0; // batch coordinates of the mask
};

/// c[rows, columns] += a[rows, depth] * b[depth, columns] in register blocks. A guarded product skips the zeros of one
/// operand; an epilogue needs the complete sums.
double predictProduct(TargetAttr target, int64_t rows, int64_t columns, int64_t depth,
                      bool isGuarded = false, bool hasEpilogue = false);

/// The time of an attention with the projections before it.
double predictAttention(TargetAttr target, const AttentionShape &shape, PlanAttr plan);

} // namespace attn

#endif // ATTN_PASSES_PLAN_COST_H
