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
// The new form saves one pass over memory and one buffer, and the accumulators of a register block start from the bias.
// The addition may be the first step of a longer body, whose other steps stay. A bias that the body widens is widened
// before the contraction. The pass looks through a separate op that broadcasts the bias.
//
// A product stays unchanged if it has another use, if it does not start from zero, or if the addend is as large as the
// product: such an addend, for example a residual, would have to be copied if it were the init.
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "support/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_FOLDBIASINTOINIT
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

/// A tensor, and the map through which it is read.
struct Addend {
  Value tensor;
  AffineMap map;
};

/// The op of the body that adds to the product, and the operand that it adds.
std::pair<arith::AddFOp, OpOperand *> getSum(linalg::GenericOp op, OpOperand *product) {
  BlockArgument element = op.getMatchingBlockArgument(product);
  auto add = element.hasOneUse() ? dyn_cast<arith::AddFOp>(*element.user_begin()) : arith::AddFOp();
  if (!add)
    return {};
  Value other = add.getLhs() == element ? add.getRhs() : add.getLhs();
  if (auto widened = other.getDefiningOp<arith::ExtFOp>())
    other = widened.getIn();
  auto argument = dyn_cast<BlockArgument>(other);
  if (!argument || argument.getOwner() != op.getBody() ||
      argument.getArgNumber() >= op.getNumDpsInputs())
    return {};
  return {add, op.getDpsInputOperand(argument.getArgNumber())};
}

/// Returns the bias if `addend` is the result of an op that only broadcasts it; otherwise returns `addend`.
Addend lookThroughBroadcast(Addend addend) {
  auto op = addend.tensor.getDefiningOp<linalg::LinalgOp>();
  if (!op || !isCopy(op))
    return addend;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  return maps[1].isIdentity() ? Addend{op.getDpsInputOperand(0)->get(), maps[0].compose(addend.map)}
                              : addend;
}

struct FoldBias : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (op.hasPureTensorSemantics())
      for (OpOperand *input : op.getDpsInputOperands())
        if (succeeded(fold(op, input, rewriter)))
          return success();
    return rewriter.notifyMatchFailure(op, "expected the sum of a product and a bias");
  }

private:
  static LogicalResult fold(linalg::GenericOp op, OpOperand *product, PatternRewriter &rewriter) {
    auto contract = product->get().getDefiningOp<linalg::LinalgOp>();
    if (!isProductOrConvolution(contract) || !contract->hasOneUse() ||
        !op.getMatchingIndexingMap(product).isIdentity())
      return failure();
    auto fill = contract.getDpsInitOperand(0)->get().getDefiningOp<linalg::FillOp>();
    auto [add, addend] = getSum(op, product);
    if (!fill || !matchPattern(fill.value(), m_AnyZeroFloat()) || !add)
      return failure();

    auto [bias, map] = lookThroughBroadcast({addend->get(), op.getMatchingIndexingMap(addend)});
    auto biasType = dyn_cast<RankedTensorType>(bias.getType());
    std::optional<SmallVector<unsigned>> kept = findLoops(map);
    if (!biasType || !kept || !llvm::is_sorted(*kept) || map.getNumResults() == map.getNumDims())
      return failure();
    SmallVector<int64_t> broadcast;
    for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
      if (!llvm::is_contained(*kept, dim))
        broadcast.push_back(dim);

    Location loc = op.getLoc();
    if (biasType.getElementType() != add.getType()) {
      Value empty = tensor::EmptyOp::create(
          rewriter, loc, tensor::getMixedSizes(rewriter, loc, bias), add.getType());
      AffineMap identity = rewriter.getMultiDimIdentityMap(biasType.getRank());
      SmallVector<utils::IteratorType> parallel(biasType.getRank(), utils::IteratorType::parallel);
      bias = linalg::GenericOp::create(rewriter, loc, empty.getType(), bias, empty,
                                       ArrayRef<AffineMap>{identity, identity}, parallel,
                                       [](OpBuilder &builder, Location loc, ValueRange args) {
                                         Value wide = arith::ExtFOp::create(
                                             builder, loc, args[1].getType(), args[0]);
                                         linalg::YieldOp::create(builder, loc, wide);
                                       })
                 .getResult(0);
    }
    Value init =
        linalg::BroadcastOp::create(rewriter, loc, bias, fill.output(), broadcast)->getResult(0);
    auto folded = cast<linalg::LinalgOp>(rewriter.clone(*contract));
    folded.getDpsInitOperand(0)->set(init);
    rewriter.modifyOpInPlace(op, [&] { product->set(folded->getResult(0)); });
    rewriter.replaceOp(add, op.getMatchingBlockArgument(product));
    return success();
  }
};

struct FoldBiasIntoInit : attn::impl::FoldBiasIntoInitBase<FoldBiasIntoInit> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldBias>(&getContext());
    // A body without its addition no longer reads the bias, and may have nothing left to compute.
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
