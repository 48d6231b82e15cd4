//===- TileAndFuse.cpp - one level of loops around an op -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/TileAndFuse.h"
#include "passes/Product.h"
#include "passes/plan/Planner.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace attn;

/// True if the iterations of the loops around `slice`, out to `outermost`, together read all of the source of `slice`,
/// and each iteration reads a separate part.
static bool dividesSource(tensor::ExtractSliceOp slice, Operation *outermost) {
  auto isSizeOf = [&](OpFoldResult size, int64_t dim) {
    FailureOr<bool> isEqual = ValueBoundsConstraintSet::areEqual(
        size, ValueBoundsConstraintSet::Variable(slice.getSource(), dim));
    return succeeded(isEqual) && *isEqual;
  };
  auto sizes = slice.getMixedSizes(), offsets = slice.getMixedOffsets();
  llvm::SmallBitVector isDivided(sizes.size());
  for (auto loop = slice->getParentOfType<LoopLikeOpInterface>(); loop;
       loop = loop->getParentOfType<LoopLikeOpInterface>()) {
    for (auto [variable, from, to] :
         llvm::zip_equal(*loop.getLoopInductionVars(), *loop.getLoopLowerBounds(),
                         *loop.getLoopUpperBounds())) {
      auto offset = llvm::find(offsets, OpFoldResult(variable));
      int64_t dim = offset - offsets.begin();
      if (offset == offsets.end() || !isZeroInteger(from) || !isSizeOf(to, dim))
        return false;
      isDivided.set(dim);
    }
    if (loop == outermost)
      break;
  }
  return llvm::all_of(llvm::seq<int64_t>(sizes.size()), [&](int64_t dim) {
    return isDivided[dim] || (isZeroInteger(offsets[dim]) && isSizeOf(sizes[dim], dim));
  });
}

