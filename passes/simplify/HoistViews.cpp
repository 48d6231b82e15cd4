//===- HoistViews.cpp - views of a product become views of its operands ----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %y = linalg.contract (s,n,c)->(s,c), (n,c), (s,n) ins(%x, %w) outs(%0)       [S,C] x [3*H*D,C]
//   %e = tensor.expand_shape %y [[0], [1, 2, 3]]                                 [S,3,H,D]
//   %t = linalg.transpose %e permutation = [2, 1, 0, 3]                          [H,3,S,D]
//   %q = tensor.extract_slice %t[0, 0, 0, 0] [H, 1, S, D]                        [H,S,D]
// becomes
//   %e = tensor.expand_shape %w [[0, 1, 2], [3]]                                 [3,H,D,C]
//   %s = tensor.extract_slice %e[0, 0, 0, 0] [1, H, D, C]                        [H,D,C]
//   %q = linalg.contract (h,s,d,c)->(s,c), (h,d,c), (h,s,d) ins(%x, %s) outs(%1)
//
// The pass treats all structured ops that read their operands at loop variables only alike: a transposition renames the
// loops, an expansion or collapse of a dimension splits or merges a loop, a slice narrows a loop, and a dimension of
// size 1 that disappears removes its loop. Each operand that has the loop gets the same view; the other operands stay
// unchanged. Loops end up in the order of the result, reductions last.
//
// A product is never computed twice: its result must have no other use, or be cut into disjoint slices, and a view in a
// loop, such as one that writes rows of a cache, does not move over a product outside of the loop.
// Views of arguments and views of ops with `linalg.index` stay unchanged. A view that merges loops stays unchanged if
// an operand does not have these loops side by side. A transposition stays unchanged if the innermost dimension of the
// product would become too small for vectors, or its rows for register blocks.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/Rows.h"
#include "support/Loops.h"
#include "support/UnitDims.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_HOISTVIEWS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;

