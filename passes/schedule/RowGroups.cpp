//===- RowGroups.cpp - a task computes rows of several ops -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %h = linalg.contract {attn.task = #attn.task<rows = 24, group = 0>} ... ins(%x, %w1) outs(%i1)
//   %a = linalg.generic {attn.task = #attn.task<rows = 24, group = 0>} ... ins(%h)              an activation
//   %y = linalg.contract {attn.task = #attn.task<rows = 24, group = 0>} ... ins(%a, %w2) outs(%i2)
// becomes
//   %y = scf.forall (%b, %i) = (0, 0) to (2, %s) step (1, 24) shared_outs(%e) {
//     %ht = linalg.contract ... ins(%xt, %w1)
//     %at = linalg.generic ... ins(%ht)
//     linalg.contract ... ins(%at, %w2)
//
// A task computes its rows of every op of the group, in order, with all columns. Values that only the group reads have
// no memory outside the task; other values are results of the loops. If an op is between the ops of a group and depends
// on the group, but is not part of it, the op moves behind the loops; no op of the group may depend on this op.
// Ops without a group stay unchanged. Test: test/passes/schedule/row-groups.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/Rows.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_ROWGROUPS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
class Group {
public:
  explicit Group(ArrayRef<linalg::LinalgOp> ops) : first(ops.front()), last(ops.back()) {
    for (linalg::LinalgOp op : ops)
      members.insert(op);
  }

  LogicalResult schedule(IRRewriter &rewriter);

private:
  /// Adds the reshapes between the ops.
  void addReshapes(IRRewriter &rewriter);
  /// Finds the rows of every value and the loops over rows of every op.
  LogicalResult findRows();
  /// Moves ops that depend on the group, but are not part of it, from between the ops of the group to behind the last
  /// op.
  LogicalResult moveUsers();

  bool isMember(Value value) const { return members.contains(value.getDefiningOp()); }
  /// The results that ops outside the group read.
  llvm::SetVector<Value> findResults() const;
  /// The first op of the chain that computes `result`, in which each op adds to the result of the op before it. The
  /// init of the first op becomes the memory of `result`. Null if the chain begins with another result of the group or
  /// with a reshape in the group.
  Operation *findStart(Value result, const llvm::SetVector<Value> &results) const;
  /// The size of a loop of `op`.
  OpFoldResult sizeOf(OpBuilder &builder, linalg::LinalgOp op, unsigned loop) const;
  /// The tile of `op`, given the tiles of the ops before it.
  FailureOr<Value> tile(IRRewriter &rewriter, Operation *op,
                        const llvm::DenseMap<Value, Value> &tiles, Value destination) const;
  /// The offsets and sizes of the tile of `value`.
  std::pair<SmallVector<OpFoldResult>, SmallVector<OpFoldResult>> tileOf(OpBuilder &builder,
                                                                         Value value) const;

  Operation *first, *last;
  llvm::SetVector<Operation *> members; // in the order of the block
  llvm::DenseMap<Operation *, Rows> loops;
  llvm::DenseMap<Value, Rows> rows;
  // The offset and the size of the part of a task in each loop over rows.
  SmallVector<OpFoldResult> offsets, sizes;
};
} // namespace

void Group::addReshapes(IRRewriter &rewriter) {
  std::function<bool(Operation *)> leadsToMember = [&](Operation *op) {
    return members.contains(op) || (isReshape(op) && llvm::any_of(op->getUsers(), leadsToMember));
  };
  llvm::SetVector<Operation *> all;
  for (Operation *op = first; op != last->getNextNode(); op = op->getNextNode()) {
    bool isBetween =
        isReshape(op) && all.contains(op->getOperand(0).getDefiningOp()) && leadsToMember(op);
    if (!isBetween && !members.contains(op))
      continue;
    all.insert(op);
    if (!isBetween)
      continue;
    // Ops outside the group read the result of a second reshape instead.
    rewriter.setInsertionPointAfter(op);
    Operation *outside = rewriter.clone(*op);
    rewriter.replaceUsesWithIf(op->getResults(), outside->getResults(),
                               [&](OpOperand &use) { return !leadsToMember(use.getOwner()); });
    if (outside->use_empty())
      rewriter.eraseOp(outside);
  }
  members = std::move(all);
}