FailureOr<Operation *> attn::tileAndFuse(IRRewriter &rewriter, TilingInterface op,
                                         ArrayRef<int64_t> tileSizes,
                                         scf::SCFTilingOptions::LoopType loopType,
                                         FuseControl control,
                                         llvm::function_ref<bool(OpResult)> mayRepeat) {
  SmallVector<OpFoldResult> sizes = llvm::map_to_vector(
      tileSizes, [&](int64_t size) -> OpFoldResult { return rewriter.getIndexAttr(size); });
  scf::SCFTileAndFuseOptions options;
  options.tilingOptions.setTileSizes(sizes).setLoopType(loopType);
  // The ops that `op` depends on. The result of a producer that reaches `op` on two paths cannot be returned from the
  // loops, because the other path starts before them, and fusing the producer on both paths would compute it twice.
  // Therefore the producer stays outside, unless its tiles are known to be equal.
  llvm::SetVector<Operation *> producers;
  BackwardSliceOptions sliceOptions;
  sliceOptions.omitUsesFromAbove = false;
  (void)getBackwardSlice(op.getOperation(), &producers, sliceOptions);
  producers.insert(op);
  llvm::SmallPtrSet<Operation *, 8> fused = {op};
  bool repeats = false;
  options.setFusionControlFn([&](tensor::ExtractSliceOp slice, OpResult producer, bool)
                                 -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
    if (!control(slice, producer))
      return std::nullopt;
    Operation *owner = producer.getOwner();
    Block *block = owner->getBlock();
    Operation *loops = block->findAncestorOpInBlock(*slice);
    bool repeatable = mayRepeat && mayRepeat(producer);
    unsigned numUses = 0;
    bool hasOtherUse = false;
    for (Operation *user : producer.getUsers()) {
      // Neither a loop, which takes over the inits of the ops that it tiles, nor a tensor.dim counts as a use.
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      if (ancestor == loops || isa<tensor::DimOp, LoopLikeOpInterface>(user))
        continue;
      numUses += producers.contains(ancestor);
      // A fused op does not count as a use: it stays beside its tiles only until nothing uses it.
      if (fused.contains(ancestor) || (repeatable && producers.contains(ancestor)))
        continue;
      hasOtherUse = true;
      // The loops take the place of `op`, which is too late for users before `op`.
      if (block == op->getBlock() && ancestor->isBeforeInBlock(op))
        return std::nullopt;
    }
    // Loops can return a result only if they compute every element of it once.
    if (hasOtherUse && !dividesSource(slice, loops))
      return std::nullopt;
    // A result with a use outside an enclosing task cannot be returned from loops inside it.
    if ((numUses > 1 && (!repeatable || hasOtherUse)) || (hasOtherUse && block != op->getBlock()))
      return std::nullopt;
    repeats |= numUses > 1;
    fused.insert(owner);
    return scf::SCFTileAndFuseOptions::ControlFnResult{/*yieldProducerReplacement=*/hasOtherUse};
  });
  // A slice of a slice hides the producer; a slice of an empty tensor would keep the whole tensor.
  RewritePatternSet cleanup(op.getContext());
  tensor::populateMergeConsecutiveInsertExtractSlicePatterns(cleanup);
  tensor::populateFoldTensorEmptyPatterns(cleanup);
  tensor::ExtractSliceOp::getCanonicalizationPatterns(cleanup, op.getContext());
  attn::populateFoldPartSizes(cleanup);
  options.cleanupPatterns = FrozenRewritePatternSet(std::move(cleanup));

  rewriter.setInsertionPoint(op);
  FailureOr<scf::SCFTileAndFuseResult> result =
      scf::tileConsumerAndFuseProducersUsingSCF(rewriter, op, options);
  if (failed(result))
    return failure();
  // Slices that fusion left behind in the loops must not count as uses.
  if (!result->loops.empty())
    result->loops.front()->walk<WalkOrder::PostOrder>([&](tensor::ExtractSliceOp slice) {
      if (slice.use_empty())
        rewriter.eraseOp(slice);
    });
  if (repeats && !result->loops.empty()) {
    DominanceInfo dominance;
    eliminateCommonSubExpressions(rewriter, dominance, result->loops.front());
    // CSE has merged equal fills, but each result needs an init of its own.
    result->loops.front()->walk([&](linalg::FillOp fill) {
      while (!fill->hasOneUse() && !fill->use_empty()) {
        OpOperand &use = *fill->use_begin();
        rewriter.setInsertionPoint(use.getOwner());
        use.set(rewriter.clone(*fill)->getResult(0));
      }
    });
  }
  // The bounds of the loops may read sizes of results that the loops replace.
  for (Operation *original : fused) {
    for (Operation *user : llvm::to_vector(original->getUsers())) {
      auto dim = dyn_cast<tensor::DimOp>(user);
      std::optional<int64_t> axis = dim ? dim.getConstantIndex() : std::nullopt;
      if (!axis)
        continue;
      rewriter.setInsertionPoint(dim);
      OpFoldResult size = dimOf(rewriter, dim.getLoc(), dim.getSource(), *axis);
      rewriter.replaceOp(dim, getValueOrCreateConstantIndexOp(rewriter, dim.getLoc(), size));
    }
  }
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
  // `op` is tiled first, before the producers that are fused with it.
  return result->tiledAndFusedOps.front();
}

FailureOr<Operation *> attn::tileByQuery(IRRewriter &rewriter, AttentionOp op) {
  SmallVector<int64_t> sizes(op.getNumBatch(), 1);
  sizes.push_back(op.getPlan()->getQ());
  FailureOr<Operation *> tiled = tileAndFuse(rewriter, cast<TilingInterface>(*op), sizes,
                                             scf::SCFTilingOptions::LoopType::ForallOp,
                                             [](tensor::ExtractSliceOp, OpResult producer) {
                                               return isa<tensor::EmptyOp>(producer.getOwner());
                                             });
  if (succeeded(tiled))
    mapTasks((*tiled)->getParentOfType<scf::ForallOp>());
  return tiled;
}

void attn::mapTasks(scf::ForallOp tasks) {
  auto planner = dyn_cast_if_present<PlannerInterface>(getTarget(tasks));
  if (ArrayAttr mapping = planner ? planner.mapTasks(tasks.getRank()) : ArrayAttr())
    tasks.setMappingAttr(mapping);
}

bool attn::feedsContraction(tensor::ExtractSliceOp slice) {
  return llvm::any_of(slice->getUses(), [](OpOperand &use) {
    auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
    return isProductOrConvolution(op) && op.isDpsInput(&use);
  });
}

SmallVector<AttentionOp> attn::findUnscheduled(Operation *root, ArrayRef<Schedule> schedules) {
  SmallVector<AttentionOp> ops;
  root->walk([&](AttentionOp op) {
    if (op.getPlan() && llvm::is_contained(schedules, op.getPlan()->getSchedule()) &&
        !op->getParentOfType<scf::ForallOp>())
      ops.push_back(op);
  });
  return ops;
}
