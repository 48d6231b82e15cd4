//===- LinalgForm.cpp - linalg in the form that passes expect --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %m:2 = linalg.generic {(i, j) -> (i, j); (i, j) -> (i); (i, j) -> (i)} ins(%s)
//            outs(%a, %b : tensor<7xf32>, tensor<7xi64>)
//   %l = linalg.generic {(i, j) -> (i, j); (i, j) -> (i, 0)} ins(%e) outs(%z : tensor<7x1xf32>)
// becomes, if nothing reads %m#1,
//   %m = linalg.generic {(i, j) -> (i, j); (i, j) -> (i)} ins(%s) outs(%a : tensor<7xf32>)
//   %c = tensor.collapse_shape %z [[0, 1]] : tensor<7x1xf32> into tensor<7xf32>
//   %r = linalg.generic {(i, j) -> (i, j); (i, j) -> (i)} ins(%e) outs(%c : tensor<7xf32>)
//   %l = tensor.expand_shape %r [[0, 1]] : tensor<7xf32> into tensor<7x1xf32>
//
// A tensor.reshape between static types becomes a collapse and an expansion.
// Test: test/frontend/mlir/form.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/mlir/LinalgForm.h"
#include "support/UnitDims.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace attn;

namespace {

/// The dimensions of `value` that `map` reads or writes at 0 and whose size is 1.
llvm::SmallBitVector findUnitDims(Value value, AffineMap map) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  llvm::SmallBitVector dims(map.getNumResults());
  for (auto [i, expr] : llvm::enumerate(map.getResults()))
    if (type && type.getDimSize(i) == 1 && expr == getAffineConstantExpr(0, map.getContext()))
      dims.set(i);
  return dims;
}

/// Drops the dimensions of size 1 that an op writes at the constant index 0.
struct DropUnitResults : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "expected an op on tensors");
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    SmallVector<Value> inits;
    SmallVector<llvm::SmallBitVector> dropped;
    bool drops = false;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      AffineMap &map = maps[init.getOperandNumber()];
      dropped.push_back(findUnitDims(init.get(), map));
      inits.push_back(init.get());
      if (dropped.back().none())
        continue;
      drops = true;
      SmallVector<AffineExpr> kept;
      for (auto [i, expr] : llvm::enumerate(map.getResults()))
        if (!dropped.back()[i])
          kept.push_back(expr);
      map = AffineMap::get(map.getNumDims(), 0, kept, op.getContext());
      inits.back() = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), init.get(),
                                                     groupsWithout(dropped.back()));
    }
    if (!drops)
      return rewriter.notifyMatchFailure(op, "expected a result that is written at index 0");
    auto made = linalg::GenericOp::create(rewriter, op.getLoc(), ValueRange(inits).getTypes(),
                                          op.getInputs(), inits, maps, op.getIteratorTypesArray());
    rewriter.inlineRegionBefore(op.getRegion(), made.getRegion(), made.getRegion().begin());
    SmallVector<Value> results;
    for (auto [result, init, dims, type] :
         llvm::zip_equal(made.getResults(), op.getDpsInits(), dropped, op.getResultTypes()))
      results.push_back(dims.none() ? Value(result)
                                    : tensor::ExpandShapeOp::create(
                                          rewriter, op.getLoc(), type, result, groupsWithout(dims),
                                          tensor::getMixedSizes(rewriter, op.getLoc(), init))
                                          .getResult());
    rewriter.replaceOp(op, results);
    return success();
  }
};

/// A reshape between static types becomes a collapse to one dimension, if it needs one, and an expansion.
struct ResolveReshape : OpRewritePattern<tensor::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ReshapeOp op, PatternRewriter &rewriter) const override {
    auto from = dyn_cast<RankedTensorType>(op.getSource().getType()),
         to = dyn_cast<RankedTensorType>(op.getResult().getType());
    if (!from || !to || !from.hasStaticShape() || !to.hasStaticShape() || from.getEncoding() ||
        to.getEncoding())
      return rewriter.notifyMatchFailure(op, "expected static types without an encoding");
    if (to.getNumElements() == 0) {
      rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, to.getShape(), to.getElementType());
      return success();
    }
    Value value = op.getSource();
    auto reshape = [&](RankedTensorType type) {
      auto given = cast<RankedTensorType>(value.getType());
      auto groups = getReassociationIndicesForReshape(given, type);
      if (!groups)
        return false;
      if (given.getRank() < type.getRank())
        value = tensor::ExpandShapeOp::create(rewriter, op.getLoc(), type, value, *groups);
      else if (given != type)
        value = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), type, value, *groups);
      return true;
    };
    if (!reshape(to)) {
      auto flat = RankedTensorType::get({from.getNumElements()}, from.getElementType());
      (void)(reshape(flat) && reshape(to)); // possible for all types with this number of elements
    }
    rewriter.replaceOp(op, value);
    return success();
  }
};

} // namespace

/// Whether DropUnitResults, ResolveReshape or the erasure of unused results may match `op`. Other ops are not rewritten:
/// upstream's patterns also remove operands that an op has twice.
static bool isForeign(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !generic.hasPureTensorSemantics())
    return isa<tensor::ReshapeOp>(op);
  auto isUnused = [](Value result) { return result.use_empty(); };
  return (generic->getNumResults() > 1 && llvm::any_of(generic->getResults(), isUnused)) ||
         llvm::any_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
           return findUnitDims(init.get(), generic.getMatchingIndexingMap(&init)).any();
         });
}

LogicalResult attn::bringIntoForm(func::FuncOp function) {
  RewritePatternSet patterns(function.getContext());
  patterns.add<DropUnitResults, ResolveReshape>(function.getContext());
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  SmallVector<Operation *> foreign;
  function.walk([&](Operation *op) {
    if (isForeign(op))
      foreign.push_back(op);
  });
  if (failed(applyOpPatternsGreedily(foreign, std::move(patterns))))
    return failure();
  WalkResult ops = function.walk([](linalg::LinalgOp op) -> WalkResult {
    for (OpOperand &init : op.getDpsInitsMutable())
      if (AffineMap map = op.getMatchingIndexingMap(&init); !map.isProjectedPermutation())
        return op->emitError() << "expected results whose dimensions are different loops, got "
                               << AffineMapAttr::get(map);
    return WalkResult::advance();
  });
  return failure(ops.wasInterrupted());
}
