//===- FoldScale.cpp - constant factors of scores become the scale ---------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %h = linalg.generic ins(%q) { mulf %q, 0.5 }
//   attn.attention ins(%h, %k, %v) {scale = 1.0} score { ^bb0(..., %s): yield f(divf %s, 4.0) }
// becomes
//   attn.attention ins(%q, %k, %v) {scale = 0.125} score { ^bb0(..., %s): yield f(%s) }
//
// Takes factors that the score meets first in the region, and those of the query or the key, also where views
// (transposition, reshape, slice) lie between. Left alone: factors that are not finite, and those of a score
// that the region also reads as it is.
// Test: test/passes/raise/fold-scale.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

#include <cmath>

namespace attn {
#define GEN_PASS_DEF_FOLDSCALE
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The constant c for which `op` computes c * value.
static std::optional<double> constantFactor(Operation *op, Value value) {
  APFloat constant(0.0);
  bool isRight = op->getNumOperands() == 2 && op->getOperand(0) == value;
  if (!isa<arith::MulFOp, arith::DivFOp>(op) ||
      !matchPattern(op->getOperand(isRight ? 1 : 0), m_ConstantFloat(&constant)))
    return std::nullopt;
  double factor = constant.convertToDouble();
  if (isa<arith::DivFOp>(op)) {
    if (!isRight)
      return std::nullopt;
    factor = 1.0 / factor;
  }
  return std::isfinite(float(factor)) ? std::optional(factor) : std::nullopt;
}

/// Takes the factors that the region applies to the score before anything else.
static double takeFactorsOfScore(AttentionOp op) {
  double factor = 1.0;
  if (op.getScore().empty())
    return factor;
  BlockArgument score = op.getScore().getArgument(op.getKDim() + 1);
  while (score.hasOneUse()) {
    Operation *user = *score.user_begin();
    std::optional<double> constant = constantFactor(user, score);
    if (!constant)
      break;
    factor *= *constant;
    user->getResult(0).replaceAllUsesWith(score);
    user->erase();
  }
  return factor;
}

/// The one tensor that `value` is a constant multiple of, element for element.
static std::optional<std::pair<Value, double>> unscaled(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return std::nullopt;
  Operation *product = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  if (!product || product->getBlock() != op.getBlock())
    return std::nullopt;
  Value source = op.getDpsInputs()[0];
  std::optional<double> factor = constantFactor(product, op.getRegionInputArgs()[0]);
  if (!factor || source.getType() != value.getType())
    return std::nullopt;
  return std::pair(source, *factor);
}

/// Takes the factors of a query or key, rebuilding the views that lie between.
static double takeFactorsOf(OpOperand &operand, RewriterBase &rewriter) {
  double factor = 1.0;
  SmallVector<Operation *> views;
  for (Value value = operand.get(); Operation *op = value.getDefiningOp();) {
    if (auto found = unscaled(value)) {
      factor *= found->second;
      value = found->first;
      for (Operation *view : llvm::reverse(views)) {
        rewriter.setInsertionPoint(operand.getOwner());
        Operation *copy = rewriter.clone(*view);
        copy->setOperand(0, value);
        value = copy->getResult(0);
      }
      operand.set(value);
      views.clear();
      continue;
    }
    if (!isa<linalg::TransposeOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp>(op))
      break;
    views.push_back(op);
    value = op->getOperand(0);
  }
  return factor;
}

namespace {
struct FoldScale : attn::impl::FoldScaleBase<FoldScale> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](AttentionOp op) {
      double factor = takeFactorsOfScore(op) * takeFactorsOf(op.getQueryMutable(), rewriter) *
                      takeFactorsOf(op.getKeyMutable(), rewriter);
      op.setScaleAttr(rewriter.getF32FloatAttr(float(op.getScale().convertToDouble() * factor)));
    });
    (void)runRegionDCE(rewriter, getOperation()->getRegions());
  }
};
} // namespace
