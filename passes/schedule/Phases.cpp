//===- Phases.cpp - tasks for ops outside attention ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %c = linalg.contract ... ins(%o, %w : tensor<2x?x768xf32>, tensor<12x768x64xf32>) outs(%init)
// becomes
//   %c = scf.forall (%b, %i, %p) = (0, 0, 0) to (2, %s, 12) step (1, 96, 1) shared_outs(%e) {
//     linalg.generic ...                 the init, computed where it is used
//     linalg.contract ... ins(%ob, %wp) outs(...) : 96 x 64 outputs, whole depth
//
// The pass visits consumers first, so that a contraction moves into the tasks of the elementwise op that follows it. A
// contraction never moves into the tasks of a second contraction, because the tasks of each panel of the second
// contraction would compute the tiles of the first contraction again. An elementwise op that reads a sum or a maximum
// of each row, as the last op of a normalisation does, has tasks of whole rows:
//   %sum = linalg.generic {"parallel", "reduction"} ins(%x : tensor<128x768xf32>) ...
//   %y = linalg.generic ... ins(%x, %sum : tensor<128x768xf32>, tensor<128xf32>)
// becomes
//   %y = scf.forall (%i) = (0) to (128) step (16) { the sum of 16 rows, and the op that reads it }
// Ops without rows, such as ops on a vector, and ops that are already in a task stay unchanged.
// Test: test/passes/schedule/phases.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/Rows.h"
#include "passes/plan/Planner.h"
#include "passes/schedule/TileAndFuse.h"
#include "support/Loops.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PHASES
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The number of rows of a task without a product. It gives the task enough work to be worth the cost of a task.
static constexpr int64_t kRowsPerTask = 96;

/// The number of rows of a task that also reduces these rows. It is so small that the rows stay in L1 and L2 after the
/// reduction.
static constexpr int64_t kSummedRowsPerTask = 16;

/// Whether `op` reduces elements, for example to a sum or a maximum, and reads each element once. A convolution reads
/// elements more than once.
static bool isReduction(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumReductionLoops() > 0 && !isProduct(op) &&
         llvm::any_of(linalgOp.getDpsInputOperands(), [&](OpOperand *input) {
           return linalgOp.getMatchingIndexingMap(input).isPermutation();
         });
}

/// True if a reduction reads `value`, directly or through reshapes.
static bool isReducedByUser(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isReduction(user) || (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(user) &&
                                 isReducedByUser(user->getResult(0)));
  });
}

/// Ops that a search has visited and skips from then on, because elementwise ops are reached on many paths.
using Visited = llvm::SmallPtrSetImpl<Operation *>;

static bool isReduced(Value value, Visited &visited) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || !visited.insert(op).second)
    return false;
  return isReduction(op) || (op.getNumReductionLoops() == 0 &&
                             llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
                               return op.getMatchingIndexingMap(input).isPermutation() &&
                                      isReduced(input->get(), visited);
                             }));
}

/// True if a reduction computes `value`, perhaps followed by elementwise ops, as for a mean or its square root.
static bool isReduced(Value value) {
  llvm::SmallPtrSet<Operation *, 8> visited;
  return isReduced(value, visited);
}

/// Whether `op` is a product, or a convolution whose tasks are planned, as on CPUs.
static bool hasPlannedTasks(Operation *op) {
  return isProduct(op) || (isConvolution(op) && op->hasAttr(AttnDialect::kTaskAttr));
}

static std::pair<linalg::LinalgOp, AffineMap> findProduct(linalg::LinalgOp op, Visited &visited) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto producer = input->get().getDefiningOp<linalg::LinalgOp>();
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!producer || !map.isPermutation() || isReducedByUser(input->get()))
      continue;
    if (hasPlannedTasks(producer))
      return {producer, map};
    if (producer.getNumReductionLoops() > 0 || !visited.insert(producer).second)
      continue;
    // Map dimensions of the product's output to loops of the producer, to dimensions of its result, and to loops of
    // `op`.
    AffineMap out = producer.getMatchingIndexingMap(producer.getDpsInitOperand(0));
    if (auto [product, inner] = findProduct(producer, visited); product && out.isPermutation())
      return {product, inner.compose(inversePermutation(out)).compose(map)};
  }
  return {};
}

