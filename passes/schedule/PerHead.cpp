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
#include "passes/Product.h"
#include "passes/schedule/TileAndFuse.h"
#include "support/Loops.h"

#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PERHEAD
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

using OpSet = llvm::SmallPtrSet<Operation *, 8>;

static llvm::SetVector<Operation *> producersOf(Value value) {
  llvm::SetVector<Operation *> producers;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  if (Operation *producer = value.getDefiningOp())
    (void)getBackwardSlice(producer, &producers, options);
  return producers;
}

/// Whether the part of `product` for one batch item and head is a product of matrices, of a factor with the loop of
/// dimension `row` of its result and a factor with the loop of dimension `column`.
static bool multipliesMatrices(linalg::LinalgOp product, unsigned row, unsigned column) {
  std::optional<SmallVector<unsigned>> loops = findResultLoops(product);
  if (!loops)
    return false;
  unsigned rowLoop = (*loops)[row], columnLoop = (*loops)[column];
  auto has = [&](unsigned input, unsigned loop) {
    return product.getMatchingIndexingMap(product.getDpsInputOperand(input)).isFunctionOfDim(loop);
  };
  return llvm::any_of(llvm::seq(2u), [&](unsigned input) {
    return has(input, rowLoop) && !has(input, columnLoop) && has(1 - input, columnLoop) &&
           !has(1 - input, rowLoop);
  });
}

/// The ops that stay outside the tasks among those that compute captured operands. Some products are needed twice,
/// because queries, keys or values depend on them too. Others, such as a Linear layer that computes the bias of a pair
/// for all heads from its features, would be left with one column in the task of a head. An op that shares tasks of rows
/// with such a product stays with it. The bounds of scores (BoundFills.cpp) are computed once for all tiles of queries.
static OpSet findOutside(AttentionOp op) {
  OpSet ofOperands, outside;
  for (Value operand : {op.getQuery(), op.getKey(), op.getValue()})
    for (Operation *producer : producersOf(operand))
      ofOperands.insert(producer);
  for (auto [i, capture] : llvm::enumerate(op.getCaptures())) {
    AffineMap map = op.getCaptureMap(i);
    std::optional<unsigned> row = map.getResultPosition(
                                getAffineDimExpr(op.getQDim(), op.getContext())),
                            column = map.getResultPosition(
                                getAffineDimExpr(op.getKDim(), op.getContext()));
    for (Operation *producer : producersOf(capture)) {
      if (!isProduct(producer))
        continue;
      bool isMatrixProduct = producer == capture.getDefiningOp() && row && column &&
                             multipliesMatrices(cast<linalg::LinalgOp>(producer), *row, *column);
      if (!isMatrixProduct || ofOperands.contains(producer))
        outside.insert(producer);
    }
  }
  auto groupOf = [](Operation *producer) -> std::optional<int64_t> {
    auto task = producer->getAttrOfType<TaskAttr>(AttnDialect::kTaskAttr);
    return task ? task.getGroup() : std::nullopt;
  };
  llvm::SmallDenseSet<int64_t> groups;
  for (Operation *product : outside)
    if (std::optional<int64_t> group = groupOf(product))
      groups.insert(*group);
  for (Value capture : op.getCaptures())
    for (Operation *producer : producersOf(capture))
      if (std::optional<int64_t> group = groupOf(producer); group && groups.contains(*group))
        outside.insert(producer);
  if (op.getBounded()) // by the maximum over all keys
    for (Operation *producer : producersOf(op.getCaptures().back()))
      outside.insert(producer);
  return outside;
}

/// True if an op that would move into the task computes `value`.
static bool hasFusableProducer(Value value) {
  auto result = dyn_cast<OpResult>(value);
  return result && isa<linalg::LinalgOp>(result.getOwner());
}

/// The ops on which both the queries and the keys or values depend. Such an op stays outside the loop over query tiles,
/// because each query tile would compute its part again.
static OpSet findShared(AttentionOp op) {
  llvm::SetVector<Operation *> ofQuery = producersOf(op.getQuery());
  OpSet shared;
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
  OpSet outside = findOutside(op);
  // Whether a producer moves into a task. A projection and its init move; the input of a projection, which the
  // projections of all heads read, does not.
  auto movesInside = [&](tensor::ExtractSliceOp slice, OpResult producer) {
    return isa<linalg::LinalgOp, tensor::EmptyOp>(producer.getOwner()) &&
           !outside.contains(producer.getOwner()) && !feedsContraction(slice);
  };
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
  OpSet shared = findShared(op);
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
