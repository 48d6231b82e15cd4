//===- JoinHeads.cpp - one product for all heads ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %q = linalg.contract (b,h,s,d,c)->(b,s,c), (h,d,c), (b,h,s,d) ins(%x, %w : tensor<2x?x64xf32>, tensor<8x8x64xf32>)
//          outs(%i : tensor<2x8x?x8xf32>)
//   attn.attention ins(%q, ...) plan(<phased, q = 16, k = 14>) {(b,h,q,k,d,e)->(b,h,q,d), ...}
// becomes
//   %j = tensor.collapse_shape %w [[0, 1], [2]]
//   %p = linalg.contract (b,s,n,c)->(b,s,c), (n,c), (b,s,n) ins(%x, %j : tensor<2x?x64xf32>, tensor<64x64xf32>)
//          outs(%k : tensor<2x?x64xf32>)
//   %q = tensor.expand_shape %p [[0], [1], [2, 3]] : tensor<2x?x64xf32> into tensor<2x?x8x8xf32>
//   attn.attention ins(%q, ...) plan(<phased, q = 16, k = 14>) {(b,h,q,k,d,e)->(b,q,h,d), ...}
//
// Vectors run along the columns of one head, so a head size that is not a multiple of the lanes leaves some lanes
// empty: a head of 8 columns leaves 8 of 16 lanes empty. The columns of all heads together fill the lanes. The schedule
// must be phased; a task of the schedule per-head, for example, computes the keys of one head only. An attention stays
// unchanged if its head sizes fill whole vectors, or if an operand has another use or does not come from such a
// product.
// Test: test/passes/plan/join-heads.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/plan/JoinHeads.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/plan/Planner.h"
#include "support/Loops.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_JOINHEADS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
/// A product whose output has more than one dimension of columns.
struct Projection {
  linalg::LinalgOp op;
  SmallVector<unsigned> rows, columns; // loops, in the order of the output
  unsigned reduction;
  int64_t firstColumn; // dimension of the right operand; the others follow
};
} // namespace

static std::optional<unsigned> findPosition(AffineMap map, unsigned loop) {
  return map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

/// Whether the init is a constant, or a bias with an element for each column.
static bool hasPlainInit(linalg::LinalgOp op, ArrayRef<unsigned> columns) {
  Value init = op.getDpsInits()[0];
  if (init.getDefiningOp<linalg::FillOp>())
    return true;
  auto broadcast = init.getDefiningOp<linalg::BroadcastOp>();
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return broadcast && broadcast.getDimensions().size() + columns.size() == out.getNumResults() &&
         llvm::none_of(columns, [&](unsigned loop) {
           return llvm::is_contained(broadcast.getDimensions(), *findPosition(out, loop));
         });
}

static std::optional<Projection> matchProjection(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!isProduct(op) || !op.hasPureTensorSemantics() || !value.hasOneUse())
    return std::nullopt;
  if (!llvm::all_equal(llvm::map_range(op->getOperandTypes(),
                                       [](Type type) { return getElementTypeOrSelf(type); })))
    return std::nullopt;
  AffineMap left = op.getMatchingIndexingMap(op.getDpsInputOperand(0)),
            right = op.getMatchingIndexingMap(op.getDpsInputOperand(1));
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  std::optional<SmallVector<unsigned>> ofResult = findResultLoops(op);
  if (reductions.size() != 1 || !ofResult)
    return std::nullopt;
  Projection projection = {op, {}, {}, reductions.front(), 0};
  for (unsigned loop : *ofResult) {
    if (left.isFunctionOfDim(loop) == right.isFunctionOfDim(loop))
      return std::nullopt;
    (left.isFunctionOfDim(loop) ? projection.rows : projection.columns).push_back(loop);
  }
  if (projection.columns.size() < 2 || !hasPlainInit(op, projection.columns))
    return std::nullopt;
  projection.firstColumn = *findPosition(right, projection.columns.front());
  for (auto [i, loop] : llvm::enumerate(projection.columns))
    if (findPosition(right, loop) != projection.firstColumn + i ||
        ShapedType::isDynamic(op.getStaticLoopRanges()[loop]))
      return std::nullopt;
  return projection;
}

linalg::LinalgOp attn::findProjection(Value value) {
  if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>())
    value = expand.getSrc();
  if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>()) // joins the panels
    value = collapse.getSrc();
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  return isProduct(op) ? op : linalg::LinalgOp();
}

int64_t attn::countJoinedHeads(AttentionOp op) {
  bool isJoined = op.getKey().getDefiningOp<tensor::ExpandShapeOp>() && findProjection(op.getKey());
  bool canJoin = llvm::all_of(ValueRange{op.getQuery(), op.getKey(), op.getValue()},
                              [](Value value) { return matchProjection(value).has_value(); });
  if (!isJoined && !canJoin)
    return 1;
  // The columns of the product are those of all heads together.
  linalg::LinalgOp product = findProjection(op.getKey());
  AffineMap left = product.getMatchingIndexingMap(product.getDpsInputOperand(0)),
            out = product.getMatchingIndexingMap(product.getDpsInitOperand(0));
  int64_t columns = 1;
  for (auto [loop, size] : llvm::enumerate(product.getStaticLoopRanges()))
    if (out.isFunctionOfDim(loop) && !left.isFunctionOfDim(loop))
      columns *= size;
  std::optional<unsigned> dim = findPosition(op.getKeyMap(), op.getDDim());
  int64_t size = cast<ShapedType>(op.getKey().getType()).getDimSize(*dim);
  return ShapedType::isDynamic(size) || size == 0 ? 1 : columns / size;
}

