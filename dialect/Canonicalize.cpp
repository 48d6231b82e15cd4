//===- Canonicalize.cpp - folds and canonical forms of the operations ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "dialect/KeyBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include <cmath>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Tensors without elements
//===----------------------------------------------------------------------===//

namespace {
/// Replaces an op with its outputs if its body never runs. The upstream tiling would divide by the sizes of such an op,
/// one of which is 0.
struct DropWithoutIterations : OpInterfaceRewritePattern<DestinationStyleOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(DestinationStyleOpInterface op,
                                PatternRewriter &rewriter) const override {
    auto hasNoElement = [](Value init) {
      auto type = dyn_cast<RankedTensorType>(init.getType());
      return type && llvm::is_contained(type.getShape(), 0);
    };
    auto linalgOp = dyn_cast<linalg::LinalgOp>(*op);
    if (op->getNumResults() == 0 || op->getNumResults() != op.getDpsInits().size() ||
        (!llvm::all_of(op.getDpsInits(), hasNoElement) &&
         !(linalgOp && llvm::is_contained(linalgOp.getStaticLoopRanges(), 0))))
      return rewriter.notifyMatchFailure(op, "expected tensors and a static size of 0");
    rewriter.replaceOp(op, op.getDpsInits());
    return success();
  }
};

/// Replaces a slice without elements with an empty tensor, so that the source of the slice need not be computed.
struct ReadNothing : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExtractSliceOp slice,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = slice.getType();
    if (!llvm::is_contained(type.getShape(), 0) ||
        slice.getSource().getDefiningOp<tensor::EmptyOp>())
      return rewriter.notifyMatchFailure(slice, "expected a part with a static size of 0");
    SmallVector<OpFoldResult> sizes;
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes()))
      if (!dropped.test(dim))
        sizes.push_back(size);
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(slice, sizes, type.getElementType());
    return success();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Slices that drop dimensions
//===----------------------------------------------------------------------===//

/// The type of a slice. It has the element type of `type`, and the `sizes` of the dimensions that are not `dropped`. A
/// size that is an operand stays dynamic, even if it is a constant: the verifier and getDroppedDims() expect this.
static RankedTensorType withSizes(RankedTensorType type, const llvm::SmallBitVector &dropped,
                                  ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (!dropped.test(dim))
      shape.push_back(isa<Attribute>(size) ? *getConstantIntValue(size) : ShapedType::kDynamic);
  return RankedTensorType::get(shape, type.getElementType());
}

namespace {
struct PartType {
  RankedTensorType operator()(tensor::ExtractSliceOp slice, ArrayRef<OpFoldResult>,
                              ArrayRef<OpFoldResult> sizes, ArrayRef<OpFoldResult>) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    return dropped.any() ? withSizes(slice.getType(), dropped, sizes) : RankedTensorType();
  }
};

struct ReplaceByCast {
  void operator()(PatternRewriter &rewriter, tensor::ExtractSliceOp slice,
                  tensor::ExtractSliceOp folded) {
    rewriter.replaceOpWithNewOp<tensor::CastOp>(slice, slice.getType(), folded);
  }
};

/// Makes constant sizes of a slice static:
///   %part = tensor.extract_slice %t[%i, 0, 3] [%c1, %n, 1] [1, 1, 1] : tensor<6x?x4xf32> to tensor<?x?xf32>
/// becomes a slice of type tensor<1x?xf32>. The upstream pattern (LLVM 22) assumes that a slice drops the first of its
/// dimensions of size 1, and would make this slice a tensor<?x1xf32>. So this pattern runs first.
using FoldPartSizes = OpWithOffsetSizesAndStridesConstantArgumentFolder<tensor::ExtractSliceOp,
                                                                        PartType, ReplaceByCast>;