namespace {

//===----------------------------------------------------------------------===//
// The op under a view
//===----------------------------------------------------------------------===//

/// Whether `op` reads and writes its operands at loop variables only, so that a view of its only
/// result amounts to a change of its loops.
bool hasPlainLoops(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 || op.hasIndexSemantics())
    return false;
  auto isPlain = [](AffineMap map) {
    return llvm::all_of(map.getResults(), llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
  };
  return llvm::all_of(op.getIndexingMapsArray(), isPlain) &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isProjectedPermutation() &&
         op.getNumParallelLoops() ==
             op.getMatchingIndexingMap(op.getDpsInitOperand(0)).getNumResults();
}

/// The structured op that computes `source`, if it may be rebuilt without `user`, which reads `source`: `user` must be
/// the only one that does, and must not be in a loop that `op` is not in, unless the op is a fill. Otherwise null.
linalg::LinalgOp getProducer(Value source, Operation *user) {
  auto op = source.getDefiningOp<linalg::LinalgOp>();
  bool isReplaceable =
      op && hasPlainLoops(op) &&
      (isa<linalg::FillOp>(op) || (source.hasOneUse() && op->getBlock() == user->getBlock()));
  return isReplaceable ? op : linalg::LinalgOp();
}

/// Replaces `view` with `value`, whose type may have more or fewer static sizes.
void replaceView(PatternRewriter &rewriter, Operation *view, Value value) {
  Type type = view->getResult(0).getType();
  if (value.getType() != type)
    value = tensor::CastOp::create(rewriter, view->getLoc(), type, value);
  rewriter.replaceOp(view, value);
}

/// The size of dimension `dim` of an operand: an attribute if the type has a static size, else a value, which is
/// `known` if the view gives the size.
OpFoldResult getSize(OpBuilder &builder, Location loc, Value operand, int64_t dim,
                     OpFoldResult known = {}) {
  auto type = cast<RankedTensorType>(operand.getType());
  if (!type.isDynamicDim(dim))
    return builder.getIndexAttr(type.getDimSize(dim));
  return getValueOrCreateConstantIndexOp(builder, loc,
                                         known ? known : attn::dimOf(builder, loc, operand, dim));
}

/// The loops that the operand read through `map` runs over; none for a dimension read at a
/// constant.
SmallVector<std::optional<unsigned>> getLoops(AffineMap map) {
  return llvm::map_to_vector(map.getResults(), attn::findLoop);
}

//===----------------------------------------------------------------------===//
// The op without the view
//===----------------------------------------------------------------------===//

/// Returns `input` as an op reads it through `map`: `input` itself, or a transpose or a broadcast of `input`; null for
/// any other map.
Value createCopy(OpBuilder &builder, Location loc, Value input, Value init, AffineMap map) {
  std::optional<SmallVector<unsigned>> loops = attn::findLoops(map);
  if (!loops)
    return Value();
  SmallVector<int64_t> missing;
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
    if (!map.isFunctionOfDim(dim))
      missing.push_back(dim);
  if (missing.empty()) {
    if (map.isIdentity())
      return input;
    SmallVector<int64_t> permutation(loops->size());
    for (auto [dim, loop] : llvm::enumerate(*loops))
      permutation[loop] = dim;
    return linalg::TransposeOp::create(builder, loc, input, init, permutation)->getResult(0);
  }
  return llvm::is_sorted(*loops)
             ? linalg::BroadcastOp::create(builder, loc, input, init, missing)->getResult(0)
             : Value();
}

/// Rebuilds `op` so that it reads `operands` through `maps`; the init is last.
Value rebuild(OpBuilder &builder, linalg::LinalgOp op, ValueRange operands,
              ArrayRef<AffineMap> maps) {
  Location loc = op.getLoc();
  ValueRange inputs = operands.drop_back();
  Value init = operands.back();

  // The new loops are those of the result, in its order, and then reductions. Loops that no map names any more are
  // dropped.
  SmallVector<AffineExpr> order(maps.back().getResults());
  for (AffineMap map : maps)
    for (AffineExpr expr : map.getResults())
      if (attn::findLoop(expr) && !llvm::is_contained(order, expr))
        order.push_back(expr);
  SmallVector<AffineExpr> renamed(maps.back().getNumDims(), builder.getAffineConstantExpr(0));
  for (auto [i, expr] : llvm::enumerate(order))
    renamed[*attn::findLoop(expr)] = builder.getAffineDimExpr(i);
  SmallVector<AffineMap> ordered;
  for (AffineMap map : maps)
    ordered.push_back(map.replaceDimsAndSymbols(renamed, {}, order.size(), 0));

  if (isa<linalg::FillOp>(op))
    return linalg::FillOp::create(builder, loc, inputs, init).getResult(0);
  if (attn::isCopy(op))
    if (Value copy = createCopy(builder, loc, inputs[0], init, ordered[0]))
      return copy;
  if (auto contract = dyn_cast<linalg::ContractOp>(*op)) {
    SmallVector<NamedAttribute> attributes;
    for (NamedAttribute attribute : op->getAttrs())
      if (attribute.getName() != contract.getIndexingMapsAttrName() &&
          attribute.getName() != linalg::ContractOp::getOperandSegmentSizeAttr())
        attributes.push_back(attribute);
    return linalg::ContractOp::create(builder, loc, init.getType(), inputs, init,
                                      builder.getAffineMapArrayAttr(ordered), attributes)
        .getResult(0);
  }
  SmallVector<utils::IteratorType> iterators(order.size(), utils::IteratorType::reduction);
  std::fill_n(iterators.begin(), maps.back().getNumResults(), utils::IteratorType::parallel);
  auto generic =
      linalg::GenericOp::create(builder, loc, init.getType(), inputs, init, ordered, iterators);
  IRMapping mapping;
  op->getRegion(0).cloneInto(&generic.getRegion(), mapping);
  return generic.getResult(0);
}

//===----------------------------------------------------------------------===//
// Transpositions
//===----------------------------------------------------------------------===//

struct FoldEmptyTranspose : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp view,
                                PatternRewriter &rewriter) const override {
    auto isEmpty = [](Value value) { return value.getDefiningOp<tensor::EmptyOp>() != nullptr; };
    if (!isEmpty(view.getInput()) || !isEmpty(view.getInit()))
      return rewriter.notifyMatchFailure(view, "expected an empty tensor under the view");
    rewriter.replaceOp(view, view.getInit());
    return success();
  }
};

