//===- Tiling.cpp - TilingInterface of the ops -----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// In attn.attention, the loops over batch, q and e are parallel, and the loops over k and d are reductions. attn-decode
// makes tiles of k, each with a state of its own. attn-tile-keys does not use this interface for the loop over tiles of
// keys, whose bounds come from the mask. attn.online_step and attn.online_probabilities have the loops (k, q). There is
// no loop over d, because a score needs the whole sum over d, and no loop over e, because each tile of e would update
// max and sum.
//
// PartialReductionOpInterface splits keys into parts, here of 128 keys each, and attn.online_merge adds the states of
// the parts to the old state:
//   attn.online_step ins(%q, %k, %v : 64x48, 512x64, 512x64) outs(%s, %m, %l, %a : 512x48, 48, 48, 64x48) at(%i, 0)
// becomes
//   %ms, %ls, %as = linalg.fill -inf, 0, 0 : 4x48, 4x48, 4x64x48
//   scf.forall %n in 4 { attn.online_step ins(%q, %k[128 * %n], %v[128 * %n])
//                            outs(%s[128 * %n], %ms[%n], %ls[%n], %as[%n]) at(%i, 128 * %n) }
//   attn.online_merge ins(%ms, %ls, %as) outs(%m, %l, %a)
//
// Test: test/dialect/tiling.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace attn;

OpFoldResult attn::dimOf(OpBuilder &builder, Location loc, Value value, int64_t dim) {
  while (true) {
    if (auto dps = value.getDefiningOp<DestinationStyleOpInterface>()) {
      value = dps.getTiedOpOperand(cast<OpResult>(value))->get();
    } else if (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>()) {
      llvm::SmallBitVector dropped = slice.getDroppedDims();
      for (auto [i, size] : llvm::enumerate(slice.getMixedSizes()))
        if (!dropped[i] && dim-- == 0)
          return size;
    } else if (auto empty = value.getDefiningOp<tensor::EmptyOp>()) {
      return empty.getMixedSizes()[dim];
    } else {
      return linalg::createFoldedDimOp(builder, loc, value, dim);
    }
  }
}

/// The greatest known divisor of `index`. For example, if 512 queries are divided into tiles of 48, the size of every
/// tile is a multiple of 16, including the size of the last tile, 32.
static int64_t knownDivisor(OpFoldResult index) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return *constant; // 0 is a multiple of everything
  auto value = cast<Value>(index);
  // A block that is being built may have no parent yet.
  Operation *parent = value.getParentBlock()->getParentOp();
  if (auto loop = dyn_cast_if_present<LoopLikeOpInterface>(parent))
    if (auto variables = loop.getLoopInductionVars())
      for (auto [i, variable] : llvm::enumerate(*variables))
        if (variable == value)
          return std::gcd(knownDivisor((*loop.getLoopLowerBounds())[i]),
                          knownDivisor((*loop.getLoopSteps())[i]));
  Operation *op = value.getDefiningOp();
  if (!op)
    return 1;
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case([](arith::MulIOp op) { return knownDivisor(op.getLhs()) * knownDivisor(op.getRhs()); })
      .Case<affine::AffineApplyOp, affine::AffineMinOp>([](auto op) {
        AffineMap map = op.getMap();
        SmallVector<AffineExpr> dims, symbols;
        for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
          bool isDim = i < map.getNumDims();
          AffineExpr expr = isDim ? getAffineDimExpr(i, op.getContext())
                                  : getAffineSymbolExpr(i - map.getNumDims(), op.getContext());
          (isDim ? dims : symbols).push_back(expr * knownDivisor(operand));
        }
        int64_t divisor = 0;
        for (AffineExpr result : map.getResults())
          divisor = std::gcd(divisor,
                             result.replaceDimsAndSymbols(dims, symbols).getLargestKnownDivisor());
        return divisor;
      })
      .Default([](Operation *) { return 1; });
}

bool attn::isMultiple(OpFoldResult size, int64_t factor) {
  return knownDivisor(size) % factor == 0;
}

SmallVector<utils::IteratorType> AttentionOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> types(getQDim() + 1, utils::IteratorType::parallel);
  types.append({utils::IteratorType::reduction, utils::IteratorType::reduction,
                utils::IteratorType::parallel});
  return types;
}