/// Makes constant sizes static in an insertion, as FoldPartSizes does in a slice.
template <typename InsertOp> struct FoldInsertedSizes : OpRewritePattern<InsertOp> {
  using OpRewritePattern<InsertOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(InsertOp insert, PatternRewriter &rewriter) const override {
    llvm::SmallBitVector dropped = insert.getDroppedDims();
    SmallVector<OpFoldResult> offsets = insert.getMixedOffsets(), sizes = insert.getMixedSizes(),
                              strides = insert.getMixedStrides();
    bool hasFolded = succeeded(foldDynamicIndexList(offsets, /*onlyNonNegative=*/true));
    hasFolded |= succeeded(foldDynamicIndexList(sizes, /*onlyNonNegative=*/true));
    hasFolded |= succeeded(foldDynamicIndexList(strides));
    if (!dropped.any() || !hasFolded ||
        !verifyInBoundsSlice(insert.getDestType().getShape(), offsets, sizes, strides).isValid)
      return rewriter.notifyMatchFailure(insert, "expected a dropped dimension and a constant");
    RankedTensorType type = withSizes(insert.getSourceType(), dropped, sizes);
    Value source = insert.getSource();
    if (type != source.getType()) {
      OpBuilder::InsertionGuard guard(rewriter);
      if (isa<tensor::ParallelInsertSliceOp>(insert.getOperation()))
        rewriter.setInsertionPoint(insert->getParentOp());
      source = tensor::CastOp::create(rewriter, insert.getLoc(), type, source);
    }
    rewriter.replaceOpWithNewOp<InsertOp>(insert, source, insert.getDest(), offsets, sizes,
                                          strides);
    return success();
  }
};
} // namespace

void attn::populateFoldPartSizes(RewritePatternSet &patterns) {
  patterns.add<FoldPartSizes, FoldInsertedSizes<tensor::InsertSliceOp>,
               FoldInsertedSizes<tensor::ParallelInsertSliceOp>>(patterns.getContext(),
                                                                 /*benefit=*/2);
}

void AttnDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  patterns.add<DropWithoutIterations, ReadNothing>(patterns.getContext());
  populateFoldPartSizes(patterns);
}

//===----------------------------------------------------------------------===//
// attn.key_range
//===----------------------------------------------------------------------===//

LogicalResult KeyRangeOp::fold(FoldAdaptor adaptor, SmallVectorImpl<OpFoldResult> &results) {
  // Every bound depends on the number of keys.
  if (!adaptor.getKeys())
    return failure();
  KeyBounds bounds = KeyBounds::get(getContext(), getMaskAttr(), getBatch().size(), getStep());
  SmallVector<int64_t> operands;
  for (auto [i, operand] : llvm::enumerate(adaptor.getOperands())) {
    auto constant = dyn_cast_or_null<IntegerAttr>(operand);
    if (!constant && bounds.isFunctionOf(i))
      return failure();
    operands.push_back(constant ? constant.getInt() : 0);
  }
  for (int64_t bound : bounds.evaluate(operands))
    results.push_back(IntegerAttr::get(IndexType::get(getContext()), bound));
  return success();
}

//===----------------------------------------------------------------------===//
// Casts of operands
//===----------------------------------------------------------------------===//

namespace {
/// Folds tensor.cast operands into an op with a score region, as upstream does for every destination-style op. The
/// upstream pattern (LLVM 22) crashes on an op whose region is empty, so this pattern runs first.
template <typename OpTy> struct FoldCasts : OpRewritePattern<OpTy> {
  explicit FoldCasts(MLIRContext *context) : OpRewritePattern<OpTy>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    auto dps = cast<DestinationStyleOpInterface>(*op);
    if (!tensor::hasFoldableTensorCastOperand(dps))
      return rewriter.notifyMatchFailure(op, "expected a cast that adds static sizes");
    SmallVector<Type> types(op->getResultTypes());
    SmallVector<Value> operands = tensor::getUpdatedOperandsAfterCastOpFolding(dps, types);
    Operation *folded = cloneWithoutRegions(rewriter, op, types, operands);
    rewriter.inlineRegionBefore(op.getScore(), folded->getRegion(0), folded->getRegion(0).begin());
    SmallVector<Value> results;
    for (auto [old, result] : llvm::zip_equal(op->getResults(), folded->getResults()))
      results.push_back(
          old.getType() == result.getType()
              ? Value(result)
              : Value(tensor::CastOp::create(rewriter, op.getLoc(), old.getType(), result)));
    rewriter.replaceOp(op, results);
    return success();
  }
};
} // namespace

void OnlineStepOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldCasts<OnlineStepOp>>(context);
}

void OnlineProbabilitiesOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                        MLIRContext *context) {
  patterns.add<FoldCasts<OnlineProbabilitiesOp>>(context);
}

//===----------------------------------------------------------------------===//
// attn.pack
//===----------------------------------------------------------------------===//

LogicalResult PackOp::fold(FoldAdaptor adaptor, SmallVectorImpl<OpFoldResult> &results) {
  auto source = dyn_cast_or_null<DenseElementsAttr>(adaptor.getSource());
  if (!source || getNumResults() != 1 || getScale())
    return failure();
  auto type = cast<RankedTensorType>(getResult(0).getType());
  Type element = type.getElementType();
  if (!type.hasStaticShape() || !element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8 != 0)
    return failure();

  ArrayRef<int64_t> shape = source.getType().getShape();
  unsigned rank = shape.size();
  int64_t n = shape[getFromRows() ? rank - 1 : rank - 2],
          k = shape[getFromRows() ? rank - 2 : rank - 1];
  int64_t panels = type.getDimSize(rank - 2), width = type.getDimSize(rank), group = getGroup();
  if (source.isSplat() && n == panels * width && k % group == 0) {
    results.push_back(source.resizeSplat(type));
    return success();
  }
  int64_t size = element.getIntOrFloatBitWidth() / 8;
  int64_t strideN = source.isSplat() ? 0 : getFromRows() ? 1 : k;
  int64_t strideK = source.isSplat() ? 0 : getFromRows() ? n : 1;
  int64_t strideBatch = source.isSplat() ? 0 : n * k;
  ArrayRef<char> from = source.getRawData();
  SmallVector<char, 0> to(type.getNumElements() * size, 0);
  char *next = to.data();
  for (int64_t batch = 0; batch < ShapedType::getNumElements(shape.drop_back(2)); ++batch)
    for (int64_t panel = 0; panel < panels; ++panel)
      for (int64_t first = 0; first < k; first += group)
        for (int64_t j = panel * width; j < (panel + 1) * width; ++j)
          for (int64_t i = first; i < first + group; ++i, next += size)
            if (j < n && i < k)
              std::copy_n(&from[(batch * strideBatch + j * strideN + i * strideK) * size], size,
                          next);
  results.push_back(DenseElementsAttr::getFromRawBuffer(type, to));
  return success();
}

//===----------------------------------------------------------------------===//
// attn.attention
//===----------------------------------------------------------------------===//

std::optional<double> attn::constantFactor(Operation *op, Value value) {
  bool isDivision = isa<arith::DivFOp>(op);
  if (!isDivision && !isa<arith::MulFOp>(op))
    return std::nullopt;
  APFloat constant(0.0);
  bool isLeft = op->getOperand(0) == value;
  if ((isDivision && !isLeft) ||
      !matchPattern(op->getOperand(isLeft ? 1 : 0), m_ConstantFloat(&constant)))
    return std::nullopt;
  return isDivision ? 1.0 / constant.convertToDouble() : constant.convertToDouble();
}

LogicalResult AttentionOp::scaleBy(double factor) {
  // The product of two f32 is exact in double.
  double scale = getScale().convertToDouble() * factor;
  auto rounded = static_cast<float>(scale);
  if (!std::isnormal(rounded) || (getAccumulatorType().getWidth() > 32 && rounded != scale))
    return failure();
  setScaleAttr(Builder(getContext()).getF32FloatAttr(rounded));
  return success();
}

static void appendConjuncts(Attribute mask, llvm::SetVector<Attribute> &conjuncts) {
  if (auto both = dyn_cast<AndAttr>(mask)) {
    for (Attribute part : both.getMasks())
      appendConjuncts(part, conjuncts);
    return;
  }
  conjuncts.insert(mask);
}

/// The static size of dimension `dim` of the iteration space, taken from the type of `operand`.
static int64_t sizeOf(Value operand, AffineMap map, unsigned dim) {
  return cast<ShapedType>(operand.getType())
      .getDimSize(*map.getResultPosition(getAffineDimExpr(dim, map.getContext())));
}

