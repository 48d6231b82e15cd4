//===- TileAndFuse.cpp - one level of loops around an op -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/TileAndFuse.h"
#include "dialect/Attn.h"

#include "mlir/Dialect/Tensor/Transforms/Transforms.h"

using namespace mlir;
using namespace attn;

FailureOr<Operation *> attn::tileAndFuse(IRRewriter &rewriter, TilingInterface op, ArrayRef<int64_t> tileSizes,
                                         scf::SCFTilingOptions::LoopType loopType, FuseControl control) {
  SmallVector<OpFoldResult> sizes =
      llvm::map_to_vector(tileSizes, [&](int64_t size) -> OpFoldResult { return rewriter.getIndexAttr(size); });
  scf::SCFTileAndFuseOptions options;
  options.tilingOptions.setTileSizes(sizes).setLoopType(loopType);
  // The originals stay beside their tiles until they are dead, and the loops take over their inits: neither is another
  // use, nor is a question for a size.
  llvm::SmallPtrSet<Operation *, 8> fused = {op};
  options.setFusionControlFn([&](tensor::ExtractSliceOp slice, OpResult producer,
                                 bool) -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
    if (!control(slice, producer))
      return std::nullopt;
    Operation *owner = producer.getOwner();
    fused.insert(owner);
    bool hasOtherUse = llvm::any_of(producer.getUsers(), [&](Operation *user) {
      return user->getBlock() == owner->getBlock() && !fused.contains(user) &&
             !isa<tensor::DimOp, LoopLikeOpInterface>(user);
    });
    return scf::SCFTileAndFuseOptions::ControlFnResult{/*yieldProducerReplacement=*/hasOtherUse};
  });
  // A slice of a slice hides the producer; a slice of an empty tensor would keep the whole of it.
  RewritePatternSet cleanup(op.getContext());
  tensor::populateMergeConsecutiveInsertExtractSlicePatterns(cleanup);
  tensor::populateFoldTensorEmptyPatterns(cleanup);
  tensor::ExtractSliceOp::getCanonicalizationPatterns(cleanup, op.getContext());
  options.cleanupPatterns = FrozenRewritePatternSet(std::move(cleanup));

  StringRef name = op->getName().getStringRef();
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  FailureOr<scf::SCFTileAndFuseResult> result = scf::tileConsumerAndFuseProducersUsingSCF(rewriter, op, options);
  if (failed(result))
    return failure();
  for (auto [from, to] : result->replacements)
    rewriter.replaceAllUsesWith(from, to);
  // Erase the originals, consumers first.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *original : llvm::to_vector(fused)) {
      if (!isOpTriviallyDead(original))
        continue;
      fused.erase(original);
      rewriter.eraseOp(original);
      changed = true;
    }
  }
  for (Operation *tiled : result->tiledAndFusedOps)
    if (tiled->getName().getStringRef() == name && tiled->getLoc() == loc)
      return tiled;
  return failure();
}

bool attn::feedsContraction(tensor::ExtractSliceOp slice) {
  return llvm::any_of(slice->getUses(), [](OpOperand &use) {
    auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
    return op && op.isDpsInput(&use) && linalg::isaContractionOpInterface(op);
  });
}
