//===- Planner.h - the plans that a family of machines makes -----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The shapes that a plan depends on, without IR, so that tables can test predictions and reports can print them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_PLANNER_H
#define ATTN_PASSES_PLAN_PLANNER_H

#include "dialect/Attn.h"
#include "passes/Product.h"

#include <optional>

namespace attn {

/// Sizes of an attention. A size that is known only at the call counts as `kTypicalSize`.
struct AttentionShape {
  static constexpr int64_t kTypicalSize = 1024;

  /// The shape of `op`; `depth` comes from the products that compute its operands.
  static AttentionShape get(AttentionOp op);

  int64_t heads = 1;  // batch items times heads, of keys and values
  int64_t groups = 1; // heads of queries for each of these
  int64_t queries = 1, keys = 1;
  int64_t d = 1, e = 1;   // head sizes of queries and keys, and of values
  int64_t joined = 1;     // heads of keys that one product can compute, with all groups of queries
  int64_t depth = 0;      // length of the sums of the projections before; 0: none
  bool knowsBatch = true; // whether the numbers of heads and groups are known before the call
  bool knowsHeads = true; // whether d and e are known before the call
  bool knowsKeys = true;  // whether the number of keys is known before the call
  mlir::Type element; // of queries, keys and values; that of the scores if these have several types
  mlir::Type sum;     // the element type of scores and accumulators
  bool hasRegion = false;
  bool hasCaptures = false; // operands of masks and of the region
  bool returnsProbabilities = false;
  MaskInterface mask;
  unsigned numBatch = 0; // batch coordinates of the mask

  /// Whether one product for all heads has fewer vectors than one for each head, as a phased plan can have. Products
  /// compute columns in vectors of `lanes`.
  bool joinsHeads(int64_t lanes) const { return joined > 1 && (d % lanes != 0 || e % lanes != 0); }
};

/// What the plan of a product depends on.
struct ProductShape {
  static ProductShape get(mlir::linalg::LinalgOp product);
  /// The number of products of each sum; none if it is known only at the call, or if the sum runs over several
  /// dimensions that are not one dimension in groups.
  static std::optional<int64_t> getDepth(mlir::linalg::LinalgOp product);

  int64_t columns;              ///< of the output's rows; kDynamic for an unknown number
  std::optional<int64_t> depth; ///< length of each sum, if known
  bool skipsZeros;              ///< of one operand: attn.skips_zeros
  int64_t group;                ///< elements along the sum that are side by side in both operands
  int64_t rows;                 ///< of the output; kDynamic for an unknown number
  ProductTypes types;
};

/// How a weight is packed: into panels of `width` columns, which divides their number, with `group` elements along the
/// sum side by side, which divides the length of the sum.
struct Panel {
  int64_t width;
  int64_t group;
};

/// The part of a product that one task computes.
struct TaskSize {
  int64_t rows, columns;
};

/// Tasks of about equally many rows: whole register blocks of them, if `block` is not null, and enough work to pay for
/// a task.
TaskSize planRows(const ProductShape &shape, BlockAttr block);

/// A plan and its predicted time, in multiply-adds of one full vector.
struct Prediction {
  PlanAttr plan;
  double cost;
};

} // namespace attn

#include "passes/plan/PlannerInterface.h.inc"

namespace attn {

/// The planner of the machine that `op` is compiled for. Null, after an error, if no enclosing module names a machine
/// that has one.
PlannerInterface getPlanner(mlir::Operation *op);

} // namespace attn

#endif // ATTN_PASSES_PLAN_PLANNER_H