namespace {
/// Flattens nested #attn.and into one list, and drops duplicates and masks that keep every pair. Removes the mask
/// attribute if no mask is left.
struct SimplifyMask : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    MaskInterface mask = op.getMaskAttr();
    if (!mask)
      return failure();
    PairCounts counts{sizeOf(op.getQuery(), op.getQueryMap(), op.getQDim()),
                      sizeOf(op.getKey(), op.getKeyMap(), op.getKDim())};
    // The coordinates of a tile do not start at 0, so the sizes of the tile say nothing about its coordinates.
    if (!op.getOrigin().empty())
      counts = {ShapedType::kDynamic, ShapedType::kDynamic};
    llvm::SetVector<Attribute> conjuncts;
    appendConjuncts(mask, conjuncts);
    conjuncts.remove_if([&](Attribute part) {
      return keepsAll(cast<MaskInterface>(part), op.getNumBatch(), counts);
    });

    Attribute simplified;
    if (conjuncts.size() == 1)
      simplified = conjuncts.front();
    else if (!conjuncts.empty())
      simplified = AndAttr::get(op.getContext(), conjuncts.getArrayRef());
    if (simplified == mask)
      return rewriter.notifyMatchFailure(op, "expected a mask with redundant parts");
    rewriter.modifyOpInPlace(op, [&] {
      op.setMaskAttr(cast_or_null<MaskInterface>(simplified));
      if (!simplified) {
        op.removeFillAttr();
        op.setAdded(false);
        op.setBounded(false);
      }
    });
    return success();
  }
};

/// Replaces the output of an attention without keys with 0, the empty sum. If the attention returns its state, the sum
/// is also 0, and the maximum is -inf.
struct FillWithoutKeys : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (op->getNumResults() == 0 || sizeOf(op.getKey(), op.getKeyMap(), op.getKDim()) != 0)
      return rewriter.notifyMatchFailure(op, "expected tensors and a static number of keys of 0");
    Type type = getElementTypeOrSelf(op.getOuts()[0].getType());
    SmallVector<Value> results(op.getOuts()); // probabilities have no elements to fill
    auto fill = [&](unsigned i, double value) {
      Value constant =
          arith::ConstantOp::create(rewriter, op.getLoc(), rewriter.getFloatAttr(type, value));
      results[i] = linalg::FillOp::create(rewriter, op.getLoc(), constant, results[i]).getResult(0);
    };
    fill(0, 0);
    if (op.getState()) {
      fill(1, -std::numeric_limits<double>::infinity());
      fill(2, 0);
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

/// Drops a score region that yields its score unchanged. If the head size is 0, every score is 0, so a region that
/// yields 0 is dropped too.
struct DropIdentityScore : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (op.getScore().empty())
      return failure();
    Block &block = op.getScore().front();
    Value yielded = cast<YieldOp>(block.getTerminator()).getValue();
    bool isZero = sizeOf(op.getQuery(), op.getQueryMap(), op.getDDim()) == 0;
    if (yielded != block.getArgument(op.getKDim() + 1) &&
        !(isZero && matchPattern(yielded, m_AnyZeroFloat())))
      return rewriter.notifyMatchFailure(op, "expected a score region that yields its score");
    rewriter.modifyOpInPlace(op, [&] { rewriter.eraseBlock(&block); });
    return success();
  }
};

/// If score(s) is f(s * c) for a constant c, multiplies the scale by c and drops the factor from the region.
struct FoldScoreFactor : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (op.getScore().empty())
      return failure();
    BlockArgument score = op.getScore().front().getArgument(op.getKDim() + 1);
    if (!score.hasOneUse())
      return rewriter.notifyMatchFailure(op, "expected a score with one use");
    Operation *product = *score.user_begin();
    std::optional<double> factor = constantFactor(product, score);
    if (!factor)
      return rewriter.notifyMatchFailure(op, "expected a constant factor of the score");
    rewriter.startOpModification(op);
    if (failed(op.scaleBy(*factor))) {
      rewriter.cancelOpModification(op);
      return rewriter.notifyMatchFailure(op, "expected a scale that f32 holds");
    }
    addLocation(op, op.getScaleAttrName(), product->getLoc());
    rewriter.finalizeOpModification(op);
    rewriter.replaceOp(product, score);
    return success();
  }
};

