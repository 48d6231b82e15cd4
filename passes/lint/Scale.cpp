//===- Scale.cpp - scores scaled by the wrong root -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %q = linalg.contract ins(%x, %wq : tensor<2x9x96xf32>, tensor<3x32x96xf32>)
//   attn.attention ins(%q, %k, %v) {scale = 5.656854 : f32}     // warning: sqrt(32), not 1/sqrt(32)
//   attn.attention ins(%q, %k, %v) {scale = 0.102062 : f32}     // warning: 1/sqrt(96), the width of 3 heads
//
// The rule warns only if the scale is the root of the head size, the root of the width of the model, or 1 over the root
// of the width, because any other scale may be intended. The width of the model is the size that the projection of the
// query or key sums over, or the head size times the number of heads. The rule does not warn about scores multiplied by
// a root if the query or the key is normalised, because scores of normalised vectors are small.
// Test: test/passes/lint/scale.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/lint/Scores.h"

#include <cmath>

namespace attn {
#define GEN_PASS_DEF_LINTSCALE
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// How a query or key is computed.
struct Projection {
  SmallVector<int64_t> depths; ///< the sizes that its products sum over
  bool isNormalized = false;   ///< whether another reduction follows the product
};
} // namespace

static Projection projectionOf(Value tensor) {
  Projection projection;
  SetVector<Value> seen;
  seen.insert(tensor);
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (!op)
      continue;
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (isProduct(op)) {
      SmallVector<unsigned> reduced;
      linalgOp.getReductionDims(reduced);
      SmallVector<int64_t> sizes = linalgOp.getStaticLoopRanges();
      projection.depths.push_back(sizes[reduced.front()]);
      continue;
    }
    projection.isNormalized |= linalgOp && linalgOp.getNumReductionLoops() > 0;
    seen.insert_range(op->getOperands());
  }
  return projection;
}

/// The size of dimension `dim` of the iteration space; kDynamic if it is not static.
static int64_t sizeOf(AttentionOp op, unsigned operand, unsigned dim) {
  auto position = op.getMap(operand).getResultPosition(getAffineDimExpr(dim, op.getContext()));
  return cast<ShapedType>(op->getOperand(operand).getType()).getDimSize(*position);
}

namespace {
struct LintScale : attn::impl::LintScaleBase<LintScale> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    getOperation().walk([&](AttentionOp op) { check(op); });
  }

  static void check(AttentionOp op) {
    int64_t headSize = sizeOf(op, /*query=*/0, op.getDDim());
    if (ShapedType::isDynamic(headSize) || headSize < 2)
      return;
    double scale = op.getScale().convertToDouble();
    auto isScale = [&](double expected) {
      return std::abs(scale - expected) <= 1e-5 * expected; // allow for roundings to f32
    };
    if (isScale(1 / std::sqrt(headSize)))
      return;

    Projection query = projectionOf(op.getQuery()), key = projectionOf(op.getKey());
    SmallVector<int64_t> widths = query.depths;
    llvm::append_range(widths, key.depths);
    // The first batch dimension counts samples; the others count heads.
    int64_t all = headSize;
    for (unsigned i = 1; i < op.getNumBatch(); ++i) {
      int64_t heads = sizeOf(op, op.getNumInputs(), i);
      all = ShapedType::isDynamic(heads) ? 0 : all * heads;
    }
    widths.push_back(all);
    llvm::erase_if(widths, [&](int64_t width) { return width <= headSize; });

    auto root = llvm::find_if(widths, [&](int64_t width) { return isScale(std::sqrt(width)); });
    bool ofHead = isScale(std::sqrt(headSize));
    bool isNormalized = query.isNormalized || key.isNormalized;
    if ((ofHead || root != widths.end()) && !isNormalized)
      warn(op) << "scores are multiplied by sqrt(" << (ofHead ? headSize : *root)
               << "), so the softmax gives almost all probability to one key; divide them by sqrt("
               << headSize << "), the root of the head size";
    for (int64_t width : widths)
      if (isScale(1 / std::sqrt(width))) {
        warn(op)
            << "scores are divided by sqrt(" << width
            << "), the root of the model's width, so the softmax is too flat; divide them by sqrt("
            << headSize << "), the root of the head size";
        return;
      }
  }

  static InFlightDiagnostic warn(AttentionOp op) {
    return emitWarning(locationOf(op, op.getScaleAttrName()));
  }
};
} // namespace
