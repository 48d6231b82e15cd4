//===- OneQuery.cpp - a second attention for calls with one query ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %init = tensor.empty(%n) : tensor<8x?x64xf32>
//   %o = attn.attention ins(%q, %k, %v : tensor<8x?x64xf32>, ...) outs(%init : tensor<8x?x64xf32>)
// becomes
//   %is_one = arith.cmpi eq, %n, %c1 : index
//   %o = scf.if %is_one -> (tensor<8x?x64xf32>) {
//     %q1 = tensor.cast %q : tensor<8x?x64xf32> to tensor<8x1x64xf32>
//     %init1 = tensor.extract_slice %init[0, 0, 0] [8, 1, 64] [1, 1, 1] : ... to tensor<8x1x64xf32>
//     %o1 = attn.attention ins(%q1, %k, %v : ...) outs(%init1 : tensor<8x1x64xf32>) {attn.one_query}
//     %all = tensor.insert_slice %o1 into %init[0, 0, 0] [8, 1, 64] [1, 1, 1] : ...
//     scf.yield %all : tensor<8x?x64xf32>
//   } else {
//     %o2 = attn.attention ins(%q, %k, %v : tensor<8x?x64xf32>, ...) outs(%init : tensor<8x?x64xf32>)
//     scf.yield %o2 : tensor<8x?x64xf32>
//   }
//
// A language model calls the same attention with many queries for a prompt and with one query for each further token.
// A plan for many queries computes a tile of queries at a time, most of whose rows are empty if there is one query. The
// new attention gets a plan of its own, because it has one query in its types. An attention stays unchanged if it has
// as many keys as queries (the symbols of their sizes tell), if its function also computes products (their tasks would
// not include it), or if the planner makes no use of the second plan.
// Test: test/passes/plan/one-query.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Symbols.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/plan/Planner.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_ONEQUERY
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The dimension of a tensor with `map` that loop `loop` indexes.
static std::optional<unsigned> axisOf(AffineMap map, unsigned loop) {
  return map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

/// Whether the number of queries of `op` is known only at the call, and may differ from the number of keys.
static bool mayHaveOneQuery(AttentionOp op) {
  std::optional<unsigned> query = axisOf(op.getQueryMap(), op.getQDim()),
                          key = axisOf(op.getKeyMap(), op.getKDim());
  if (!query || !key || !ShapedType::isDynamic(op.getStaticSize(op.getQDim())))
    return false;
  auto function = op->getParentOfType<func::FuncOp>();
  StringAttr queries = symbolOf(function, op.getQuery(), *query);
  return !queries || queries != symbolOf(function, op.getKey(), *key);
}

/// `type` with size 1 along `axis`.
static RankedTensorType withOne(RankedTensorType type, unsigned axis) {
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = 1;
  return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
}

/// Creates the attention for one query, and returns its results as parts of the results of `op`.
static SmallVector<Value> createForOne(OpBuilder &builder, AttentionOp op) {
  Location loc = op.getLoc();
  auto one = cast<AttentionOp>(builder.clone(*op));
  one->setAttr(AttnDialect::kOneQueryAttr, builder.getUnitAttr());
  SmallVector<Value> results;
  builder.setInsertionPoint(one);
  for (unsigned i = 0; i < op.getNumInputs(); ++i)
    if (std::optional<unsigned> axis = axisOf(op.getMap(i), op.getQDim())) {
      OpOperand &operand = one->getOpOperand(i);
      auto type = cast<RankedTensorType>(operand.get().getType());
      operand.set(tensor::CastOp::create(builder, loc, withOne(type, *axis), operand.get()));
    }
  for (auto [i, init] : llvm::enumerate(op.getOuts())) {
    unsigned axis = *axisOf(op.getOutMap(i), op.getQDim());
    auto type = withOne(cast<RankedTensorType>(init.getType()), axis);
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, init),
                              zeros(sizes.size(), builder.getIndexAttr(0)),
                              ones(sizes.size(), builder.getIndexAttr(1));
    sizes[axis] = builder.getIndexAttr(1);
    builder.setInsertionPoint(one);
    one.getOutsMutable()[i].set(
        tensor::ExtractSliceOp::create(builder, loc, type, init, zeros, sizes, ones));
    one->getResult(i).setType(type);
    builder.setInsertionPointAfter(one);
    results.push_back(
        tensor::InsertSliceOp::create(builder, loc, one->getResult(i), init, zeros, sizes, ones));
  }
  return results;
}

/// Replaces `op` with a choice between an attention for one query and `op`.
static void split(AttentionOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  unsigned axis = *axisOf(op.getQueryMap(), op.getQDim());
  Value queries = tensor::DimOp::create(builder, loc, op.getQuery(), axis);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value isOne = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, queries, one);
  auto choice = scf::IfOp::create(builder, loc, op->getResultTypes(), isOne,
                                  /*withElseRegion=*/true);
  op->replaceAllUsesWith(choice.getResults());
  OpBuilder inner = choice.getThenBodyBuilder();
  SmallVector<Value> results = createForOne(inner, op);
  inner.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(inner, loc, results);
  op->moveBefore(choice.elseBlock(), choice.elseBlock()->end());
  inner.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(inner, loc, op->getResults());
}

namespace {
struct OneQuery : attn::impl::OneQueryBase<OneQuery> {
  void runOnOperation() override {
    PlannerInterface planner = getPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    SmallVector<AttentionOp> attentions;
    bool hasProducts = false;
    getOperation().walk([&](Operation *op) {
      hasProducts |= isProductOrConvolution(op);
      auto attention = dyn_cast<AttentionOp>(op);
      if (attention && !attention.getPlan() && !attention.getState() &&
          attention.getOrigin().empty() && mayHaveOneQuery(attention))
        attentions.push_back(attention);
    });
    if (hasProducts || !planner.separatesOneQuery())
      return;
    for (AttentionOp op : attentions)
      split(op);
  }
};
} // namespace