/// The product whose tiles become the tiles of elementwise `op`, if there is one, and the loop of `op` for each
/// dimension of the product's output. A product that a reduction reads too does not count, because it is computed
/// before both readers.
static std::pair<linalg::LinalgOp, AffineMap> findProduct(linalg::LinalgOp op) {
  llvm::SmallPtrSet<Operation *, 8> visited;
  return findProduct(op, visited);
}

/// The map by which elementwise `op` reads an operand that has one element per row, the result of a reduction. Null if
/// there is no such operand, or if `op` has the tasks of a product.
static AffineMap findRows(linalg::LinalgOp op) {
  if (!op || op.getNumReductionLoops() > 0 || findProduct(op).first)
    return AffineMap();
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (map.getNumResults() > 0 && map.getNumResults() < map.getNumDims() &&
        map.isProjectedPermutation() && isReduced(input->get()))
      return map;
  }
  return AffineMap();
}

/// The part of `size` that one step covers if a step covers at most `most`, and all steps cover about equal parts.
static int64_t dividedEvenly(int64_t size, int64_t most) {
  return size == 0 ? 1 : llvm::divideCeil(size, llvm::divideCeil(size, most));
}

/// The steps of the loops of a product; 0 keeps a loop inside the task. The innermost loop over rows has the planned
/// number of rows as its step. If it has fewer rows, a task contains all of them, and several iterations of the loop
/// around it if the machine merges the two. Loops over panels and batches have step 1.
static SmallVector<int64_t> productSizes(linalg::LinalgOp op) {
  auto reads = [&](unsigned input, unsigned loop) {
    return op.getMatchingIndexingMap(op.getDpsInputOperand(input)).isFunctionOfDim(loop);
  };
  SmallVector<int64_t> sizes(op.getNumLoops(), 0);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  auto task = op->getAttrOfType<TaskAttr>(AttnDialect::kTaskAttr);
  int64_t rows = task ? task.getRows() : kRowsPerTask;
  TargetInterface target = getTarget(op); // none in a file that names no machine
  auto planner = target ? dyn_cast<PlannerInterface>(target) : PlannerInterface();
  Rows merged = planner && planner.mergesRows() ? findEvenRowLoops(op) : Rows();
  bool isInnermost = true;
  // The loops are in the order of the output. Its last dimension is left to vectors unless the plan divides it.
  std::optional<SmallVector<unsigned>> out = findResultLoops(op);
  if (!out || out->empty())
    return sizes;
  unsigned last = out->pop_back_val();
  if (task && task.getColumns() && reads(1, last) && !reads(0, last))
    sizes[last] = task.getColumns();
  for (unsigned loop : llvm::reverse(*out)) {
    sizes[loop] = 1;
    if (!reads(0, loop) || reads(1, loop))
      continue;
    bool isKnown = !ShapedType::isDynamic(ranges[loop]),
         isMerged = llvm::is_contained(merged, int64_t(loop));
    if (isInnermost)
      sizes[loop] = rows;
    else if (isMerged)
      sizes[loop] = isKnown ? dividedEvenly(ranges[loop], rows) : rows;
    bool isWhole = isMerged && isKnown && ranges[loop] <= rows;
    rows = isWhole ? rows / std::max<int64_t>(1, ranges[loop]) : 1;
    isInnermost = false;
  }
  return sizes;
}