/// Whether `op` is a product, and its result transposed by `permutation` would have an innermost dimension that is too
/// small for vectors, in place of a larger one. An unknown size counts as large.
bool losesVectors(linalg::LinalgOp op, ArrayRef<int64_t> permutation) {
  constexpr int64_t kLeastVector = 4;
  ArrayRef<int64_t> sizes = cast<ShapedType>(op->getResult(0).getType()).getShape();
  if (op.getNumReductionLoops() == 0 || sizes.empty())
    return false;
  auto isSmall = [](int64_t size) { return !ShapedType::isDynamic(size) && size < kLeastVector; };
  return isSmall(sizes[permutation.back()]) && !isSmall(sizes.back());
}

/// Returns how many rows of `product` would lie at equal distances in its left operand and its result after a
/// transposition of the result by `permutation`. A dynamic size counts as kLarge rows, and the function returns at most
/// kLarge.
int64_t countRows(linalg::LinalgOp product, ArrayRef<int64_t> permutation) {
  constexpr int64_t kLarge = 1 << 20;
  AffineMap out = product.getMatchingIndexingMap(product.getDpsInitOperand(0));
  int64_t rows = 1;
  for (int64_t loop : attn::findEvenRowLoops(
           product, AffineMap::getPermutationMap(permutation, out.getContext()).compose(out))) {
    int64_t range = product.getStaticLoopRanges()[loop];
    rows = std::min(kLarge, ShapedType::isDynamic(range) ? kLarge : rows * range);
  }
  return rows;
}

/// Whether `op` is a product whose register blocks would have fewer than kLeastRows rows after a transposition of its
/// result by `permutation`, but have more rows without it. This happens if tokens of an image are merged two by two.
bool losesRows(linalg::LinalgOp op, ArrayRef<int64_t> permutation) {
  constexpr int64_t kLeastRows = 4;
  if (!attn::isProduct(op))
    return false;
  int64_t rows = countRows(op, permutation);
  // A single row is that of a sequence of one token, whose transposition moves nothing.
  return rows > 1 && rows < kLeastRows &&
         countRows(op, llvm::to_vector(llvm::seq<int64_t>(0, permutation.size()))) >=
             2 * kLeastRows;
}

struct HoistTranspose : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp view,
                                PatternRewriter &rewriter) const override {
    linalg::LinalgOp op = getProducer(view.getInput(), view);
    if (!op)
      return rewriter.notifyMatchFailure(
          view, "expected a structured op without another use under the view");
    if (losesVectors(op, view.getPermutation()) || losesRows(op, view.getPermutation()))
      return rewriter.notifyMatchFailure(view, "expected rows and columns for register blocks");
    SmallVector<Value> operands(op->getOperands());
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    operands.back() = linalg::TransposeOp::create(rewriter, view.getLoc(), operands.back(),
                                                  view.getInit(), view.getPermutation())
                          ->getResult(0);
    maps.back() =
        AffineMap::getPermutationMap(view.getPermutation(), getContext()).compose(maps.back());
    replaceView(rewriter, view, rebuild(rewriter, op, operands, maps));
    return success();
  }
};

/// If `map` reads `operand` in an order other than that of the loops, inserts a transposition, which can be hoisted
/// over the producer. Returns the map through which the transposed operand is read, in the order of the loops.
FailureOr<AffineMap> exposeTranspose(PatternRewriter &rewriter, OpOperand &operand, AffineMap map) {
  linalg::LinalgOp producer = getProducer(operand.get(), operand.getOwner());
  std::optional<SmallVector<unsigned>> loops = attn::findLoops(map);
  if (!producer || attn::isCopy(producer) || isa<linalg::FillOp>(producer) || !loops)
    return failure();
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, map.getNumResults()));
  llvm::sort(permutation, [&](int64_t a, int64_t b) { return (*loops)[a] < (*loops)[b]; });
  if (llvm::is_sorted(permutation) || losesVectors(producer, permutation) ||
      losesRows(producer, permutation))
    return failure();
  Location loc = operand.getOwner()->getLoc();
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : permutation)
    sizes.push_back(attn::dimOf(rewriter, loc, operand.get(), dim));
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, sizes, getElementTypeOrSelf(operand.get().getType()));
  auto transpose = linalg::TransposeOp::create(rewriter, loc, operand.get(), empty, permutation);
  rewriter.modifyOpInPlace(operand.getOwner(), [&] { operand.set(transpose->getResult(0)); });
  return AffineMap::getPermutationMap(permutation, map.getContext()).compose(map);
}

