//===- Tiling.cpp - TilingInterface of attn.attention ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Batch, q and e are parallel; k and d are reductions and are never tiled here: attn-tile-keys makes
// the key loop, because it handles bounds and masks.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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
  // The output names every batch dimension, q and e; the key adds k and d.
  sizesFrom(getOuts()[0], getOutMap());
  sizesFrom(getKey(), getKeyMap());
  return domain;
}

/// Where a tile of the iteration space lies in an operand read through `map`.
static void tileOfOperand(OpBuilder &builder, Location loc, AffineMap map,
                          ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                          SmallVectorImpl<OpFoldResult> &operandOffsets,
                          SmallVectorImpl<OpFoldResult> &operandSizes) {
  std::optional<unsigned> word = findWordOfKey(map);
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (i == word) {
      // Tiles have all keys, so the first one is bit 0 of a word.
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

FailureOr<TilingResult> AttentionOp::getTiledImplementation(OpBuilder &builder,
                                                            ArrayRef<OpFoldResult> offsets,
                                                            ArrayRef<OpFoldResult> sizes) {
  Location loc = getLoc();
  SmallVector<Value> operands;
  SmallVector<Operation *> slices;
  for (auto [i, operand] :
       llvm::enumerate(getOperation()->getOperands().drop_back(getOrigin().size()))) {
    SmallVector<OpFoldResult> operandOffsets, operandSizes;
    tileOfOperand(builder, loc, getMap(i), offsets, sizes, operandOffsets, operandSizes);
    SmallVector<OpFoldResult> strides(operandOffsets.size(), builder.getIndexAttr(1));
    auto slice = tensor::ExtractSliceOp::create(builder, loc, operand, operandOffsets, operandSizes,
                                                strides);
    slices.push_back(slice);
    operands.push_back(slice);
  }
  AffineExpr d0, d1;
  bindDims(getContext(), d0, d1);
  unsigned numOrigin = getKDim() + 1;
  for (unsigned i = 0; i < numOrigin; ++i) {
    OpFoldResult base =
        getOrigin().empty() ? OpFoldResult(builder.getIndexAttr(0)) : getOrigin()[i];
    OpFoldResult moved =
        affine::makeComposedFoldedAffineApply(builder, loc, d0 + d1, {base, offsets[i]});
    operands.push_back(getValueOrCreateConstantIndexOp(builder, loc, moved));
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
// attn.pack_mask
//===----------------------------------------------------------------------===//

// The loops are those of the mask. Keys are a reduction: 32 of them become one word.

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
