//===- Rows.cpp - which dimensions are rows ---------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/Rows.h"
#include "passes/Product.h"
#include "support/Loops.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn;

bool attn::canShareRows(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1)
    return false;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::none_of(captured, [](Value value) { return isa<ShapedType>(value.getType()); });
}

std::optional<Rows> attn::findRowLoops(linalg::LinalgOp op) {
  bool isRowsTimesColumns = isProduct(op);
  if (!isRowsTimesColumns && op.getNumReductionLoops() == 0)
    return std::nullopt;
  Rows loops;
  for (AffineExpr expr : op.getMatchingIndexingMap(op.getDpsInitOperand(0)).getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      return std::nullopt;
    auto reads = [&](unsigned input) {
      return op.getMatchingIndexingMap(op.getDpsInputOperand(input))
          .isFunctionOfDim(dim.getPosition());
    };
    if (!isRowsTimesColumns || (reads(0) && !reads(1)))
      loops.push_back(dim.getPosition());
  }
  return loops.empty() ? std::nullopt : std::optional(loops);
}

Rows attn::findEvenRowLoops(linalg::LinalgOp product, AffineMap out) {
  AffineMap left = product.getMatchingIndexingMap(product.getDpsInputOperand(0)),
            right = product.getMatchingIndexingMap(product.getDpsInputOperand(1));
  SmallVector<int64_t> ranges = product.getStaticLoopRanges();
  Rows loops;
  std::optional<unsigned> next; // the dimension of the left operand where the rows so far begin
  for (AffineExpr expr : llvm::reverse(out.getResults())) {
    std::optional<unsigned> loop = findLoop(expr), inLeft = left.getResultPosition(expr);
    bool isRow = loop && inLeft && !right.isFunctionOfDim(*loop) && ranges[*loop] != 1;
    if (next && (!isRow || *inLeft + 1 != *next))
      break;
    if (!isRow)
      continue;
    loops.insert(loops.begin(), *loop);
    next = inLeft;
  }
  return loops;
}

Rows attn::findEvenRowLoops(linalg::LinalgOp product) {
  return findEvenRowLoops(product, product.getMatchingIndexingMap(product.getDpsInitOperand(0)));
}

std::optional<Rows> attn::rowsOfLoops(AffineMap map, ArrayRef<int64_t> loops) {
  Rows rows;
  for (int64_t loop : loops) {
    std::optional<unsigned> dim = map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
    if (!dim)
      return std::nullopt;
    rows.push_back(*dim);
  }
  return rows;
}

std::optional<Rows> attn::loopsOfRows(AffineMap map, ArrayRef<int64_t> rows) {
  Rows loops;
  for (int64_t dim : rows) {
    auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
    if (!loop)
      return std::nullopt;
    loops.push_back(loop.getPosition());
  }
  return loops;
}

bool attn::isReshape(Operation *op) {
  return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

static SmallVector<ReassociationIndices> getGroups(Operation *reshape) {
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(reshape))
    return expand.getReassociationIndices();
  return cast<tensor::CollapseShapeOp>(reshape).getReassociationIndices();
}

/// For each of `rows`, the number of this dimension on the other side of the reshape. The other side has fewer
/// dimensions if `toFewer` is true, and more if not. None if the reshape splits or merges a dimension of `rows`.
static std::optional<Rows> renumber(Operation *reshape, ArrayRef<int64_t> rows, bool toFewer) {
  SmallVector<ReassociationIndices> groups = getGroups(reshape);
  Rows renumbered;
  for (int64_t row : rows) {
    auto *group = toFewer ? llvm::find_if(groups,
                                          [&](const ReassociationIndices &dims) {
                                            return llvm::is_contained(dims, row);
                                          })
                          : &groups[row];
    if (group == groups.end() || group->size() != 1)
      return std::nullopt;
    renumbered.push_back(toFewer ? group - groups.begin() : group->front());
  }
  return renumbered;
}

std::optional<Rows> attn::rowsOfReshape(Operation *reshape, ArrayRef<int64_t> rows) {
  return renumber(reshape, rows, /*toFewer=*/isa<tensor::CollapseShapeOp>(reshape));
}

std::optional<Rows> attn::rowsOfReshaped(Operation *reshape, ArrayRef<int64_t> rows) {
  return renumber(reshape, rows, /*toFewer=*/isa<tensor::ExpandShapeOp>(reshape));
}