LogicalResult Group::findRows() {
  // Start from the first op with rows of its own. Then visit its neighbours, and then their neighbours.
  for (Operation *op : members)
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      if (std::optional<Rows> own = findRowLoops(linalgOp)) {
        loops[op] = *own;
        break;
      }
  auto know = [&](Value value, std::optional<Rows> found) {
    return found && rows.try_emplace(value, *found).second;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : members) {
      if (isReshape(op)) {
        Value source = op->getOperand(0), result = op->getResult(0);
        if (auto it = rows.find(source); it != rows.end())
          changed |= know(result, rowsOfReshape(op, Rows(it->second)));
        if (auto it = rows.find(result); it != rows.end())
          changed |= know(source, rowsOfReshaped(op, Rows(it->second)));
        continue;
      }
      auto linalgOp = cast<linalg::LinalgOp>(op);
      AffineMap out = linalgOp.getMatchingIndexingMap(linalgOp.getDpsInitOperand(0));
      auto learn = [&](Value value, AffineMap map) {
        auto it = rows.find(value);
        if (it == rows.end() || loops.contains(op))
          return;
        if (std::optional<Rows> found = loopsOfRows(map, it->second)) {
          loops[op] = *found;
          changed = true;
        }
      };
      learn(op->getResult(0), out);
      // Two products of the same rows are neighbours too, even if the op that computes these rows is not in the group.
      auto sharesRows = [&](OpOperand &operand) {
        return isMember(operand.get()) || (isProduct(op) && operand.getOperandNumber() == 0);
      };
      for (OpOperand &operand : op->getOpOperands())
        if (sharesRows(operand))
          learn(operand.get(), linalgOp.getMatchingIndexingMap(&operand));
      if (!loops.contains(op))
        continue;
      changed |= know(op->getResult(0), rowsOfLoops(out, loops[op]));
      for (OpOperand &operand : op->getOpOperands())
        if (sharesRows(operand))
          changed |= know(operand.get(),
                          rowsOfLoops(linalgOp.getMatchingIndexingMap(&operand), loops[op]));
    }
  }
  // A task has only its own rows of the results of the group, so an op that reads other rows cannot be in the group.
  for (Operation *op : members) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    bool isRowwise = rows.contains(op->getResult(0)) && (!linalgOp || loops.contains(op));
    for (OpOperand &operand : op->getOpOperands())
      if (isRowwise && linalgOp && isMember(operand.get()))
        isRowwise = rowsOfLoops(linalgOp.getMatchingIndexingMap(&operand), loops[op]) ==
                    rows[operand.get()];
    if (!isRowwise)
      return op->emitError() << "expected an op of a group to read only the rows of its own task, "
                                "got an op that reads others";
  }
  return success();
}

LogicalResult Group::moveUsers() {
  SmallVector<Operation *> users;
  llvm::SmallPtrSet<Operation *, 8> dependent;
  for (Operation *op = first; op != last->getNextNode(); op = op->getNextNode()) {
    bool isInside = members.contains(op), depends = false;
    op->walk([&](Operation *inner) {
      depends |= llvm::any_of(inner->getOperands(), [&](Value operand) {
        return dependent.contains(operand.getDefiningOp()) || (!isInside && isMember(operand));
      });
    });
    if (!depends)
      continue;
    if (isInside)
      return op->emitError()
             << "expected an op of a group to depend on no op outside the group that reads a "
                "result of the group, got an op that does";
    dependent.insert(op);
    users.push_back(op);
  }
  for (Operation *user : llvm::reverse(users))
    user->moveAfter(last);
  return success();
}

llvm::SetVector<Value> Group::findResults() const {
  llvm::SetVector<Value> results;
  for (Operation *op : members)
    if (llvm::any_of(op->getUsers(), [&](Operation *user) { return !members.contains(user); }))
      results.insert(op->getResult(0));
  return results;
}

Operation *Group::findStart(Value result, const llvm::SetVector<Value> &results) const {
  auto op = result.getDefiningOp<linalg::LinalgOp>();
  Value init = op.getDpsInits()[0];
  if (!isMember(init))
    return op;
  return results.contains(init) || isReshape(init.getDefiningOp()) ? nullptr
                                                                   : findStart(init, results);
}

OpFoldResult Group::sizeOf(OpBuilder &builder, linalg::LinalgOp op, unsigned loop) const {
  AffineExpr dim = getAffineDimExpr(loop, builder.getContext());
  for (OpOperand &operand : llvm::reverse(op->getOpOperands()))
    if (std::optional<unsigned> position =
            op.getMatchingIndexingMap(&operand).getResultPosition(dim))
      return dimOf(builder, op.getLoc(), operand.get(), *position);
  llvm_unreachable("a loop that no operand has");
}