/// Makes an elementwise op read its operands in the order of its result.
struct OrderElementwise : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (!hasPlainLoops(op) || op.getNumReductionLoops() > 0 ||
        !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
      return rewriter.notifyMatchFailure(op, "expected an elementwise op");
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    for (OpOperand *input : op.getDpsInputOperands()) {
      FailureOr<AffineMap> map = exposeTranspose(rewriter, *input, maps[input->getOperandNumber()]);
      if (failed(map))
        continue;
      maps[input->getOperandNumber()] = *map;
      rewriter.modifyOpInPlace(
          op, [&] { op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps)); });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "expected a product read in another order");
  }
};

/// Makes an attention read query, key and value head-major: (batch..., row, feature), the order of its loops.
struct OrderAttention : OpRewritePattern<attn::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(attn::AttentionOp op, PatternRewriter &rewriter) const override {
    for (unsigned i = 0; i < 3; ++i) {
      FailureOr<AffineMap> map = exposeTranspose(rewriter, op->getOpOperand(i), op.getMap(i));
      if (failed(map))
        continue;
      SmallVector<Attribute> maps(op.getIndexingMaps().getValue());
      maps[i] = AffineMapAttr::get(*map);
      rewriter.modifyOpInPlace(op, [&] { op.setIndexingMapsAttr(rewriter.getArrayAttr(maps)); });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "expected a product read in another order");
  }
};

//===----------------------------------------------------------------------===//
// Split loops
//===----------------------------------------------------------------------===//