/// Collapses `count` dimensions of `value`, from dimension `first` on, into one dimension.
static Value collapse(OpBuilder &builder, Location loc, Value value, int64_t first, int64_t count) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim : llvm::seq(cast<ShapedType>(value.getType()).getRank()))
    if (dim <= first || dim >= first + count)
      groups.push_back({dim});
    else
      groups.back().push_back(dim);
  return tensor::CollapseShapeOp::create(builder, loc, value, groups);
}

static void join(IRRewriter &rewriter, AttentionOp attention, unsigned number) {
  MLIRContext *context = rewriter.getContext();
  OpOperand &operand = attention->getOpOperand(number);
  Projection projection = *matchProjection(operand.get());
  linalg::LinalgOp op = projection.op;
  ArrayRef<unsigned> rows = projection.rows, columns = projection.columns;
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  AffineMap left = op.getMatchingIndexingMap(op.getDpsInputOperand(0)),
            right = op.getMatchingIndexingMap(op.getDpsInputOperand(1)),
            out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  unsigned numRows = rows.size(), numLoops = numRows + 2; // then the column and the sum
  SmallVector<AffineExpr> renamed(op.getNumLoops());
  for (auto [i, loop] : llvm::enumerate(rows))
    renamed[loop] = getAffineDimExpr(i, context);
  for (unsigned loop : columns)
    renamed[loop] = getAffineDimExpr(numRows, context);
  renamed[projection.reduction] = getAffineDimExpr(numRows + 1, context);
  auto mapOf = [&](AffineMap map) {
    SmallVector<AffineExpr> results;
    for (AffineExpr result : map.replaceDimsAndSymbols(renamed, {}, numLoops, 0).getResults())
      if (results.empty() || results.back() != result)
        results.push_back(result);
    return AffineMap::get(numLoops, 0, results, context);
  };

  // The output has the rows first, in their order.
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<OpFoldResult> shape, split;
  SmallVector<AffineExpr> outExprs, readExprs;
  SmallVector<int64_t> splitShape;
  SmallVector<ReassociationIndices> groups;
  int64_t numColumns = 1;
  auto addDim = [&](unsigned loop) {
    unsigned dim = *findPosition(out, loop);
    split.push_back(dimOf(rewriter, loc, op->getResult(0), dim));
    splitShape.push_back(type.getDimSize(dim));
    readExprs.push_back(attention.getMap(number).getResult(dim));
  };
  for (unsigned loop : rows) {
    addDim(loop);
    shape.push_back(split.back());
    groups.push_back({int64_t(groups.size())});
  }
  groups.emplace_back();
  for (unsigned loop : columns) {
    groups.back().push_back(split.size());
    addDim(loop);
    numColumns *= splitShape.back();
  }
  shape.push_back(rewriter.getIndexAttr(numColumns));

  Value init = tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
  Operation *oldInit = op.getDpsInits()[0].getDefiningOp();
  if (auto fill = dyn_cast<linalg::FillOp>(oldInit)) {
    init = linalg::FillOp::create(rewriter, loc, fill.getInputs()[0], init).getResult(0);
  } else {
    Value bias =
        collapse(rewriter, loc, cast<linalg::BroadcastOp>(oldInit).getInput(), 0, columns.size());
    init = linalg::BroadcastOp::create(rewriter, loc, bias, init,
                                       llvm::to_vector(llvm::seq<int64_t>(0, numRows)))
               ->getResult(0);
  }
  Value weights =
      collapse(rewriter, loc, op.getDpsInputs()[1], projection.firstColumn, columns.size());
  for (unsigned dim = 0; dim <= numRows; ++dim)
    outExprs.push_back(getAffineDimExpr(dim, context));
  linalg::LinalgOp product =
      createProduct(rewriter, loc, op.getDpsInputs()[0], weights, init,
                    {mapOf(left), mapOf(right), AffineMap::get(numLoops, 0, outExprs, context)});
  Value heads = tensor::ExpandShapeOp::create(
      rewriter, loc, RankedTensorType::get(splitShape, type.getElementType()),
      product->getResult(0), groups, split);
  SmallVector<Attribute> maps(attention.getIndexingMaps().getValue());
  maps[number] = AffineMapAttr::get(
      AffineMap::get(attention.getMap(number).getNumDims(), 0, readExprs, context));
  rewriter.modifyOpInPlace(attention, [&] {
    operand.set(heads);
    attention.setIndexingMapsAttr(ArrayAttr::get(context, maps));
  });
  rewriter.eraseOp(op);
}

namespace {
struct JoinHeads : attn::impl::JoinHeadsBase<JoinHeads> {
  void runOnOperation() override {
    PlannerInterface planner = getPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](AttentionOp op) {
      bool isPhased = op.getPlan() && op.getPlan()->getSchedule() == Schedule::Phased;
      if (!isPhased || !AttentionShape::get(op).joinsHeads(planner.getLanes()) ||
          !llvm::all_of(ValueRange{op.getQuery(), op.getKey(), op.getValue()},
                        [](Value value) { return matchProjection(value).has_value(); }))
        return;
      for (unsigned number : {0, 1, 2})
        join(rewriter, op, number);
    });
  }
};
} // namespace