FailureOr<Value> Group::tile(IRRewriter &rewriter, Operation *op,
                             const llvm::DenseMap<Value, Value> &tiles, Value destination) const {
  Location loc = op->getLoc();
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return tensor::CollapseShapeOp::create(rewriter, loc, tiles.lookup(collapse.getSrc()),
                                           collapse.getReassociationIndices())
        .getResult();
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    SmallVector<OpFoldResult> shape = expand.getMixedOutputShape();
    for (auto [dim, size] : llvm::zip_equal(rows.lookup(expand.getResult()), sizes))
      shape[dim] = size;
    auto type =
        RankedTensorType::get(decomposeMixedValues(shape).first, expand.getType().getElementType());
    return tensor::ExpandShapeOp::create(rewriter, loc, type, tiles.lookup(expand.getSrc()),
                                         expand.getReassociationIndices(), shape)
        .getResult();
  }
  auto linalgOp = cast<linalg::LinalgOp>(op);
  SmallVector<OpFoldResult> loopOffsets(linalgOp.getNumLoops(), rewriter.getIndexAttr(0)),
      loopSizes;
  for (unsigned loop : llvm::seq(linalgOp.getNumLoops()))
    loopSizes.push_back(sizeOf(rewriter, linalgOp, loop));
  for (auto [loop, offset, size] : llvm::zip_equal(loops.lookup(op), offsets, sizes)) {
    loopOffsets[loop] = offset;
    loopSizes[loop] = size;
  }
  FailureOr<TilingResult> tiled =
      cast<TilingInterface>(op).getTiledImplementation(rewriter, loopOffsets, loopSizes);
  if (failed(tiled))
    return failure();
  tiled->tiledOps.front()->removeAttr(AttnDialect::kTaskAttr);
  for (Operation *generated : tiled->generatedSlices) {
    auto slice = cast<tensor::ExtractSliceOp>(generated);
    Value source = slice.getSource();
    bool isInit = slice->hasOneUse() && linalgOp.getDpsInits()[0] == source &&
                  cast<linalg::LinalgOp>(tiled->tiledOps.front()).isDpsInit(&*slice->use_begin());
    if (Value tile = tiles.lookup(source)) {
      rewriter.replaceOp(slice, tile);
    } else if (isInit && destination) {
      rewriter.modifyOpInPlace(slice, [&] { slice.getSourceMutable().assign(destination); });
    } else if (source.getDefiningOp<tensor::EmptyOp>()) {
      rewriter.setInsertionPoint(slice);
      rewriter.replaceOpWithNewOp<tensor::EmptyOp>(slice, slice.getMixedSizes(),
                                                   slice.getType().getElementType());
    }
  }
  return tiled->tiledValues.front();
}