SmallVector<Range> AttentionOp::getIterationDomain(OpBuilder &builder) {
  SmallVector<Range> domain(getQueryMap().getNumDims());
  auto sizesFrom = [&](Value operand, AffineMap map) {
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && !domain[dim.getPosition()].size)
        domain[dim.getPosition()] = {builder.getIndexAttr(0), dimOf(builder, getLoc(), operand, i),
                                     builder.getIndexAttr(1)};
  };
  // The output has every batch dimension, q and e; the key has k and d.
  sizesFrom(getOuts()[0], getOutMap());
  sizesFrom(getKey(), getKeyMap());
  return domain;
}

/// Computes the offsets and sizes of the slice of an operand that a tile of the iteration space reads through `map`.
static void tileOfOperand(OpBuilder &builder, Location loc, AffineMap map,
                          ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                          SmallVectorImpl<OpFoldResult> &operandOffsets,
                          SmallVectorImpl<OpFoldResult> &operandSizes) {
  std::optional<unsigned> word = findWordOfKey(map);
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (i == word) {
      // The first key of a tile is bit 0 of a word.
      operandOffsets.push_back(affine::makeComposedFoldedAffineApply(
          builder, loc, AffineMap::get(map.getNumDims(), 0, expr), offsets));
      AffineExpr keys = cast<AffineBinaryOpExpr>(expr).getLHS();
      operandSizes.push_back(affine::makeComposedFoldedAffineApply(
          builder, loc, AffineMap::get(map.getNumDims(), 0, keys.ceilDiv(kKeysPerWord)), sizes));
      continue;
    }
    operandOffsets.push_back(dim ? offsets[dim.getPosition()] : builder.getIndexAttr(0));
    operandSizes.push_back(dim ? sizes[dim.getPosition()] : builder.getIndexAttr(1));
  }
}

static tensor::ExtractSliceOp sliceOperand(OpBuilder &builder, Location loc, Value operand,
                                           AffineMap map, ArrayRef<OpFoldResult> offsets,
                                           ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> operandOffsets, operandSizes;
  tileOfOperand(builder, loc, map, offsets, sizes, operandOffsets, operandSizes);
  SmallVector<OpFoldResult> strides(operandOffsets.size(), builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, loc, operand, operandOffsets, operandSizes,
                                        strides);
}

static Value moveIndex(OpBuilder &builder, Location loc, OpFoldResult index, OpFoldResult by) {
  AffineExpr d0, d1;
  bindDims(builder.getContext(), d0, d1);
  OpFoldResult moved = affine::makeComposedFoldedAffineApply(builder, loc, d0 + d1, {index, by});
  return getValueOrCreateConstantIndexOp(builder, loc, moved);
}

FailureOr<TilingResult> AttentionOp::getTiledImplementation(OpBuilder &builder,
                                                            ArrayRef<OpFoldResult> offsets,
                                                            ArrayRef<OpFoldResult> sizes) {
  Location loc = getLoc();
  SmallVector<Value> operands;
  SmallVector<Operation *> slices;
  for (auto [i, operand] :
       llvm::enumerate(getOperation()->getOperands().drop_back(getOrigin().size()))) {
    auto slice = sliceOperand(builder, loc, operand, getMap(i), offsets, sizes);
    slices.push_back(slice);
    operands.push_back(slice);
  }
  unsigned numOrigin = getKDim() + 1;
  for (unsigned i = 0; i < numOrigin; ++i) {
    OpFoldResult base =
        getOrigin().empty() ? OpFoldResult(builder.getIndexAttr(0)) : getOrigin()[i];
    operands.push_back(moveIndex(builder, loc, base, offsets[i]));
  }
  OperationState state(loc, getOperationName(), operands,
                       ValueRange(operands).slice(getNumInputs(), getOuts().size()).getTypes(),
                       (*this)->getAttrs());
  state.addRegion();
  auto tiled = cast<AttentionOp>(builder.create(state));
  tiled.getProperties().setOperandSegmentSizes(
      {1, 1, 1, static_cast<int32_t>(getCaptures().size()), getSink() ? 1 : 0,
       static_cast<int32_t>(getOuts().size()), static_cast<int32_t>(numOrigin)});
  IRMapping mapping;
  getScore().cloneInto(&tiled.getScore(), mapping);
  return TilingResult{{tiled}, SmallVector<Value>(tiled.getResults()), slices};
}

