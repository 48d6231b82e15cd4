//===- StridedView.cpp - an operand as one row of elements -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/StridedView.h"
#include "support/Loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

FailureOr<SmallVector<int64_t>> attn::getLoopStrides(MemRefType type, AffineMap map) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return failure();
  SmallVector<int64_t> ofLoops(map.getNumDims(), 0);
  for (auto [stride, expr] : llvm::zip_equal(strides, map.getResults())) {
    std::optional<SmallVector<LoopTerm>> terms = findTerms(expr);
    if (!terms)
      return failure();
    for (auto [loop, factor] : *terms)
      ofLoops[loop] = ShapedType::isDynamic(stride) || ShapedType::isDynamic(ofLoops[loop])
                          ? ShapedType::kDynamic
                          : ofLoops[loop] + factor * stride;
  }
  return ofLoops;
}

StridedView StridedView::create(OpBuilder &builder, Location loc, Value memref, AffineMap map) {
  auto type = cast<MemRefType>(memref.getType());
  auto [strides, offset] = type.getStridesAndOffset();
  SmallVector<OpFoldResult> mixedStrides, mixedSizes = memref::getMixedSizes(builder, loc, memref);
  OpFoldResult mixedOffset;
  bool isStatic = !ShapedType::isDynamic(offset) && !ShapedType::isDynamicShape(strides);
  if (isStatic) {
    mixedStrides = getAsIndexOpFoldResult(builder.getContext(), strides);
    mixedOffset = builder.getIndexAttr(offset);
  } else {
    auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, memref);
    mixedStrides = metadata.getConstifiedMixedStrides();
    mixedOffset = metadata.getConstifiedMixedOffset();
  }

  // One more than the index of the last element. Only the type of the row needs it.
  AffineExpr extent = builder.getAffineConstantExpr(1);
  SmallVector<OpFoldResult> symbols;
  for (auto [size, stride] : llvm::zip_equal(mixedSizes, mixedStrides)) {
    AffineExpr s = builder.getAffineSymbolExpr(symbols.size()),
               t = builder.getAffineSymbolExpr(symbols.size() + 1);
    extent = extent + (s - 1) * t;
    symbols.append({size, stride});
  }
  OpFoldResult length = affine::makeComposedFoldedAffineApply(builder, loc, extent, symbols);
  if (llvm::is_contained(type.getShape(), 0))
    length = builder.getIndexAttr(0);

  StridedView view;
  view.row = memref::ReinterpretCastOp::create(builder, loc, memref, mixedOffset,
                                               ArrayRef<OpFoldResult>{length},
                                               ArrayRef<OpFoldResult>{builder.getIndexAttr(1)});
  view.strides.resize(map.getNumDims());
  for (auto [stride, expr] : llvm::zip_equal(mixedStrides, map.getResults())) {
    SmallVector<LoopTerm> terms = *findTerms(expr);
    for (auto [loop, factor] : terms) {
      Value &ofLoop = view.strides[loop];
      Value term = getValueOrCreateConstantIndexOp(builder, loc, stride);
      if (factor != 1)
        term = builder.createOrFold<arith::MulIOp>(
            loc, term, arith::ConstantIndexOp::create(builder, loc, factor));
      ofLoop = ofLoop ? builder.createOrFold<arith::AddIOp>(loc, ofLoop, term) : term;
    }
  }
  return view;
}

Value StridedView::advance(OpBuilder &builder, Location loc, Value index, unsigned loop,
                           Value count) const {
  Value stride = strides[loop];
  if (!stride)
    return index;
  Value distance = builder.createOrFold<arith::MulIOp>(loc, count, stride);
  return builder.createOrFold<arith::AddIOp>(loc, index, distance);
}