LogicalResult Group::schedule(IRRewriter &rewriter) {
  addReshapes(rewriter);
  if (failed(findRows()) || failed(moveUsers()))
    return failure();

  rewriter.setInsertionPoint(last);
  Location loc = last->getLoc();
  auto firstOp = cast<linalg::LinalgOp>(first);
  int64_t rowsPerTask = first->getAttrOfType<TaskAttr>(AttnDialect::kTaskAttr).getRows();
  SmallVector<OpFoldResult> upper, steps;
  for (int64_t loop : loops[first]) {
    upper.push_back(sizeOf(rewriter, firstOp, loop));
    steps.push_back(rewriter.getIndexAttr(1));
  }
  // If a task has all rows, the step is the number of rows, and the size of the task needs no bound at the last row.
  std::optional<int64_t> all = getConstantIntValue(upper.back());
  steps.back() =
      rewriter.getIndexAttr(all ? std::clamp<int64_t>(*all, 1, rowsPerTask) : rowsPerTask);

  llvm::SetVector<Value> results = findResults();
  SmallVector<Value> outs;
  llvm::DenseMap<Operation *, unsigned> starts;
  for (unsigned i : llvm::seq<unsigned>(0, results.size())) {
    Value result = results[i];
    Operation *start = findStart(result, results);
    if (start)
      starts[start] = i;
    Value init = start ? cast<linalg::LinalgOp>(start).getDpsInits()[0] : Value();
    if (!init || init.getDefiningOp<tensor::EmptyOp>()) {
      auto type = cast<RankedTensorType>(result.getType());
      SmallVector<OpFoldResult> shape =
          llvm::map_to_vector(llvm::seq(type.getRank()),
                              [&](int64_t dim) { return dimOf(rewriter, loc, result, dim); });
      init = tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
    }
    outs.push_back(init);
  }

  SmallVector<OpFoldResult> lower(upper.size(), rewriter.getIndexAttr(0));
  auto forall =
      scf::ForallOp::create(rewriter, loc, lower, upper, steps, outs, /*mapping=*/std::nullopt);
  rewriter.setInsertionPoint(forall.getTerminator());
  AffineExpr size, offset;
  bindDims(rewriter.getContext(), size, offset);
  for (auto [variable, whole, step] : llvm::zip_equal(forall.getInductionVars(), upper, steps)) {
    int64_t count = *getConstantIntValue(step);
    std::optional<int64_t> known = getConstantIntValue(whole);
    offsets.push_back(variable);
    sizes.push_back(
        count == 1 || (known && *known % count == 0)
            ? step
            : affine::makeComposedFoldedAffineMin(
                  rewriter, loc,
                  AffineMap::get(2, 0, {rewriter.getAffineConstantExpr(count), size - offset},
                                 rewriter.getContext()),
                  {whole, OpFoldResult(variable)}));
  }
  llvm::DenseMap<Value, Value> tiles;
  for (Operation *op : members) {
    auto start = starts.find(op);
    Value destination = start == starts.end() ? Value() : forall.getRegionIterArgs()[start->second];
    rewriter.setInsertionPoint(forall.getTerminator());
    FailureOr<Value> tiled = tile(rewriter, op, tiles, destination);
    if (failed(tiled))
      return op->emitError() << "expected an op that tiles into tasks, got one that does not";
    tiles[op->getResult(0)] = *tiled;
  }
  for (auto [result, out] : llvm::zip_equal(results, forall.getRegionIterArgs())) {
    rewriter.setInsertionPoint(forall.getTerminator());
    auto [tileOffsets, tileSizes] = tileOf(rewriter, result);
    rewriter.setInsertionPointToEnd(forall.getTerminator().getBody());
    SmallVector<OpFoldResult> strides(tileOffsets.size(), rewriter.getIndexAttr(1));
    tensor::ParallelInsertSliceOp::create(rewriter, loc, tiles[result], out, tileOffsets, tileSizes,
                                          strides);
  }
  for (auto [result, loopsResult] : llvm::zip_equal(results, forall.getResults()))
    rewriter.replaceUsesWithIf(result, loopsResult,
                               [&](OpOperand &use) { return !members.contains(use.getOwner()); });
  for (Operation *op : llvm::reverse(members))
    rewriter.eraseOp(op);
  return success();
}

std::pair<SmallVector<OpFoldResult>, SmallVector<OpFoldResult>> Group::tileOf(OpBuilder &builder,
                                                                              Value value) const {
  SmallVector<OpFoldResult> tileOffsets, tileSizes;
  for (int64_t dim : llvm::seq(cast<ShapedType>(value.getType()).getRank())) {
    tileOffsets.push_back(builder.getIndexAttr(0));
    tileSizes.push_back(dimOf(builder, value.getLoc(), value, dim));
  }
  for (auto [dim, offset, size] : llvm::zip_equal(rows.lookup(value), offsets, sizes)) {
    tileOffsets[dim] = offset;
    tileSizes[dim] = size;
  }
  return {tileOffsets, tileSizes};
}

namespace {
struct RowGroups : attn::impl::RowGroupsBase<RowGroups> {
  void runOnOperation() override {
    if (getOperation().isDeclaration())
      return;
    llvm::MapVector<int64_t, SmallVector<linalg::LinalgOp>> groups;
    for (Operation &op : getOperation().getBody().front()) {
      auto task = op.getAttrOfType<TaskAttr>(AttnDialect::kTaskAttr);
      if (!task || !task.getGroup())
        continue;
      SmallVector<linalg::LinalgOp> &ops = groups[*task.getGroup()];
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      if (!linalgOp || !canShareRows(linalgOp)) {
        op.emitError() << "expected an op of a group to have one result and to read tensors at its "
                          "loop variables only";
        return signalPassFailure();
      }
      if (!ops.empty() && ops.front()->getAttr(AttnDialect::kTaskAttr) != task) {
        op.emitError() << "expected the same number of rows on all ops of a group, got " << task;
        return signalPassFailure();
      }
      ops.push_back(linalgOp);
    }
    IRRewriter rewriter(&getContext());
    for (auto &[number, ops] : groups) {
      // Sort the ops again, because scheduling another group may have moved them.
      llvm::sort(ops, [](linalg::LinalgOp a, linalg::LinalgOp b) { return a->isBeforeInBlock(b); });
      if (failed(Group(ops).schedule(rewriter)))
        return signalPassFailure();
    }
  }
};
} // namespace
