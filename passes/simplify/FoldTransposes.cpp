//===- FoldTransposes.cpp - transpositions become maps of attention --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %t = linalg.transpose ins(%k) permutation = [0, 2, 1]
//   %o = attn.attention ins(%q, %t, ...) outs(%e) {..., (b,q,k,d,e)->(b,k,d), ..., (b,q,k,d,e)->(b,q,e)}
//   %r = linalg.transpose ins(%o) permutation = [1, 0, 2]
// becomes
//   %r = attn.attention ins(%q, %k, ...) outs(%f) {..., (b,q,k,d,e)->(b,d,k), ..., (b,q,k,d,e)->(q,b,e)}
//
// The pass runs after attn-hoist-views, which leaves transpositions of arguments, of results with several uses and of
// outputs of the attention. The transposition of an output folds only if nothing else reads the output.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_FOLDTRANSPOSES
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

/// Sets the map of operand `i`.
void setMap(AttentionOp op, unsigned i, AffineMap map) {
  SmallVector<Attribute> maps(op.getIndexingMaps().getValue());
  maps[i] = AffineMapAttr::get(map);
  op.setIndexingMapsAttr(ArrayAttr::get(op.getContext(), maps));
}

struct FoldIntoRead : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    for (unsigned i = 0, e = op.getNumInputs(); i < e; ++i) {
      auto transpose = op->getOperand(i).getDefiningOp<linalg::TransposeOp>();
      if (!transpose)
        continue;
      AffineMap permutation =
          AffineMap::getPermutationMap(transpose.getPermutation(), getContext());
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperand(i, transpose.getInput());
        setMap(op, i, inversePermutation(permutation).compose(op.getMap(i)));
      });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "expected a transposed operand");
  }
};

struct FoldIntoWrite : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp transpose,
                                PatternRewriter &rewriter) const override {
    auto result = dyn_cast<OpResult>(transpose.getInput());
    auto op = result ? dyn_cast<AttentionOp>(result.getOwner()) : AttentionOp();
    if (!op || !result.hasOneUse())
      return rewriter.notifyMatchFailure(transpose,
                                         "expected an output of attention without another use");
    OpOperand &out = op.getOutsMutable()[result.getResultNumber()];
    auto empty = out.get().getDefiningOp<tensor::EmptyOp>();
    if (!empty)
      return rewriter.notifyMatchFailure(op, "expected an output that starts empty");

    rewriter.setInsertionPoint(op);
    AffineMap permutation = AffineMap::getPermutationMap(transpose.getPermutation(), getContext());
    SmallVector<OpFoldResult> sizes =
        applyPermutation(empty.getMixedSizes(), transpose.getPermutation());
    Value permuted =
        tensor::EmptyOp::create(rewriter, op.getLoc(), sizes, empty.getType().getElementType());
    rewriter.modifyOpInPlace(op, [&] {
      setMap(op, out.getOperandNumber(), permutation.compose(op.getMap(out.getOperandNumber())));
      out.set(permuted);
      result.setType(permuted.getType());
    });
    rewriter.setInsertionPoint(transpose);
    Value value = result;
    if (value.getType() != transpose->getResult(0).getType())
      value =
          tensor::CastOp::create(rewriter, op.getLoc(), transpose->getResult(0).getType(), value);
    rewriter.replaceOp(transpose, value);
    return success();
  }
};

struct FoldTransposes : attn::impl::FoldTransposesBase<FoldTransposes> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldIntoRead, FoldIntoWrite>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