/// The steps of the loops of a convolution: the planned rows are output channels, and the planned columns are elements
/// of the image, of which the innermost dimensions come first. Loops over groups have step 1.
static SmallVector<int64_t> convolutionSizes(linalg::LinalgOp op) {
  auto task = op->getAttrOfType<TaskAttr>(AttnDialect::kTaskAttr);
  AffineMap image = op.getMatchingIndexingMap(op.getDpsInputOperand(0)),
            kernel = op.getMatchingIndexingMap(op.getDpsInputOperand(1));
  SmallVector<int64_t> sizes(op.getNumLoops(), 0), ranges = op.getStaticLoopRanges();
  int64_t columns = task.getColumns();
  bool foundRows = false;
  SmallVector<unsigned> out = *findResultLoops(op);
  for (unsigned loop : llvm::reverse(out)) {
    if (image.isFunctionOfDim(loop) && !kernel.isFunctionOfDim(loop)) {
      if (ShapedType::isDynamic(ranges[loop]))
        sizes[loop] = columns;
      else if (ranges[loop] > columns)
        sizes[loop] = loop == out.back() ? columns : dividedEvenly(ranges[loop], columns);
      columns =
          sizes[loop] ? 1 : std::max<int64_t>(1, columns / std::max<int64_t>(1, ranges[loop]));
    } else {
      bool isRows = !foundRows && !image.isFunctionOfDim(loop);
      sizes[loop] = isRows ? task.getRows() : 1;
      foundRows |= isRows;
    }
  }
  return sizes;
}

/// The tasks of a convolution whose channels are the last dimension of the output are like those of a product: their
/// rows are rows of the image, and they have no planned columns.
static SmallVector<int64_t> plannedSizes(linalg::LinalgOp op) {
  bool isLikeProduct =
      isProduct(op) || op->getAttrOfType<TaskAttr>(AttnDialect::kTaskAttr).getColumns() == 0;
  return isLikeProduct ? productSizes(op) : convolutionSizes(op);
}

/// For each loop of `op`, the step of the loop over tasks that it becomes; 0 keeps a loop inside the task.
static SmallVector<int64_t> taskSizes(TilingInterface op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(*op);
  if (hasPlannedTasks(op))
    return plannedSizes(linalgOp);
  SmallVector<utils::IteratorType> types = op.getLoopIteratorTypes();
  SmallVector<int64_t> sizes(types.size(), 0);
  if (linalgOp && linalgOp.getNumReductionLoops() == 0) {
    // An elementwise op has the tasks of the product that it follows; otherwise the product would be computed in tiles
    // of another shape.
    if (auto [product, map] = findProduct(linalgOp); product) {
      SmallVector<int64_t> tile = plannedSizes(product);
      AffineMap out = product.getMatchingIndexingMap(product.getDpsInitOperand(0));
      for (auto [expr, ofProduct] : llvm::zip_equal(map.getResults(), out.getResults()))
        if (std::optional<unsigned> loop = findLoop(expr), dim = findLoop(ofProduct); loop && dim)
          sizes[*loop] = tile[*dim];
      return sizes;
    }
  }
  if (AffineMap rows = findRows(linalgOp)) {
    for (AffineExpr expr : rows.getResults())
      if (std::optional<unsigned> loop = findLoop(expr))
        sizes[*loop] = expr == rows.getResults().back() ? kSummedRowsPerTask : 1;
    return sizes;
  }
  // The innermost loop of the output, or of rows that are reduced, is left to vectors. The next outer loop runs over
  // rows; the steps of all other loops are 1.
  SmallVector<unsigned> parallel;
  for (auto [loop, type] : llvm::enumerate(types))
    if (type == utils::IteratorType::parallel)
      parallel.push_back(loop);
  if (parallel.empty())
    return sizes;
  bool reducesRows =
      types.back() == utils::IteratorType::reduction &&
      (!linalgOp || llvm::all_of(linalgOp.getDpsInputOperands(), [&](OpOperand *operand) {
        return linalgOp.getMatchingIndexingMap(operand).isFunctionOfDim(parallel.back());
      }));
  if (!reducesRows)
    parallel.pop_back();
  for (unsigned loop : parallel)
    sizes[loop] = loop == parallel.back() ? kRowsPerTask : 1;
  return sizes;
}

