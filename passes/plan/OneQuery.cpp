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
// types of the new attention have one query, so attn-plan gives it a plan of its own.
//
// An attention stays unchanged if
// * the symbols of its sizes say that no call has one query, or that one query has one key,
// * its function also computes products: a product and an attention can share tasks only if they are in one block,
// * it has a plan or an origin, which refer to all of its queries, or a state, which only the schedule decode computes,
// * the planner of the target does not separate calls with one query.
// Test: test/passes/plan/one-query.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/plan/OneQuery.h"
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

AttentionOp attn::findGeneral(AttentionOp op) {
  auto choice = dyn_cast<scf::IfOp>(op->getParentOp());
  if (!op->hasAttr(AttnDialect::kOneQueryAttr) || !choice || op->getBlock() != choice.thenBlock() ||
      !choice.elseBlock())
    return nullptr;
  auto others = choice.elseBlock()->getOps<AttentionOp>();
  return others.empty() ? AttentionOp() : *others.begin();
}

AttentionOp attn::findForOneQuery(AttentionOp op) {
  if (auto choice = dyn_cast<scf::IfOp>(op->getParentOp()))
    for (auto other : choice.thenBlock()->getOps<AttentionOp>())
      if (findGeneral(other) == op)
        return other;
  return nullptr;
}

/// The dimension of a tensor with `map` that loop `loop` indexes.
static std::optional<unsigned> axisOf(AffineMap map, unsigned loop) {
  return map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

/// Whether some calls can have one query and others several, and the numbers of queries and keys may differ.
static bool mayHaveOneQuery(AttentionOp op) {
  if (!ShapedType::isDynamic(op.getStaticSize(op.getQDim())))
    return false;
  auto function = op->getParentOfType<func::FuncOp>();
  StringAttr queries = symbolOf(function, op.getQuery(), *axisOf(op.getQueryMap(), op.getQDim())),
             keys = symbolOf(function, op.getKey(), *axisOf(op.getKeyMap(), op.getKDim()));
  if (!queries)
    return true;
  auto symbols = function->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr);
  return queries != keys && llvm::none_of(symbols.getAsRange<SymbolAttr>(), [&](SymbolAttr symbol) {
           return symbol.getName() == queries && (symbol.getMin() > 1 || symbol.getMax() < 2);
         });
}

/// `type` with size 1 along `axis`.
static RankedTensorType withOne(RankedTensorType type, unsigned axis) {
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = 1;
  return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
}

/// Creates the attention for one query. Returns a tensor for each result of `op`: its init, into which the result for
/// one query is inserted.
static SmallVector<Value> createForOne(OpBuilder &builder, AttentionOp op) {
  Location loc = op.getLoc();
  unsigned q = op.getQDim();
  SmallVector<Value> inputs(op->getOperands().take_front(op.getNumInputs()));
  for (auto [i, input] : llvm::enumerate(inputs))
    if (std::optional<unsigned> axis = axisOf(op.getMap(i), q))
      input = tensor::CastOp::create(
          builder, loc, withOne(cast<RankedTensorType>(input.getType()), *axis), input);
  SmallVector<tensor::ExtractSliceOp> slices;
  for (auto [i, init] : llvm::enumerate(op.getOuts())) {
    unsigned axis = *axisOf(op.getOutMap(i), q);
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, init),
                              zeros(sizes.size(), builder.getIndexAttr(0)),
                              ones(sizes.size(), builder.getIndexAttr(1));
    sizes[axis] = builder.getIndexAttr(1);
    slices.push_back(tensor::ExtractSliceOp::create(
        builder, loc, withOne(cast<RankedTensorType>(init.getType()), axis), init, zeros, sizes,
        ones));
  }
  auto one = cast<AttentionOp>(builder.clone(*op));
  one->setOperands(0, inputs.size(), inputs);
  one->setAttr(AttnDialect::kOneQueryAttr, builder.getUnitAttr());
  SmallVector<Value> results;
  for (auto [init, slice, result] :
       llvm::zip_equal(one.getOutsMutable(), slices, one->getResults())) {
    init.set(slice);
    result.setType(slice.getType());
    results.push_back(tensor::InsertSliceOp::create(builder, loc, result, slice.getSource(),
                                                    slice.getMixedOffsets(), slice.getMixedSizes(),
                                                    slice.getMixedStrides()));
  }
  return results;
}

/// Replaces `op` with an scf.if that computes the attention for one query or `op`.
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
    if (!planner.separatesOneQuery())
      return;
    SmallVector<AttentionOp> attentions;
    bool hasProducts = false;
    getOperation().walk([&](Operation *op) {
      hasProducts |= isProductOrConvolution(op);
      auto attention = dyn_cast<AttentionOp>(op);
      if (attention && !attention.getPlan() && !attention.getState() &&
          attention.getOrigin().empty() && mayHaveOneQuery(attention))
        attentions.push_back(attention);
    });
    if (hasProducts)
      return;
    for (AttentionOp op : attentions)
      split(op);
  }
};
} // namespace
