//===- SplitMergedBatch.cpp - products of matrices keep their batch --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]]                  [B,H,S,D] -> [B*H,S,D]
//   %k3 = tensor.collapse_shape %k [[0, 1], [2], [3]]
//   %s3 = linalg.contract (b,q,d), (b,k,d) -> (b,q,k) ins(%q3, %k3)
//   %s = tensor.expand_shape %s3 [[0, 1], [2], [3]]                    [B*H,S,T] -> [B,H,S,T]
// becomes
//   %s = linalg.contract (b,h,q,d), (b,h,k,d) -> (b,h,q,k) ins(%q, %k)
//
// Models written by hand and the decompositions of PyTorch use products that take one batch dimension. A reshape that
// splits the batch dimension of scores moves to the operands of their product. A reshape that merges batch dimensions
// of the softmax's result moves behind the product with the values. Both kinds of reshapes also move past the softmax
// and the elementwise ops around it. Where a split and a merge meet, they cancel out. Reshapes of rows and columns
// stay. A batch that is merged before the first product and split after the last product stays merged. Reshapes that
// add or drop a dimension of size 1 move too if the softmax has this dimension: a single head is then a dimension of
// the batch.
// Test: test/passes/raise/split-merged-batch.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_SPLITMERGEDBATCH
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Whether `op` is a matrix product, and `dims` are batch dimensions of the operand or result with indexing map `map`.
static bool areBatchDims(linalg::LinalgOp op, AffineMap map, ArrayRef<unsigned> dims) {
  FailureOr<linalg::ContractionDimensions> contraction = linalg::inferContractionDims(op);
  return succeeded(contraction) && llvm::all_of(dims, [&](unsigned dim) {
           auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
           return loop && llvm::is_contained(contraction->batch, loop.getPosition());
         });
}

/// Whether `op` computes elements from elements in the same place, is a reshape, or adds or drops the column of a sink.
static bool isElementwiseOrReshape(Operation *op) {
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ConcatOp,
             tensor::ExtractSliceOp>(op) ||
         (structured && isScalarFunction(structured));
}

/// Whether `value` is computed from the result of a softmax by elementwise ops and reshapes alone.
static bool comesFromSoftmax(Value value) {
  SmallVector<Value> values = {value};
  DenseSet<Value> seen;
  while (!values.empty()) {
    Operation *op = values.pop_back_val().getDefiningOp();
    if (isa_and_nonnull<linalg::SoftmaxOp>(op))
      return true;
    if (op && isElementwiseOrReshape(op))
      for (Value operand : op->getOperands())
        if (seen.insert(operand).second)
          values.push_back(operand);
  }
  return false;
}

/// Whether a softmax reads `value`, directly or through elementwise ops and reshapes. With `inItsShape`, no reshape
/// may merge dimensions on the way.
static bool leadsToSoftmax(Value value, bool inItsShape = false) {
  SmallVector<Value> values = {value};
  DenseSet<Value> seen;
  while (!values.empty())
    for (Operation *user : values.pop_back_val().getUsers()) {
      if (isa<linalg::SoftmaxOp>(user))
        return true;
      if (isElementwiseOrReshape(user) && !(inItsShape && isa<tensor::CollapseShapeOp>(user)) &&
          seen.insert(user->getResult(0)).second)
        values.push_back(user->getResult(0));
    }
  return false;
}

/// The dimensions that merge several dimensions of `longer`. Dimensions of size 1 count only with `countsUnits`. A
/// dimension of size 1 that the softmax does not have need not move, because attn-raise-attention reads scores through
/// reshapes that add or drop it.
static SmallVector<unsigned> findMergedDims(Value longer, ArrayRef<ReassociationIndices> groups,
                                            bool countsUnits = false) {
  ArrayRef<int64_t> sizes = cast<ShapedType>(longer.getType()).getShape();
  SmallVector<unsigned> merged;
  for (auto [dim, group] : llvm::enumerate(groups))
    if (llvm::count_if(group, [&](int64_t dim) { return countsUnits || sizes[dim] != 1; }) > 1)
      merged.push_back(dim);
  return merged;
}