LogicalResult AttentionOp::getResultTilePosition(OpBuilder &builder, unsigned result,
                                                 ArrayRef<OpFoldResult> offsets,
                                                 ArrayRef<OpFoldResult> sizes,
                                                 SmallVector<OpFoldResult> &resultOffsets,
                                                 SmallVector<OpFoldResult> &resultSizes) {
  tileOfOperand(builder, getLoc(), getOutMap(result), offsets, sizes, resultOffsets, resultSizes);
  return success();
}

LogicalResult AttentionOp::getIterationDomainTileFromResultTile(
    OpBuilder &builder, unsigned result, ArrayRef<OpFoldResult> resultOffsets,
    ArrayRef<OpFoldResult> resultSizes, SmallVectorImpl<OpFoldResult> &offsets,
    SmallVectorImpl<OpFoldResult> &sizes) {
  for (Range range : getIterationDomain(builder)) {
    offsets.push_back(range.offset);
    sizes.push_back(range.size);
  }
  for (auto [i, expr] : llvm::enumerate(getOutMap(result).getResults())) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      offsets[dim.getPosition()] = resultOffsets[i];
      sizes[dim.getPosition()] = resultSizes[i];
    }
  }
  return success();
}

FailureOr<TilingResult> AttentionOp::generateResultTileValue(OpBuilder &builder, unsigned result,
                                                             ArrayRef<OpFoldResult> resultOffsets,
                                                             ArrayRef<OpFoldResult> resultSizes) {
  SmallVector<OpFoldResult> offsets, sizes;
  if (failed(getIterationDomainTileFromResultTile(builder, result, resultOffsets, resultSizes,
                                                  offsets, sizes)))
    return failure();
  FailureOr<TilingResult> tiled = getTiledImplementation(builder, offsets, sizes);
  if (failed(tiled))
    return failure();
  return TilingResult{tiled->tiledOps, {tiled->tiledValues[result]}, tiled->generatedSlices};
}

//===----------------------------------------------------------------------===//
// attn.online_step, attn.online_probabilities
//===----------------------------------------------------------------------===//

using Dims = SmallVector<AffineExpr, 4>;

/// Maps from (k, q, d, e) to the operands before the origin: `inputs`, captured tiles and `outs`.
template <typename OpTy>
static SmallVector<AffineMap> getMaps(OpTy op, ArrayRef<Dims> inputs, ArrayRef<Dims> outs) {
  SmallVector<Dims> dims(inputs);
  for (unsigned i = 0; i < op.getCaptures().size(); ++i)
    dims.emplace_back(op.getCaptureMap(i).getResults());
  llvm::append_range(dims, outs);
  return llvm::to_vector(AffineMap::inferFromExprList(dims, op.getContext()));
}

static SmallVector<AffineMap> getMaps(OnlineStepOp op) {
  AffineExpr k, q, d, e;
  bindDims(op.getContext(), k, q, d, e);
  bool rows = op.getRows();
  return getMaps(op, {withQueries(d, q, rows), Dims{k, d}, Dims{k, e}},
                 {withQueries(k, q, rows), Dims{q}, Dims{q}, withQueries(e, q, rows)});
}

static SmallVector<AffineMap> getMaps(OnlineProbabilitiesOp op) {
  AffineExpr k, q, d;
  bindDims(op.getContext(), k, q, d);
  bool rows = op.getRows();
  return getMaps(op, {withQueries(d, q, rows), Dims{k, d}, Dims{q}, Dims{q}},
                 {withQueries(k, q, rows)});
}