struct HoistExpand : OpRewritePattern<tensor::ExpandShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExpandShapeOp view,
                                PatternRewriter &rewriter) const override {
    linalg::LinalgOp op = getProducer(view.getSrc(), view);
    if (!op || view.getSrcType().getRank() == 0) // the dimensions of an expanded scalar are of no loop
      return rewriter.notifyMatchFailure(
          view, "expected a structured op without another use under the view, not a scalar");

    // The sizes that each loop is split into; empty for reductions, which the view does not have.
    SmallVector<SmallVector<OpFoldResult>> parts(op.getNumLoops());
    SmallVector<OpFoldResult> shape = view.getMixedOutputShape();
    for (auto [loop, group] : llvm::zip_equal(*attn::findResultLoops(op), view.getReassociationIndices()))
      for (int64_t i : group)
        parts[loop].push_back(shape[i]);

    SmallVector<SmallVector<AffineExpr>> split(op.getNumLoops());
    unsigned numLoops = 0;
    for (auto [loop, sizes] : llvm::enumerate(parts))
      for (size_t i = 0, e = std::max<size_t>(sizes.size(), 1); i < e; ++i)
        split[loop].push_back(rewriter.getAffineDimExpr(numLoops++));

    SmallVector<Value> operands;
    SmallVector<AffineMap> maps;
    for (auto [operand, map] : llvm::zip_equal(op->getOperands(), op.getIndexingMapsArray())) {
      SmallVector<AffineExpr> exprs;
      SmallVector<ReassociationIndices> groups;
      SmallVector<OpFoldResult> sizes;
      for (auto [i, loop] : llvm::enumerate(getLoops(map))) {
        size_t first = exprs.size();
        if (loop)
          llvm::append_range(exprs, split[*loop]);
        else
          exprs.push_back(map.getResult(i));
        groups.emplace_back(llvm::to_vector(llvm::seq<int64_t>(first, exprs.size())));
        if (groups.back().size() > 1)
          llvm::append_range(sizes, parts[*loop]);
        else
          sizes.push_back(
              getSize(rewriter, view.getLoc(), operand, i,
                      loop && !parts[*loop].empty() ? parts[*loop][0] : OpFoldResult()));
      }
      maps.push_back(AffineMap::get(numLoops, 0, exprs, getContext()));
      if (exprs.size() == map.getNumResults()) {
        operands.push_back(operand);
        continue;
      }
      auto type = cast<RankedTensorType>(operand.getType());
      auto expanded =
          RankedTensorType::get(decomposeMixedValues(sizes).first, type.getElementType());
      operands.push_back(
          tensor::ExpandShapeOp::create(rewriter, view.getLoc(), expanded, operand, groups, sizes));
    }
    replaceView(rewriter, view, rebuild(rewriter, op, operands, maps));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Merged loops
//===----------------------------------------------------------------------===//

struct HoistCollapse : OpRewritePattern<tensor::CollapseShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::CollapseShapeOp view,
                                PatternRewriter &rewriter) const override {
    linalg::LinalgOp op = getProducer(view.getSrc(), view);
    if (!op)
      return rewriter.notifyMatchFailure(
          view, "expected a structured op without another use under the view");

    // The first loop of each merged group absorbs the others; `merged` has the group at the first loop.
    SmallVector<unsigned> ofResult = *attn::findResultLoops(op); // getProducer has checked the loops
    SmallVector<SmallVector<unsigned>> merged(op.getNumLoops());
    for (ReassociationIndices group : view.getReassociationIndices())
      if (group.size() > 1)
        for (int64_t dim : group)
          merged[ofResult[group[0]]].push_back(ofResult[dim]);
    llvm::SmallDenseSet<unsigned> absorbed;
    for (ArrayRef<unsigned> group : merged)
      for (unsigned loop : group.empty() ? group : group.drop_front())
        absorbed.insert(loop);

    SmallVector<SmallVector<ReassociationIndices>> groupsOf;
    SmallVector<AffineMap> maps;
    for (AffineMap map : op.getIndexingMapsArray()) {
      SmallVector<AffineExpr> exprs;
      SmallVector<ReassociationIndices> &groups = groupsOf.emplace_back();
      auto loops = getLoops(map);
      for (unsigned i = 0; i < loops.size();) {
        if (loops[i] && absorbed.contains(*loops[i]))
          return rewriter.notifyMatchFailure(view,
                                             "expected merged loops side by side in each operand");
        unsigned size = loops[i] ? std::max<size_t>(merged[*loops[i]].size(), 1) : 1;
        for (unsigned j = 1; j < size; ++j)
          if (i + j >= loops.size() || loops[i + j] != merged[*loops[i]][j])
            return rewriter.notifyMatchFailure(
                view, "expected merged loops side by side in each operand");
        exprs.push_back(map.getResult(i));
        groups.emplace_back(llvm::to_vector(llvm::seq<int64_t>(i, i + size)));
        i += size;
      }
      maps.push_back(AffineMap::get(map.getNumDims(), 0, exprs, getContext()));
    }

    SmallVector<Value> operands;
    for (auto [operand, map, groups] :
         llvm::zip_equal(op->getOperands(), op.getIndexingMapsArray(), groupsOf)) {
      bool stays = groups.size() == map.getNumResults();
      operands.push_back(
          stays ? operand
                : tensor::CollapseShapeOp::create(rewriter, view.getLoc(), operand, groups));
    }
    replaceView(rewriter, view, rebuild(rewriter, op, operands, maps));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Narrowed and dropped loops
//===----------------------------------------------------------------------===//

/// The range to which a view cuts the loop of one result dimension.
struct Cut {
  OpFoldResult offset, size, stride;
  bool isDropped = false, isWhole = false;
};

/// Whether all users of the result of `op` are slices, none in a loop that `op` is not in, and no element is in two of
/// them.
bool isCutIntoParts(Operation *op) {
  SmallVector<tensor::ExtractSliceOp> slices;
  for (Operation *user : op->getUsers()) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!slice || !slice.hasUnitStride() || slice->getBlock() != op->getBlock())
      return false;
    slices.push_back(slice);
  }
  auto areApart = [](tensor::ExtractSliceOp a, tensor::ExtractSliceOp b) {
    for (auto [offsetA, sizeA, offsetB, sizeB] : llvm::zip_equal(
             a.getStaticOffsets(), a.getStaticSizes(), b.getStaticOffsets(), b.getStaticSizes()))
      if (!ShapedType::isDynamic(offsetA) && !ShapedType::isDynamic(offsetB) &&
          ((!ShapedType::isDynamic(sizeA) && offsetA + sizeA <= offsetB) ||
           (!ShapedType::isDynamic(sizeB) && offsetB + sizeB <= offsetA)))
        return true;
    return false;
  };
  for (auto [i, a] : llvm::enumerate(slices))
    for (tensor::ExtractSliceOp b : ArrayRef(slices).drop_front(i + 1))
      if (!areApart(a, b))
        return false;
  return true;
}

/// `value` without the unit dimensions `dropped`.
Value collapseDims(OpBuilder &builder, Location loc, Value value,
                   const llvm::SmallBitVector &dropped) {
  if (dropped.none())
    return value;
  return tensor::CollapseShapeOp::create(builder, loc, value, attn::groupsWithout(dropped));
}

