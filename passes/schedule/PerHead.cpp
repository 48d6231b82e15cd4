//===- PerHead.cpp - one task for each head --------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %q = linalg.contract ... ins(%x, %wq)   %k = ... ins(%x, %wk)   %v = ... ins(%x, %wv)
//   %o = attn.attention ins(%q, %k, %v) outs(%e) plan(<"per-head", q = 48, k = 128>)
// becomes
//   %o = scf.forall (%b, %h) in (2, 12) shared_outs(%e) {
//     %kt = linalg.contract ... ins(%xb, %wkh)   %vt = ... ins(%xb, %wvh)        this head's keys and values, once
//     scf.for %i = 0 to %s step 48 {
//       %qt = linalg.contract ... ins(%xi, %wqh)                                this tile's queries
//       attn.attention ins(%qt, %kt, %vt) outs(...) at(%b, %h, %i, 0) plan(...)
//
// The outer loops are the batch dimensions of the keys; loops over query groups and query tiles are inside. No
// projection is computed twice, and the keys and values of one head can stay in L2. If no producer of keys or values
// moves into the tasks, the query tiles have nothing to share and become tasks of their own. If there is a single batch
// item with a single head, which would be the only task, the query tiles become tasks too, after a phase for keys and
// values. The schedule whole-scores has the same tasks. An attention with another schedule stays unchanged.
// Test: test/passes/schedule/per-head.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/schedule/TileAndFuse.h"

#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PERHEAD
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Whether a producer moves into a task. A projection and its init move; the input of a projection, which the
/// projections of all heads read, does not.
static bool movesInside(tensor::ExtractSliceOp slice, OpResult producer) {
  return isa<linalg::LinalgOp, tensor::EmptyOp>(producer.getOwner()) && !feedsContraction(slice);
}

/// True if an op that would move into the task computes `value`.
static bool hasFusableProducer(Value value) {
  auto result = dyn_cast<OpResult>(value);
  return result && isa<linalg::LinalgOp>(result.getOwner());
}

/// The ops on which both the queries and the keys or values depend. Such an op stays outside the loop over query tiles,
/// because each query tile would compute its part again.
static llvm::SmallPtrSet<Operation *, 8> findShared(AttentionOp op) {
  auto producersOf = [](Value value) {
    llvm::SetVector<Operation *> producers;
    BackwardSliceOptions options;
    options.inclusive = true;
    options.omitUsesFromAbove = false;
    if (Operation *producer = value.getDefiningOp())
      (void)getBackwardSlice(producer, &producers, options);
    return producers;
  };
  llvm::SetVector<Operation *> ofQuery = producersOf(op.getQuery());
  llvm::SmallPtrSet<Operation *, 8> shared;
  for (Value operand : {op.getKey(), op.getValue()})
    for (Operation *producer : producersOf(operand))
      if (isa<linalg::LinalgOp>(producer) && ofQuery.contains(producer))
        shared.insert(producer);
  return shared;
}

static LogicalResult schedulePerHead(IRRewriter &rewriter, AttentionOp op) {
  rewriter.setInsertionPoint(op);
  unsigned numBatch = op.getNumBatch();
  int64_t qTile = op.getPlan()->getQ();
  SmallVector<int64_t> outer, inner;
  SmallVector<Range> domain = op.getIterationDomain(rewriter);
  bool isSingleTask = true;
  for (unsigned i = 0; i < numBatch; ++i) {
    bool inKey = op.getKeyMap().isFunctionOfDim(i);
    isSingleTask &= !inKey || isOneInteger(domain[i].size);
    outer.push_back(inKey ? 1 : 0);
    inner.push_back(inKey ? 0 : 1);
  }
  auto forall = scf::SCFTilingOptions::LoopType::ForallOp;

  // A producer of both keys and values stays outside, because it would move into the task twice.
  bool shares = op.getKey() != op.getValue() &&
                (hasFusableProducer(op.getKey()) || hasFusableProducer(op.getValue()));
  if (!shares || isSingleTask) {
    SmallVector<int64_t> all(numBatch, 1);
    all.push_back(qTile);
    return tileAndFuse(rewriter, cast<TilingInterface>(*op), all, forall,
                       [&](tensor::ExtractSliceOp slice, OpResult producer) {
                         // Every query tile would compute the keys and values again.
                         return producer != op.getKey() && producer != op.getValue() &&
                                movesInside(slice, producer);
                       });
  }

  Value query = op.getQuery();
  llvm::SmallPtrSet<Operation *, 8> shared = findShared(op);
  FailureOr<Operation *> perHead =
      tileAndFuse(rewriter, cast<TilingInterface>(*op), outer, forall,
                  [&](tensor::ExtractSliceOp slice, OpResult producer) {
                    return producer != query && movesInside(slice, producer);
                  });
  if (failed(perHead))
    return failure();
  inner.push_back(qTile);
  Operation *task = (*perHead)->getParentOfType<scf::ForallOp>();
  return tileAndFuse(
      rewriter, cast<TilingInterface>(*perHead), inner, scf::SCFTilingOptions::LoopType::ForOp,
      [&](tensor::ExtractSliceOp slice, OpResult producer) {
        // The query tiles share the producers that are already in the task.
        return !task->isProperAncestor(producer.getOwner()) &&
               !shared.contains(producer.getOwner()) && movesInside(slice, producer);
      });
}

namespace {
struct PerHead : attn::impl::PerHeadBase<PerHead> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (AttentionOp op :
         findUnscheduled(getOperation(), {Schedule::PerHead, Schedule::WholeScores})) {
      if (failed(schedulePerHead(rewriter, op))) {
        op.emitError() << "expected an attention that tiles by head, got one that does not";
        return signalPassFailure();
      }
    }
  }
};
} // namespace