namespace {
/// A tile of the loops (k, q), with all of d and e.
template <typename OpTy> class StepTile {
public:
  StepTile(OpBuilder &builder, OpTy op, ArrayRef<OpFoldResult> loopOffsets,
           ArrayRef<OpFoldResult> loopSizes)
      : builder(builder), op(op), maps(getMaps(op)), offsets(loopOffsets), sizes(loopSizes) {
    offsets.resize(maps.front().getNumDims(), builder.getIndexAttr(0));
    sizes.resize(maps.front().getNumDims());
    // Each size comes from the first operand that has the dimension. Because the inputs come first and have all
    // dimensions, no size comes from an output; the outputs of a part have one dimension more than their maps.
    for (auto [operand, map] : llvm::zip(op->getOperands(), maps))
      for (auto [i, expr] : llvm::enumerate(map.getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && !sizes[dim.getPosition()])
          sizes[dim.getPosition()] = dimOf(builder, op.getLoc(), operand, i);
  }

  void locateOut(unsigned i, SmallVector<OpFoldResult> &outOffsets,
                 SmallVector<OpFoldResult> &outSizes) {
    tileOfOperand(builder, op.getLoc(), maps[getNumInputs() + i], offsets, sizes, outOffsets,
                  outSizes);
  }

  tensor::ExtractSliceOp slice(unsigned operand, Value of) {
    return sliceOperand(builder, op.getLoc(), of, maps[operand], offsets, sizes);
  }
  SmallVector<tensor::ExtractSliceOp> sliceOuts() {
    return llvm::map_to_vector(llvm::enumerate(op.getDpsInits()), [&](auto out) {
      return slice(getNumInputs() + out.index(), out.value());
    });
  }

  /// Creates the op on this tile; `outs` are the tiles of its outputs.
  FailureOr<TilingResult> createOp(ArrayRef<tensor::ExtractSliceOp> outs) {
    Location loc = op.getLoc();
    if (llvm::any_of(maps, findWordOfKey) && !isMultiple(offsets[0], kKeysPerWord))
      return op.emitOpError() << "expected tiles that begin at a multiple of " << kKeysPerWord
                              << " keys, because a captured mask is packed";
    TilingResult result;
    SmallVector<Value> operands;
    for (unsigned i = 0; i < getNumInputs(); ++i)
      result.generatedSlices.push_back(slice(i, op->getOperand(i)));
    llvm::append_range(result.generatedSlices, outs);
    for (Operation *slice : result.generatedSlices)
      operands.push_back(slice->getResult(0));
    SmallVector<Type> types = llvm::to_vector(
        llvm::map_range(outs, [](tensor::ExtractSliceOp out) -> Type { return out.getType(); }));
    // The origin is (batch..., q, k).
    SmallVector<Value> origin(op.getOrigin());
    for (unsigned loop : {0, 1}) {
      Value &index = origin[origin.size() - 1 - loop];
      index = moveIndex(builder, loc, index, offsets[loop]);
    }
    llvm::append_range(operands, origin);
    llvm::append_range(operands, op->getOperands().drop_front(operands.size()));
    auto tiled = cast<OpTy>(cloneWithoutRegions(builder, op, types, operands));
    IRMapping mapping;
    op.getScore().cloneInto(&tiled.getScore(), mapping);
    result.tiledOps.push_back(tiled);
    result.tiledValues = llvm::to_vector(ValueRange(tiled->getResults()));
    return result;
  }

private:
  unsigned getNumInputs() { return op.getDpsInits().getBeginOperandIndex(); }

  OpBuilder &builder;
  OpTy op;
  SmallVector<AffineMap> maps;
  SmallVector<OpFoldResult> offsets, sizes;
};
} // namespace

/// The loops (k, q).
template <typename OpTy> static SmallVector<Range> getLoops(OpBuilder &builder, OpTy op) {
  SmallVector<Range> domain;
  for (int64_t dim : {0, 1})
    domain.push_back(
        {builder.getIndexAttr(0),
         dimOf(builder, op.getLoc(), op.getDpsInits()[0], op.getRows() ? 1 - dim : dim),
         builder.getIndexAttr(1)});
  return domain;
}

SmallVector<utils::IteratorType> OnlineStepOp::getLoopIteratorTypes() {
  return {utils::IteratorType::reduction, utils::IteratorType::parallel};
}

SmallVector<Range> OnlineStepOp::getIterationDomain(OpBuilder &builder) {
  return getLoops(builder, *this);
}

LogicalResult OnlineStepOp::getResultTilePosition(OpBuilder &builder, unsigned result,
                                                  ArrayRef<OpFoldResult> offsets,
                                                  ArrayRef<OpFoldResult> sizes,
                                                  SmallVector<OpFoldResult> &resultOffsets,
                                                  SmallVector<OpFoldResult> &resultSizes) {
  StepTile(builder, *this, offsets, sizes).locateOut(result, resultOffsets, resultSizes);
  return success();
}

/// Creates the tile of a step; `outs` are the tiles of its outputs. The tile has no prefetch hint, because the hint is
/// for the step that follows all tiles.
static FailureOr<TilingResult> createStep(StepTile<OnlineStepOp> &tile, OnlineStepOp op,
                                          ArrayRef<tensor::ExtractSliceOp> outs) {
  if (op.getProbabilities())
    return op.emitOpError() << "expected a step without probabilities to tile";
  FailureOr<TilingResult> tiled = tile.createOp(outs);
  if (succeeded(tiled))
    cast<OnlineStepOp>(tiled->tiledOps.front()).getPrefetchMutable().clear();
  return tiled;
}

FailureOr<TilingResult> OnlineStepOp::getTiledImplementation(OpBuilder &builder,
                                                             ArrayRef<OpFoldResult> offsets,
                                                             ArrayRef<OpFoldResult> sizes) {
  StepTile tile(builder, *this, offsets, sizes);
  return createStep(tile, *this, tile.sliceOuts());
}

SmallVector<utils::IteratorType> OnlineProbabilitiesOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel, utils::IteratorType::parallel};
}