/// A slice without the unit dimensions `dropped`. If several dimensions of a slice have size 1, as after tiling,
/// upstream assumes that the leading dimensions were dropped. Therefore the slice drops leading dimensions only, and a
/// collapse drops the others.
Value createSlice(OpBuilder &builder, Location loc, Value source, ArrayRef<OpFoldResult> offsets,
                  ArrayRef<OpFoldResult> sizes, ArrayRef<OpFoldResult> strides,
                  const llvm::SmallBitVector &dropped) {
  int numLeading = dropped.find_first_unset();
  numLeading = numLeading < 0 ? dropped.size() : numLeading;
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes.drop_front(numLeading))
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(source.getType()));
  Value slice = tensor::ExtractSliceOp::create(builder, loc, type, source, offsets, sizes, strides);
  llvm::SmallBitVector rest(shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim)
    rest[dim] = dropped[numLeading + dim];
  return collapseDims(builder, loc, slice, rest);
}

/// Rebuilds `op` with the loops of its result cut as `cutsOfResult` says.
Value cutLoops(PatternRewriter &rewriter, Location loc, linalg::LinalgOp op,
               MutableArrayRef<Cut> cutsOfResult) {
  SmallVector<std::optional<Cut>> cuts(op.getNumLoops());
  SmallVector<unsigned> ofResult = *attn::findResultLoops(op); // getProducer has checked the loops
  for (auto [dim, cut] : llvm::enumerate(cutsOfResult)) {
    if (!cut.isDropped && isZeroInteger(cut.offset) && isOneInteger(cut.stride)) {
      FailureOr<bool> isEqual = ValueBoundsConstraintSet::areEqual(
          ValueBoundsConstraintSet::Variable(op->getResult(0), static_cast<int64_t>(dim)),
          ValueBoundsConstraintSet::Variable(cut.size));
      cut.isWhole = succeeded(isEqual) && *isEqual;
    }
    cuts[ofResult[dim]] = cut;
  }

  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), op.getIndexingMapsArray())) {
    SmallVector<AffineExpr> exprs;
    SmallVector<OpFoldResult> offsets, sizes, strides;
    llvm::SmallBitVector dropped(map.getNumResults());
    bool isCut = false;
    for (auto [i, loop] : llvm::enumerate(getLoops(map))) {
      Cut cut = {rewriter.getIndexAttr(0), OpFoldResult(), rewriter.getIndexAttr(1), false, true};
      if (loop && cuts[*loop])
        cut = *cuts[*loop];
      if (cut.isWhole)
        cut.size = getSize(rewriter, loc, operand, i, cut.size);
      else
        isCut = true;
      offsets.push_back(cut.offset);
      sizes.push_back(cut.size);
      strides.push_back(cut.stride);
      if (cut.isDropped)
        dropped.set(i);
      else
        exprs.push_back(map.getResult(i));
    }
    maps.push_back(AffineMap::get(map.getNumDims(), 0, exprs, rewriter.getContext()));
    if (isCut)
      operand = createSlice(rewriter, loc, operand, offsets, sizes, strides, dropped);
    operands.push_back(operand);
  }
  return rebuild(rewriter, op, operands, maps);
}

struct HoistSlice : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  static llvm::SmallBitVector getCutDims(tensor::ExtractSliceOp view);

  LogicalResult matchAndRewrite(tensor::ExtractSliceOp view,
                                PatternRewriter &rewriter) const override {
    auto op = view.getSource().getDefiningOp<linalg::LinalgOp>();
    if (!op || !hasPlainLoops(op))
      return rewriter.notifyMatchFailure(view, "expected a structured op under the view");
    if (!isa<linalg::FillOp>(op) && !isCutIntoParts(op))
      return rewriter.notifyMatchFailure(view, "expected only disjoint slices of the product");
    SmallVector<Cut> cuts;
    llvm::SmallBitVector dropped = getCutDims(view);
    for (auto [i, range] : llvm::enumerate(
             llvm::zip_equal(view.getMixedOffsets(), view.getMixedSizes(), view.getMixedStrides())))
      cuts.push_back({std::get<0>(range), std::get<1>(range), std::get<2>(range), dropped[i]});
    replaceView(rewriter, view, cutLoops(rewriter, view.getLoc(), op, cuts));
    return success();
  }
};

