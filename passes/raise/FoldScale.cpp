//===- FoldScale.cpp - constant factors of operands become the scale -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %h = linalg.generic ins(%q) { mulf %q, 0.5 }
//   attn.attention ins(%h, %k, %v) {scale = 0.25}
// becomes
//   attn.attention ins(%q, %k, %v) {scale = 0.125}
//
// The pass moves factors of the query and of the key, also through views (transpose, reshape, slice); canonicalization
// moves the factors of the score. A factor stays if the scale would not be a normal number of f32.
// Test: test/passes/raise/fold-scale.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn {
#define GEN_PASS_DEF_FOLDSCALE
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The tensor and the constant factor whose product, element by element, is `value`.
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

/// Moves the constant factors of a query or key into the scale, and rebuilds the views between factor and attention.
static void takeFactorsOf(AttentionOp op, OpOperand &operand, RewriterBase &rewriter) {
  SmallVector<Operation *> views;
  for (Value value = operand.get(); Operation *producer = value.getDefiningOp();) {
    if (auto found = unscaled(value)) {
      if (failed(op.scaleBy(found->second)))
        return;
      addLocation(op, op.getScaleAttrName(), producer->getLoc());
      value = found->first;
      rewriter.setInsertionPoint(op);
      for (Operation *view : llvm::reverse(views)) {
        Operation *copy = rewriter.clone(*view);
        copy->setOperand(0, value);
        value = copy->getResult(0);
      }
      operand.set(value);
      views.clear();
      continue;
    }
    if (!isa<linalg::TransposeOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
             tensor::ExtractSliceOp>(producer))
      return;
    views.push_back(producer);
    value = producer->getOperand(0);
  }
}

namespace {
struct FoldScale : attn::impl::FoldScaleBase<FoldScale> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](AttentionOp op) {
      takeFactorsOf(op, op.getQueryMutable(), rewriter);
      takeFactorsOf(op, op.getKeyMutable(), rewriter);
    });
    (void)runRegionDCE(rewriter, getOperation()->getRegions());
  }
};
} // namespace
