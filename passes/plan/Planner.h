//===- Planner.h - the shapes that plans depend on ---------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The shapes do not refer to ops, so tests and benchmarks can list shapes in tables.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_PLANNER_H
#define ATTN_PASSES_PLAN_PLANNER_H

#include "dialect/Attn.h"
#include "passes/Product.h"

#include <optional>

namespace attn {

/// Sizes of an attention. A size that is known only at the call counts as `kTypicalSize` or, if it is the size of a
/// batch dimension, as 1.
struct AttentionShape {
  static constexpr int64_t kTypicalSize = 1024;

  /// The shape of `op`; `depth` comes from the products that compute its operands.
  static AttentionShape get(AttentionOp op);

  int64_t heads = 1;  // batch items times heads, of keys and values
  int64_t groups = 1; // heads of queries for each head of keys
  int64_t queries = 1, keys = 1;
  int64_t d = 1, e = 1;   // head sizes of queries and keys, and of values
  int64_t joined = 1;     // heads of keys that one product can compute, with all groups of queries
  int64_t depth = 0;      // length of the sums of the key and value projections; 0: no projections
  bool knowsBatch = true; // whether the numbers of heads and groups are known before the call
  bool knowsHeads = true; // whether d and e are known before the call
  bool knowsKeys = true;  // whether the number of keys is known before the call
  mlir::Type element;     // of queries, keys and values; if their types differ, that of the scores
  mlir::Type sum;         // the element type of scores and accumulators
  bool hasRegion = false;
  bool hasCaptures = false; // whether the mask or the region reads captured operands
  bool returnsProbabilities = false;
  MaskInterface mask;
  unsigned numBatch = 0; // number of batch coordinates of the mask

  /// Whether one product for all heads may need fewer vectors than one product for each head. Only a phased plan can
  /// have a product for all heads. Products compute columns in vectors of `lanes`.
  bool joinsHeads(int64_t lanes) const { return joined > 1 && (d % lanes != 0 || e % lanes != 0); }
};

/// The properties of a product that its plan depends on.
struct ProductShape {
  static ProductShape get(mlir::linalg::LinalgOp product);
  /// The number of products of each sum. None if this number is known only at the call, or if the sum of a product runs
  /// over several dimensions other than the two dimensions of a sum in groups.
  static std::optional<int64_t> getDepth(mlir::linalg::LinalgOp product);

  int64_t columns;              ///< of the output; kDynamic for an unknown number
  std::optional<int64_t> depth; ///< length of each sum, if known
  bool skipsZeros;              ///< whether the product has attn.skips_zeros
  int64_t group;                ///< elements of the sum that are side by side in both operands
  int64_t rows;                 ///< of the output; kDynamic for an unknown number
  ProductTypes types;
  /// The number of products, this one included, whose results elementwise ops combine. One task computes them all.
  int64_t combined = 1;
  /// How many products of a convolution one step of the outermost loop of the sum adds: the elements of the kernel, if
  /// this loop runs over channels. 0 for a product. The rows of a convolution are output channels, and its columns are
  /// those of the last dimension of the image.
  int64_t kernel = 0;
  /// Whether the channels of a convolution are the last dimension of its output. They are its columns then, and its
  /// rows are those of the image.
  bool hasChannelsLast = false;
  /// The number of panels of the output, over all batch items; 0 if it is unknown.
  int64_t panels = 0;
};

/// How a weight is packed: into panels of `width` columns, with `group` elements along the sum side by side. `width`
/// divides the number of columns, and `group` divides the length of the sum.
struct Panel {
  int64_t width;
  int64_t group;
};

/// The part of a product that one task computes. 0 columns stand for all columns of a panel. The columns of a
/// convolution are elements of the output image, over all of its dimensions.
struct TaskSize {
  int64_t rows, columns;
};

/// The number of threads that a plan is chosen for if several plans are equally fast with one thread.
inline constexpr int64_t kManyWorkers = 16;

/// A plan and its predicted time, in multiply-adds of one full vector.
struct Prediction {
  PlanAttr plan;
  double cost;
};

} // namespace attn

#include "passes/plan/PlannerInterface.h.inc"

namespace attn {

/// The planner of the machine that `op` is compiled for. Null, after an error, if no enclosing module has a target, or
/// if the target has no planner.
PlannerInterface getPlanner(mlir::Operation *op);

} // namespace attn

#endif // ATTN_PASSES_PLAN_PLANNER_H