/// The dimensions of size 1 that `view` drops. If the types of the view leave a choice, takes a dimension that the view
/// cuts to size 1 rather than a dimension that had size 1 before.
llvm::SmallBitVector HoistSlice::getCutDims(tensor::ExtractSliceOp view) {
  llvm::SmallBitVector dropped = view.getDroppedDims();
  ArrayRef<int64_t> source = view.getSourceType().getShape(), sizes = view.getStaticSizes();
  for (unsigned first = 0; first < dropped.size(); ++first) {
    if (!dropped[first] || source[first] != 1)
      continue;
    for (unsigned dim = first + 1; dim < sizes.size() && sizes[dim] == 1; ++dim)
      if (!dropped[dim] && source[dim] != 1) {
        dropped.flip(first);
        dropped.flip(dim);
        break;
      }
  }
  return dropped;
}

/// If a collapse removes dimensions of size 1, removes their loops, and removes the dimensions from all operands. A
/// second collapse merges the other dimensions.
struct HoistUnitCollapse : OpRewritePattern<tensor::CollapseShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::CollapseShapeOp view,
                                PatternRewriter &rewriter) const override {
    linalg::LinalgOp op = getProducer(view.getSrc(), view);
    if (!op)
      return rewriter.notifyMatchFailure(
          view, "expected a structured op without another use under the view");
    ArrayRef<int64_t> shape = view.getSrcType().getShape();
    llvm::SmallBitVector dropped(shape.size());
    SmallVector<ReassociationIndices> groups;
    int64_t numKept = 0;
    if (view.getReassociationIndices().empty()) // a scalar remains
      dropped.set();
    for (ReassociationIndices group : view.getReassociationIndices()) {
      size_t numLeft = group.size();
      for (int64_t dim : group)
        if (shape[dim] == 1 && numLeft > 1) {
          dropped.set(dim);
          --numLeft;
        }
      groups.emplace_back(llvm::to_vector(llvm::seq<int64_t>(numKept, numKept + numLeft)));
      numKept += numLeft;
    }
    if (dropped.none())
      return rewriter.notifyMatchFailure(view, "expected a unit dimension to disappear");

    SmallVector<Cut> cuts;
    for (unsigned dim = 0; dim < shape.size(); ++dim)
      cuts.push_back({rewriter.getIndexAttr(0),
                      getSize(rewriter, view.getLoc(), view.getSrc(), dim),
                      rewriter.getIndexAttr(1), dropped[dim]});
    Value cut = cutLoops(rewriter, view.getLoc(), op, cuts);
    if (numKept > static_cast<int64_t>(groups.size()))
      cut = tensor::CollapseShapeOp::create(rewriter, view.getLoc(), cut, groups);
    replaceView(rewriter, view, cut);
    return success();
  }
};

/// Limits of the rewriting, which are far beyond the needs of the models in test/models/zoo.py.
static constexpr int64_t kIterations = 100, kRewritesPerOp = 100;

struct HoistViews : attn::impl::HoistViewsBase<HoistViews> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<FoldEmptyTranspose, HoistTranspose, OrderElementwise, OrderAttention, HoistExpand,
                 HoistSlice>(context);
    patterns.add<HoistUnitCollapse>(context, /*benefit=*/2);
    patterns.add<HoistCollapse>(context);
    // These patterns fold views of empty tensors and views of views, and make sizes refer to arguments, so that the
    // patterns above match.
    tensor::populateFoldTensorEmptyPatterns(patterns);
    tensor::populateMergeConsecutiveInsertExtractSlicePatterns(patterns);
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    tensor::DimOp::getCanonicalizationPatterns(patterns, context);
    tensor::populateBubbleUpExpandShapePatterns(patterns);
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
    tensor::ExtractSliceOp::getCanonicalizationPatterns(patterns, context);
    attn::populateFoldPartSizes(patterns);
    linalg::TransposeOp::getCanonicalizationPatterns(patterns, context);
    // Every hoist moves a view closer to the arguments, so the rewriting should terminate. The limits report an error
    // if patterns undo each other.
    int64_t numOps = 0;
    getOperation().walk([&](Operation *) { ++numOps; });
    auto config = GreedyRewriteConfig()
                      .setMaxIterations(kIterations)
                      .setMaxNumRewrites(kRewritesPerOp * numOps); // in each iteration
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config))) {
      getOperation().emitError() << "expected views to be hoisted within " << kIterations
                                 << " iterations, got more";
      signalPassFailure();
    }
  }
};

} // namespace