/// Whether `reshape` moves to the other side of `op`. Either the result of `reshape` is an operand of `op`, or
/// `reshape` reads the result of `op`; `map` is the indexing map of this operand or result.
template <typename ReshapeOp>
static bool movesOver(ReshapeOp reshape, linalg::LinalgOp op, AffineMap map) {
  constexpr bool isInFront = std::is_same_v<ReshapeOp, tensor::CollapseShapeOp>;
  Value longer = isInFront ? reshape.getSrc() : reshape.getResult();
  // Unit dimensions move if the softmax has them too.
  bool movesUnits =
      isInFront ? comesFromSoftmax(longer) : leadsToSoftmax(longer, /*inItsShape=*/true);
  SmallVector<unsigned> merged =
      findMergedDims(longer, reshape.getReassociationIndices(), movesUnits);
  if (merged.empty())
    return false;
  if (isScalarFunction(op)) {
    // A reshape that merges columns would stop in front of the softmax, which needs the merged columns as one
    // dimension.
    auto isColumn = [&](unsigned dim) {
      return map.getResult(dim) == getAffineDimExpr(op.getNumLoops() - 1, op.getContext());
    };
    return !isa<linalg::FillOp>(op) &&
           (comesFromSoftmax(op->getResult(0)) ||
            (leadsToSoftmax(op->getResult(0)) && llvm::none_of(merged, isColumn)));
  }
  return areBatchDims(op, map, merged) &&
         (isInFront ? comesFromSoftmax(longer) : leadsToSoftmax(longer));
}

/// Calls movesOver() for the two ops that `fused` connects, the producer and the reader, one of which is a reshape.
static bool movesOverEnd(OpOperand *fused) {
  auto collapse = fused->get().getDefiningOp<tensor::CollapseShapeOp>();
  if (auto op = dyn_cast<linalg::LinalgOp>(fused->getOwner()); op && collapse)
    return movesOver(collapse, op, op.getMatchingIndexingMap(fused));
  auto expand = dyn_cast<tensor::ExpandShapeOp>(fused->getOwner());
  auto op = fused->get().getDefiningOp<linalg::LinalgOp>();
  return op && expand && op->hasOneUse() &&
         movesOver(expand, op, op.getMatchingIndexingMap(op.getDpsInitOperand(0)));
}

/// Groups each dimension whose size is not 1 with the dimensions of size 1 that follow it; leading dimensions of size 1
/// join the first group.
static SmallVector<ReassociationIndices> groupUnitsWithOthers(ArrayRef<int64_t> shape) {
  SmallVector<ReassociationIndices> groups;
  bool onlyUnits = true;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (groups.empty() || (size != 1 && !onlyUnits))
      groups.emplace_back();
    onlyUnits &= size == 1;
    groups.back().push_back(dim);
  }
  return groups;
}

namespace {
/// The softmax of a tensor with merged batch dimensions becomes the softmax of the unmerged tensor, followed by the
/// merge.
struct MoveOverSoftmax : OpRewritePattern<linalg::SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::SoftmaxOp softmax,
                                PatternRewriter &rewriter) const override {
    auto collapse = softmax.getInput().getDefiningOp<tensor::CollapseShapeOp>();
    if (!collapse || findMergedDims(collapse.getSrc(), collapse.getReassociationIndices()).empty())
      return rewriter.notifyMatchFailure(softmax, "expected an input with merged dimensions");
    SmallVector<ReassociationIndices> groups = collapse.getReassociationIndices();
    const ReassociationIndices &group = groups[softmax.getDimension()];
    if (group.size() != 1)
      return rewriter.notifyMatchFailure(softmax, "expected a dimension that is not merged");
    Location loc = softmax.getLoc();
    Value source = collapse.getSrc();
    Value empty = tensor::EmptyOp::create(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, source), getElementTypeOrSelf(source));
    auto split = linalg::SoftmaxOp::create(rewriter, loc, TypeRange(source.getType()), source,
                                           empty, group.front());
    rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(softmax, softmax.getResultTypes()[0],
                                                         split->getResult(0), groups);
    return success();
  }
};

