//===- PackMasks.cpp - dense masks as bits ----------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %o = attn.attention ... captures(%keep : tensor<2x1x512x512xi1>) mask(#attn.dense<0>)
//          {indexing_maps = [..., (b, h, q, k, d, e) -> (b, 0, q, k), ...]}
// becomes
//   %w = attn.pack_mask ins(%keep) outs(%e : tensor<2x1x16x512xi32>)
//   %o = attn.attention ... captures(%w : tensor<2x1x16x512xi32>) mask(#attn.dense<0>)
//          {indexing_maps = [..., (b, h, q, k, d, e) -> (b, 0, k floordiv 32, q), ...]}
//
// Every head and every layer that reads the mask then reads at most an eighth of its bytes, for a vector of queries at
// a time, and skips tiles of keys that the mask hides completely. The pass packs operands that the mask tests, if their
// innermost dimensions are q and k and the tiles of keys begin at whole words; the score region may read these operands
// too if they are booleans. The schedule must be per-head or phased.
// Test: test/passes/plan/pack-masks.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/PackedMask.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PACKMASKS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Whether the schedule works on tiles that begin at whole words.
static bool hasTilesOfWords(AttentionOp op) {
  return op.getPlan() &&
         llvm::is_contained({Schedule::PerHead, Schedule::Phased}, op.getPlan()->getSchedule()) &&
         tilesBeginAtWords(op);
}

/// Whether captured operand `capture` becomes words.
static bool canPack(AttentionOp op, unsigned capture) {
  AffineMap map = op.getCaptureMap(capture);
  unsigned rank = map.getNumResults();
  if (rank < 2 || map.getResult(rank - 2) != getAffineDimExpr(op.getQDim(), op.getContext()) ||
      map.getResult(rank - 1) != getAffineDimExpr(op.getKDim(), op.getContext()))
    return false;
  // A bit holds a boolean completely, so the score region may read it too. Only the mask may read an operand of another
  // type.
  bool isBit = getElementTypeOrSelf(op.getCaptures()[capture]).isInteger(1);
  return isTested(op, capture) &&
         (isBit || op.getScore().empty() ||
          op.getScore().getArgument(op.getKDim() + 2 + capture).use_empty());
}

static Value createWords(OpBuilder &builder, Value mask) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(mask);
  Location loc = mask.getLoc();
  SmallVector<OpFoldResult> sizes;
  int64_t rank = cast<RankedTensorType>(mask.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    sizes.push_back(dimOf(builder, loc, mask, dim));
  std::swap(sizes[rank - 2], sizes[rank - 1]);
  sizes[rank - 2] = affine::makeComposedFoldedAffineApply(
      builder, loc, builder.getAffineDimExpr(0).ceilDiv(kKeysPerWord), {sizes[rank - 2]});
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, builder.getI32Type());
  return PackMaskOp::create(builder, loc, TypeRange{empty.getType()}, mask, empty).getResult(0);
}

namespace {
struct PackMasks : attn::impl::PackMasksBase<PackMasks> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    llvm::DenseMap<Value, Value> wordsOf; // shared by the attentions that read a mask
    getOperation().walk([&](AttentionOp op) {
      if (!hasTilesOfWords(op))
        return;
      for (unsigned i = 0; i < op.getCaptures().size(); ++i)
        if (canPack(op, i))
          pack(builder, op, i, wordsOf);
    });
  }

  void pack(OpBuilder &builder, AttentionOp op, unsigned capture,
            llvm::DenseMap<Value, Value> &wordsOf) {
    OpOperand &operand = op.getCapturesMutable()[capture];
    Value &words = wordsOf[operand.get()];
    if (!words)
      words = createWords(builder, operand.get());
    operand.set(words);

    AffineMap map = op.getCaptureMap(capture);
    SmallVector<AffineExpr> results(map.getResults());
    std::swap(results[results.size() - 2], results[results.size() - 1]);
    AffineExpr &key = results[results.size() - 2];
    key = key.floorDiv(kKeysPerWord);
    SmallVector<Attribute> maps(op.getIndexingMaps().getValue());
    maps[3 + capture] = AffineMapAttr::get(
        AffineMap::get(map.getNumDims(), map.getNumSymbols(), results, &getContext()));
    op.setIndexingMapsAttr(builder.getArrayAttr(maps));
    if (!op.getScore().empty())
      op.getScore().getArgument(op.getKDim() + 2 + capture).setType(builder.getI1Type());
  }
};
} // namespace