SmallVector<Range> OnlineProbabilitiesOp::getIterationDomain(OpBuilder &builder) {
  return getLoops(builder, *this);
}

LogicalResult OnlineProbabilitiesOp::getResultTilePosition(OpBuilder &builder, unsigned result,
                                                           ArrayRef<OpFoldResult> offsets,
                                                           ArrayRef<OpFoldResult> sizes,
                                                           SmallVector<OpFoldResult> &resultOffsets,
                                                           SmallVector<OpFoldResult> &resultSizes) {
  StepTile(builder, *this, offsets, sizes).locateOut(result, resultOffsets, resultSizes);
  return success();
}

FailureOr<TilingResult>
OnlineProbabilitiesOp::getTiledImplementation(OpBuilder &builder, ArrayRef<OpFoldResult> offsets,
                                              ArrayRef<OpFoldResult> sizes) {
  StepTile tile(builder, *this, offsets, sizes);
  return tile.createOp(tile.sliceOuts());
}

//===----------------------------------------------------------------------===//
// Parts of the keys
//===----------------------------------------------------------------------===//

// A part uses the slice of the scratch `scores` that belongs to its keys. The states are new tensors whose first
// dimension is the part. A loop that is not parallel (tile_reduction_using_for) adds all its tiles to part 0, because a
// step has one state and not one for each of its keys.

FailureOr<SmallVector<Value>> OnlineStepOp::generateInitialTensorForPartialReduction(
    OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes, const SetVector<unsigned> &) {
  SmallVector<Value> initial = {getScores()};
  Type type = getElementTypeOrSelf(getMax());
  OpFoldResult numParts = sizes[0], numQueries = sizes[1];
  auto add = [&](ArrayRef<OpFoldResult> shape, double start) {
    Value value = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, start));
    Value empty = tensor::EmptyOp::create(builder, loc, shape, type);
    initial.push_back(linalg::FillOp::create(builder, loc, value, empty).getResult(0));
  };
  add({numParts, numQueries}, -std::numeric_limits<double>::infinity());
  add({numParts, numQueries}, 0);
  OpFoldResult numElements = dimOf(builder, loc, getAcc(), getRows() ? 1 : 0);
  SmallVector<OpFoldResult> acc = {numParts, numElements, numQueries};
  if (getRows())
    std::swap(acc[1], acc[2]);
  add(acc, 0);
  return initial;
}

LogicalResult OnlineStepOp::getPartialResultTilePosition(
    OpBuilder &builder, unsigned result, ReductionTilingStrategy, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, const SetVector<unsigned> &, ArrayRef<OpFoldResult> parts,
    SmallVector<OpFoldResult> &resultOffsets, SmallVector<OpFoldResult> &resultSizes) {
  bool isScratch = result == 0;
  if (!isScratch) {
    resultOffsets.push_back(parts.front());
    resultSizes.push_back(builder.getIndexAttr(1));
  }
  return getResultTilePosition(builder, result, offsets, sizes, resultOffsets, resultSizes);
}