/// Splits a reshape that merges or splits dimensions, and also adds or drops dimensions of size 1, into two reshapes,
/// so that only merged dimensions move. The reshape of the dimensions of size 1 precedes a collapse and follows an
/// expansion.
template <typename ReshapeOp> struct SeparateUnits : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern<ReshapeOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp reshape, PatternRewriter &rewriter) const override {
    constexpr bool isCollapse = std::is_same_v<ReshapeOp, tensor::CollapseShapeOp>;
    auto longer = cast<RankedTensorType>(isCollapse ? reshape.getSrc().getType()
                                                    : reshape.getResult().getType());
    auto shorter = cast<RankedTensorType>(isCollapse ? reshape.getResult().getType()
                                                     : reshape.getSrc().getType());
    // `ofUnits` groups the dimensions of the longer shape into the shape between; `ofMerged` groups the dimensions of
    // the shape between into the shorter shape.
    SmallVector<ReassociationIndices> ofUnits, ofMerged;
    SmallVector<int64_t> between;
    bool hasUnits = false, hasMerged = false;
    for (auto [dim, group] : llvm::enumerate(reshape.getReassociationIndices())) {
      ReassociationIndices merged;
      bool isMerged =
          llvm::count_if(group, [&](int64_t dim) { return longer.getDimSize(dim) != 1; }) > 1;
      hasMerged |= isMerged;
      hasUnits |= !isMerged && group.size() > 1;
      for (int64_t longDim : group) {
        if (isMerged || longDim == group.front()) {
          merged.push_back(between.size());
          between.push_back(isMerged ? longer.getDimSize(longDim) : shorter.getDimSize(dim));
          ofUnits.emplace_back();
        }
        ofUnits.back().push_back(longDim);
      }
      ofMerged.push_back(merged);
    }
    if (!hasUnits || !hasMerged)
      return rewriter.notifyMatchFailure(reshape, "expected unit dimensions beside merged ones");
    auto type = RankedTensorType::get(between, longer.getElementType());
    Location loc = reshape.getLoc();
    if constexpr (isCollapse) {
      Value dropped =
          tensor::CollapseShapeOp::create(rewriter, loc, type, reshape.getSrc(), ofUnits);
      rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(reshape, shorter, dropped, ofMerged);
    } else {
      SmallVector<OpFoldResult> sizes;
      for (const ReassociationIndices &group : ofUnits) {
        auto sized = llvm::find_if(group, [&](int64_t dim) { return longer.getDimSize(dim) != 1; });
        sizes.push_back(
            reshape.getMixedOutputShape()[sized == group.end() ? group.front() : *sized]);
      }
      Value split =
          tensor::ExpandShapeOp::create(rewriter, loc, type, reshape.getSrc(), ofMerged, sizes);
      rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(reshape, longer, split, ofUnits,
                                                         reshape.getMixedOutputShape());
    }
    return success();
  }
};

/// Moves dimensions of size 1 at the start of a group to the group before it, as long as a dimension stays in the
/// group: [[0], [1, 2], [3]] of [B, 1, S, T] becomes [[0, 1], [2], [3]]. The batch of a product comes first, so a head
/// count of 1 then belongs to the batch and not to the rows. A group that has only dimensions of size 1, and is not the
/// first, takes no more dimensions, because it is the row of a single query.
template <typename ReshapeOp> struct GroupUnitsWithBatch : OpRewritePattern<ReshapeOp> {
  /// The greater benefit lets this pattern run before SeparateUnits, which separates the dimensions of size 1 of each
  /// group.
  GroupUnitsWithBatch(MLIRContext *context) : OpRewritePattern<ReshapeOp>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(ReshapeOp reshape, PatternRewriter &rewriter) const override {
    constexpr bool isCollapse = std::is_same_v<ReshapeOp, tensor::CollapseShapeOp>;
    auto longer = cast<RankedTensorType>(isCollapse ? reshape.getSrc().getType()
                                                    : reshape.getResult().getType());
    SmallVector<ReassociationIndices> groups = reshape.getReassociationIndices();
    auto isUnit = [&](int64_t dim) { return longer.getDimSize(dim) == 1; };
    bool isChanged = false;
    for (unsigned i = 1; i < groups.size(); ++i) {
      bool takesMore = i == 1 || !llvm::all_of(groups[i - 1], isUnit);
      while (takesMore && groups[i].size() > 1 && isUnit(groups[i].front())) {
        groups[i - 1].push_back(groups[i].front());
        groups[i].erase(groups[i].begin());
        isChanged = true;
      }
    }
    if (!isChanged)
      return rewriter.notifyMatchFailure(reshape,
                                         "expected a group that starts with a unit dimension");
    if constexpr (isCollapse)
      rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(reshape, reshape.getResultType(),
                                                           reshape.getSrc(), groups);
    else
      rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(reshape, longer, reshape.getSrc(), groups,
                                                         reshape.getMixedOutputShape());
    return success();
  }
};