/// Whether `value`, which `tasks` contains, depends on `loop`, one of its loops.
static bool dependsOn(Value value, Value loop, scf::ForallOp tasks) {
  if (value == loop)
    return true;
  Operation *op = value.getDefiningOp();
  return op && tasks->isProperAncestor(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
           return dependsOn(operand, loop, tasks);
         });
}

/// Whether the offsets of `slice` depend on each loop over tasks, so that tasks do not all read the same elements.
static bool isOfOneTask(tensor::ExtractSliceOp slice) {
  auto tasks = slice->getParentOfType<scf::ForallOp>();
  return tasks && llvm::all_of(tasks.getInductionVars(), [&](Value loop) {
           return llvm::any_of(slice.getOffsets(),
                               [&](Value offset) { return dependsOn(offset, loop, tasks); });
         });
}

/// Whether a producer moves into the tasks: only one task needs each of its elements, or the producer computes an init.
static bool movesInside(tensor::ExtractSliceOp slice, OpResult producer) {
  auto producerOp = dyn_cast<linalg::LinalgOp>(producer.getOwner());
  if (!producerOp || feedsContraction(slice))
    return false;
  // Several tasks may repeat an init, such as a broadcast bias, because it takes little work, but not a sum.
  bool isInit = producerOp.getNumReductionLoops() == 0 && producerOp.getNumDpsInputs() <= 1;
  if (producerOp.getNumReductionLoops() > 0 && !isOfOneTask(slice))
    return false;
  return isInit || llvm::all_of(slice->getUses(), [](OpOperand &use) {
           auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
           return user && user.getNumReductionLoops() == 0 &&
                  user.getMatchingIndexingMap(&use).isPermutation();
         });
}

/// True if a reduction computes `producer`, and only one task needs each of its elements, given that tasks consist of
/// whole `rows`.
static bool isOfRows(tensor::ExtractSliceOp slice, OpResult producer, AffineMap rows) {
  return rows && isReduced(producer) && llvm::all_of(slice->getUses(), [&](OpOperand &use) {
           auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
           if (!user)
             return false;
           AffineMap map = user.getMatchingIndexingMap(&use);
           return map.isPermutation() || map == rows ||
                  (isReduction(user) &&
                   map == user.getMatchingIndexingMap(user.getDpsInitOperand(0)));
         });
}

namespace {
struct Phases : attn::impl::PhasesBase<Phases> {
  void runOnOperation() override {
    if (getOperation().isDeclaration())
      return;
    IRRewriter rewriter(&getContext());
    auto isCandidate = [](Operation *op) {
      return isa<TilingInterface>(op) && isa<DestinationStyleOpInterface>(op) &&
             !isa<AttentionOp, linalg::FillOp>(op);
    };
    // Visit the ops from the last to the first. Tiling erases the op and the ops that moved into its tasks; the ops
    // that are left to visit are before the tasks.
    Block &body = getOperation().getBody().front();
    for (Operation *op = body.getTerminator(); op; op = op->getPrevNode()) {
      if (!isCandidate(op))
        continue;
      SmallVector<int64_t> sizes = taskSizes(cast<TilingInterface>(op));
      if (llvm::all_of(sizes, [](int64_t size) { return size == 0; }))
        continue;
      AffineMap rows = findRows(dyn_cast<linalg::LinalgOp>(op));
      FailureOr<Operation *> tiled = tileAndFuse(
          rewriter, cast<TilingInterface>(op), sizes, scf::SCFTilingOptions::LoopType::ForallOp,
          [&](tensor::ExtractSliceOp slice, OpResult producer) {
            return movesInside(slice, producer) || isOfRows(slice, producer, rows);
          },
          [&](OpResult producer) { return rows && isReduced(producer); });
      if (failed(tiled)) {
        op->emitError() << "expected an op that tiles into tasks, got one that does not";
        return signalPassFailure();
      }
      op = body.findAncestorOpInBlock(**tiled);
    }
  }
};
} // namespace