/// Drops returned probabilities that nothing reads.
struct DropUnusedProbabilities : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (op->getNumResults() == 0 || !op.returnsProbabilities() || !op->getResult(1).use_empty())
      return failure();
    ArrayRef<Attribute> maps = op.getIndexingMaps().getValue();
    auto narrowed = AttentionOp::create(
        rewriter, op.getLoc(), op->getResult(0).getType(), op.getQuery(), op.getKey(),
        op.getValue(), op.getCaptures(), op.getSink(), op.getOuts().take_front(), op.getOrigin(),
        op.getMaskAttr(), op.getPlanAttr(), rewriter.getArrayAttr(maps.drop_back()),
        op.getScaleAttr(), op.getEmptyRowAttr(), op.getAccTypeAttr(), /*state=*/UnitAttr(),
        op.getFillAttr(), op.getAddedAttr(), op.getBoundedAttr());
    narrowed->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.inlineRegionBefore(op.getScore(), narrowed.getScore(), narrowed.getScore().end());
    rewriter.replaceAllUsesWith(op->getResult(0), narrowed->getResult(0));
    rewriter.eraseOp(op);
    return success();
  }
};

/// Drops captured operands that neither the score region nor the mask reads. Of captured operands that are the same
/// value and have the same map, keeps only the first.
struct CompactCaptures : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    unsigned numCaptures = op.getCaptures().size(), firstArgument = op.getKDim() + 2;
    Block *score = op.getScore().empty() ? nullptr : &op.getScore().front();
    llvm::BitVector isRead(numCaptures);
    for (unsigned i = 0; i < numCaptures; ++i)
      isRead[i] = (score && !score->getArgument(firstArgument + i).use_empty()) ||
                  (op.getBounded() && i + 1 == numCaptures);
    MaskInterface mask = op.getMaskAttr();
    if (mask) {
      for (const KeptSet &set : mask.kept(op.getNumBatch())) {
        for (unsigned capture : set.symbols)
          isRead.set(capture);
        for (DenseTest test : set.tests)
          isRead.set(test.capture);
      }
    }

    SmallVector<unsigned> kept, renumbered(numCaptures);
    for (unsigned i = 0; i < numCaptures; ++i) {
      if (!isRead[i])
        continue;
      auto same = llvm::find_if(kept, [&](unsigned j) {
        return op.getCaptures()[i] == op.getCaptures()[j] &&
               op.getCaptureMap(i) == op.getCaptureMap(j) &&
               !(op.getBounded() && i + 1 == numCaptures);
      });
      renumbered[i] = same - kept.begin();
      if (same == kept.end())
        kept.push_back(i);
    }
    if (kept.size() == numCaptures)
      return rewriter.notifyMatchFailure(
          op, "expected a captured operand that is unused or captured twice");

    rewriter.modifyOpInPlace(op, [&] {
      SmallVector<Value> captures;
      SmallVector<Attribute> maps(op.getIndexingMaps().getValue().take_front(3));
      for (unsigned i : kept) {
        captures.push_back(op.getCaptures()[i]);
        maps.push_back(op.getIndexingMaps()[3 + i]);
      }
      llvm::append_range(maps, op.getIndexingMaps().getValue().drop_front(3 + numCaptures));
      if (score) {
        for (unsigned i = 0; i < numCaptures; ++i)
          if (isRead[i] && kept[renumbered[i]] != i)
            rewriter.replaceAllUsesWith(score->getArgument(firstArgument + i),
                                        score->getArgument(firstArgument + kept[renumbered[i]]));
        score->eraseArguments([&](BlockArgument argument) {
          return argument.getArgNumber() >= firstArgument &&
                 !llvm::is_contained(kept, argument.getArgNumber() - firstArgument);
        });
      }
      op.getCapturesMutable().assign(captures);
      op.setIndexingMapsAttr(rewriter.getArrayAttr(maps));
      if (mask)
        op.setMaskAttr(mask.remap(renumbered));
    });
    return success();
  }
};
} // namespace

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<CompactCaptures, DropIdentityScore, DropUnusedProbabilities, FillWithoutKeys,
               FoldCasts<AttentionOp>, FoldScoreFactor, SimplifyMask>(context);
}