/// Drops the dimensions of size 1 of an operand that are read at 0, because the patterns that move reshapes do not
/// match operands with such dimensions.
struct ReadWithoutUnits : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || !isScalarFunction(op) || !leadsToSoftmax(op->getResult(0)))
      return rewriter.notifyMatchFailure(op, "expected an elementwise op in front of a softmax");
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      auto isNamed = llvm::IsaPred<AffineDimExpr>;
      auto type = dyn_cast<RankedTensorType>(input->get().getType());
      auto isNamedOrUnit = [&](unsigned dim) {
        return isNamed(map.getResult(dim)) || type.getDimSize(dim) == 1;
      };
      if (!type || !llvm::all_of(llvm::seq(map.getNumResults()), isNamedOrUnit) ||
          llvm::all_of(map.getResults(), isNamed))
        continue;
      SmallVector<ReassociationIndices> groups;
      ReassociationIndices leading;
      SmallVector<AffineExpr> exprs;
      for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
        if (isNamed(expr)) {
          groups.push_back(std::exchange(leading, {}));
          exprs.push_back(expr);
        }
        (groups.empty() ? leading : groups.back()).push_back(dim);
      }
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      maps[input->getOperandNumber()] = AffineMap::get(map.getNumDims(), 0, exprs, getContext());
      Value collapsed =
          tensor::CollapseShapeOp::create(rewriter, op.getLoc(), input->get(), groups);
      rewriter.modifyOpInPlace(op, [&] {
        input->set(collapsed);
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "expected an operand that is read at 0");
  }
};

/// If a transposition moves only dimensions of size 1, and has other dimensions, replaces it with a reshape that drops
/// the dimensions of size 1 and a reshape that adds them. The other patterns move and cancel these reshapes. The
/// importer creates reshapes instead of such transpositions, but canonicalization may compose one from two
/// transpositions.
struct ReshapeForTranspose : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp op, PatternRewriter &rewriter) const override {
    auto source = dyn_cast<RankedTensorType>(op.getInput().getType());
    SmallVector<int64_t> others(op.getPermutation());
    llvm::erase_if(others, [&](int64_t dim) { return !source || source.getDimSize(dim) == 1; });
    if (others.empty() || !llvm::is_sorted(others))
      return rewriter.notifyMatchFailure(op, "expected that only unit dimensions move");
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<int64_t> sizes =
        llvm::map_to_vector(others, [&](int64_t dim) { return source.getDimSize(dim); });
    auto between = RankedTensorType::get(sizes, source.getElementType());
    Value dropped = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), between, op.getInput(),
                                                    groupUnitsWithOthers(source.getShape()));
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
        op, result, dropped, groupUnitsWithOthers(result.getShape()),
        tensor::getMixedSizes(rewriter, op.getLoc(), op.getInit()));
    return success();
  }
};

struct SplitMergedBatch : attn::impl::SplitMergedBatchBase<SplitMergedBatch> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet transposes(context), units(context), patterns(context);
    transposes.add<ReshapeForTranspose>(context);
    linalg::TransposeOp::getCanonicalizationPatterns(transposes, context);
    tensor::CollapseShapeOp::getCanonicalizationPatterns(transposes, context);
    tensor::ExpandShapeOp::getCanonicalizationPatterns(transposes, context);
    units.add<GroupUnitsWithBatch<tensor::CollapseShapeOp>,
              GroupUnitsWithBatch<tensor::ExpandShapeOp>, SeparateUnits<tensor::CollapseShapeOp>,
              SeparateUnits<tensor::ExpandShapeOp>, ReadWithoutUnits>(context);
    // From here on, reshapes are not canonicalized, because this would compose the reshapes that these patterns
    // separate.
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, movesOverEnd);
    patterns.add<MoveOverSoftmax>(context);
    tensor::populateFoldTensorEmptyPatterns(patterns);
    linalg::FillOp::getCanonicalizationPatterns(patterns, context);
    // The rewriting terminates: `transposes` replaces or composes ops, a step of `units` moves a dimension of size 1
    // forward or separates it, and a step of `patterns` moves a reshape away from a softmax.
    auto config = GreedyRewriteConfig().setMaxIterations(GreedyRewriteConfig::kNoLimit);
    if (failed(applyPatternsGreedily(getOperation(), std::move(transposes), config)) ||
        failed(applyPatternsGreedily(getOperation(), std::move(units), config)) ||
        failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace
