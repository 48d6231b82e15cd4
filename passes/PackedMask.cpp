//===- PackedMask.cpp - attentions whose dense mask is packed ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/PackedMask.h"

using namespace mlir;
using namespace attn;

bool attn::isTested(AttentionOp op, unsigned capture) {
  return op.getMaskAttr() &&
         llvm::any_of(op.getMaskAttr().kept(op.getNumBatch()), [&](const KeptSet &set) {
           return llvm::any_of(set.tests, [&](DenseTest test) { return test.capture == capture; });
         });
}

bool attn::tilesBeginAtWords(AttentionOp op) {
  int64_t tile = op.getPlan()->getK();
  AffineExpr k = getAffineDimExpr(op.getKDim(), op.getContext());
  int64_t keys =
      cast<ShapedType>(op.getKey().getType()).getDimSize(*op.getKeyMap().getResultPosition(k));
  bool isSingleTile = !ShapedType::isDynamic(keys) && keys <= tile;
  return isSingleTile || tile % kKeysPerWord == 0;
}

LogicalResult attn::verifyPackedMask(AttentionOp op) {
  for (unsigned i = 0; i < op.getCaptures().size(); ++i) {
    if (!findWordOfKey(op.getCaptureMap(i)))
      continue;
    if (!isTested(op, i))
      return op.emitOpError() << "expected the mask to test packed operand " << i;
    if (op.getPlan()->getSchedule() == Schedule::Decode)
      return op.emitOpError()
             << "expected schedule per-head or phased for a packed mask, got decode";
    if (!tilesBeginAtWords(op))
      return op.emitOpError() << "expected key tiles of whole words of " << kKeysPerWord
                              << " keys for a packed mask, got k = " << op.getPlan()->getK();
  }
  return success();
}

static void collect(AttentionOp op, MaskInterface mask, SmallVectorImpl<DenseAttr> &packed,
                    SmallVectorImpl<Attribute> &rest) {
  if (auto all = dyn_cast<AndAttr>(mask)) {
    for (Attribute part : all.getMasks())
      collect(op, cast<MaskInterface>(part), packed, rest);
    return;
  }
  auto dense = dyn_cast<DenseAttr>(mask);
  if (dense && findWordOfKey(op.getCaptureMap(dense.getCapture())))
    packed.push_back(dense);
  else
    rest.push_back(mask);
}

MaskParts attn::splitMask(AttentionOp op) {
  MaskParts parts;
  SmallVector<Attribute> rest;
  if (op.getMaskAttr())
    collect(op, op.getMaskAttr(), parts.packed, rest);
  if (rest.size() == 1)
    parts.rest = cast<MaskInterface>(rest.front());
  else if (!rest.empty())
    parts.rest = AndAttr::get(op.getContext(), rest);
  return parts;
}