FailureOr<TilingResult> OnlineStepOp::tileToPartialReduction(
    OpBuilder &builder, Location loc, ReductionTilingStrategy strategy, ValueRange init,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    const SetVector<unsigned> &reductionDims, ArrayRef<OpFoldResult> parts) {
  SmallVector<tensor::ExtractSliceOp> outs;
  for (auto [i, partial] : llvm::enumerate(init)) {
    SmallVector<OpFoldResult> outOffsets, outSizes;
    if (failed(getPartialResultTilePosition(builder, i, strategy, offsets, sizes, reductionDims,
                                            parts, outOffsets, outSizes)))
      return failure();
    // The slice drops the dimension of the part.
    unsigned rank = i == 0 ? outSizes.size() : outSizes.size() - 1;
    auto type = tensor::ExtractSliceOp::inferCanonicalRankReducedResultType(
        rank, cast<RankedTensorType>(partial.getType()), outSizes);
    SmallVector<OpFoldResult> strides(outSizes.size(), builder.getIndexAttr(1));
    outs.push_back(
        tensor::ExtractSliceOp::create(builder, loc, type, partial, outOffsets, outSizes, strides));
  }
  StepTile tile(builder, *this, offsets, sizes);
  return createStep(tile, *this, outs);
}

FailureOr<MergeResult> OnlineStepOp::mergeReductions(OpBuilder &builder, Location loc,
                                                     ValueRange partial,
                                                     const SetVector<unsigned> &) {
  TypeRange types = ValueRange(getDpsInits()).drop_front().getTypes();
  auto merge =
      OnlineMergeOp::create(builder, loc, types, partial[1], partial[2], partial[3], getMax(),
                            getSum(), getAcc(), builder.getF32FloatAttr(getUnit()), getRowsAttr());
  SmallVector<Value> replacements = {partial[0]};
  llvm::append_range(replacements, merge.getResults());
  return MergeResult{{merge}, replacements};
}

//===----------------------------------------------------------------------===//
// attn.pack_mask
//===----------------------------------------------------------------------===//

// There is one loop for each dimension of the mask. The loop over keys is a reduction, because 32 keys become one word.

SmallVector<utils::IteratorType> PackMaskOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> types(cast<ShapedType>(getSource().getType()).getRank(),
                                         utils::IteratorType::parallel);
  types.back() = utils::IteratorType::reduction;
  return types;
}

SmallVector<Range> PackMaskOp::getIterationDomain(OpBuilder &builder) {
  SmallVector<Range> domain;
  for (int64_t dim = 0; dim < cast<ShapedType>(getSource().getType()).getRank(); ++dim)
    domain.push_back({builder.getIndexAttr(0), dimOf(builder, getLoc(), getSource(), dim),
                      builder.getIndexAttr(1)});
  return domain;
}

LogicalResult PackMaskOp::getResultTilePosition(OpBuilder &builder, unsigned,
                                                ArrayRef<OpFoldResult> offsets,
                                                ArrayRef<OpFoldResult> sizes,
                                                SmallVector<OpFoldResult> &resultOffsets,
                                                SmallVector<OpFoldResult> &resultSizes) {
  SmallVector<AffineExpr> words;
  for (unsigned dim = 0; dim + 2 < offsets.size(); ++dim)
    words.push_back(builder.getAffineDimExpr(dim));
  words.push_back(builder.getAffineDimExpr(offsets.size() - 1).floorDiv(kKeysPerWord));
  words.push_back(builder.getAffineDimExpr(offsets.size() - 2));
  tileOfOperand(builder, getLoc(), AffineMap::get(offsets.size(), 0, words, getContext()), offsets,
                sizes, resultOffsets, resultSizes);
  return success();
}

FailureOr<TilingResult> PackMaskOp::getTiledImplementation(OpBuilder &builder,
                                                           ArrayRef<OpFoldResult> offsets,
                                                           ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(offsets.size(), builder.getIndexAttr(1)), wordOffsets,
      wordSizes;
  if (failed(getResultTilePosition(builder, 0, offsets, sizes, wordOffsets, wordSizes)))
    return failure();
  auto mask =
      tensor::ExtractSliceOp::create(builder, getLoc(), getSource(), offsets, sizes, strides);
  auto words = tensor::ExtractSliceOp::create(builder, getLoc(), getWords(), wordOffsets, wordSizes,
                                              strides);
  auto tiled =
      PackMaskOp::create(builder, getLoc(), TypeRange{words.getType()}, mask.getResult(), words);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), {mask, words}};
}
