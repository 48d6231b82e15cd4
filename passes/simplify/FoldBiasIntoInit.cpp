//===- FoldBiasIntoInit.cpp - a contraction starts from its bias -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %0 = linalg.fill ins(0) outs(%empty)
//   %1 = linalg.contract ins(%x, %w) outs(%0)
//   %2 = linalg.generic (s,n)->(s,n), (n), (s,n) ins(%1, %bias) { addf }
// becomes
//   %0 = linalg.broadcast ins(%bias) outs(%empty) dimensions = [0]
//   %2 = linalg.contract ins(%x, %w) outs(%0)
//
// One pass over memory and one buffer fewer, and what a register block wants: accumulators that start from
// the bias. A bias that was broadcast by an op of its own is seen through.
//
// Left alone: products with another use, products that do not start from zero, and addends as large as the
// product (a residual is an epilogue; as an init it would have to be copied).
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_FOLDBIASINTOINIT
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;

namespace {

/// Whether the body of `op` is the sum of its two inputs.
bool isSum(linalg::GenericOp op) {
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  auto add = yield.getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add || op.getBody()->getOperations().size() != 2)
    return false;
  Value a = op.getBody()->getArgument(0), b = op.getBody()->getArgument(1);
  return (add.getLhs() == a && add.getRhs() == b) || (add.getLhs() == b && add.getRhs() == a);
}

struct FoldBias : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || !isSum(op) ||
        !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
      return failure();
    for (unsigned i : {0, 1})
      if (succeeded(fold(op, op.getDpsInputOperand(i), op.getDpsInputOperand(1 - i), rewriter)))
        return success();
    return rewriter.notifyMatchFailure(op, "expected the sum of a product and a bias");
  }

private:
  static LogicalResult fold(linalg::GenericOp op, OpOperand *product, OpOperand *addend,
                            PatternRewriter &rewriter) {
    auto contract = product->get().getDefiningOp<linalg::ContractOp>();
    if (!contract || !contract->hasOneUse() || !op.getMatchingIndexingMap(product).isIdentity())
      return failure();
    auto fill = contract.getDpsInitOperand(0)->get().getDefiningOp<linalg::FillOp>();
    if (!fill || !matchPattern(fill.value(), m_AnyZeroFloat()) ||
        product->get().getType() != op.getResult(0).getType())
      return failure();

    Value bias = addend->get();
    AffineMap map = op.getMatchingIndexingMap(addend);
    if (auto broadcast = bias.getDefiningOp<linalg::LinalgOp>()) {
      auto isCopy = [](Block *body) { return body->getTerminator()->getOperand(0) == body->getArgument(0); };
      if (broadcast.getNumDpsInputs() == 1 && broadcast->getNumResults() == 1 &&
          !isa<linalg::FillOp>(broadcast) && isCopy(broadcast.getBlock()) &&
          broadcast.getIndexingMapsArray()[1].isIdentity()) {
        bias = broadcast.getDpsInputOperand(0)->get();
        map = broadcast.getIndexingMapsArray()[0].compose(map);
      }
    }
    auto biasType = dyn_cast<RankedTensorType>(bias.getType());
    if (!biasType || !map.isProjectedPermutation() || map.getNumResults() == map.getNumDims())
      return failure();

    SmallVector<int64_t> dims;
    for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
      if (!map.isFunctionOfDim(dim))
        dims.push_back(dim);
    auto positions =
        llvm::map_range(map.getResults(), [](AffineExpr e) { return cast<AffineDimExpr>(e).getPosition(); });
    if (!llvm::is_sorted(positions))
      return failure();

    auto broadcast = linalg::BroadcastOp::create(rewriter, op.getLoc(), bias, fill.output(), dims);
    rewriter.setInsertionPoint(op);
    auto folded = cast<linalg::ContractOp>(rewriter.clone(*contract));
    folded.getDpsInitOperand(0)->set(broadcast->getResult(0));
    rewriter.replaceOp(op, folded);
    return success();
  }
};

struct FoldBiasIntoInit : attn::impl::FoldBiasIntoInitBase<FoldBiasIntoInit> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldBias>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
