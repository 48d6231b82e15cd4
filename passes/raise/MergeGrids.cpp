//===- MergeGrids.cpp - scores that are reshaped while a bias is added -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %g = tensor.expand_shape %s [[0], [1, 2], [3, 4]] : tensor<2x16x16xf32> into tensor<2x4x4x4x4xf32>
//   %t = linalg.generic ins(%g, %bias) (b,y,x,j,i), (b,y,x,j) -> (b,y,x,j,i) { addf %g, %bias }
//   %r = tensor.collapse_shape %t [[0], [1, 2], [3, 4]] : tensor<2x4x4x4x4xf32> into tensor<2x16x16xf32>
// becomes
//   %wide = linalg.generic ins(%bias) (b,y,x,j) -> (b,y,x,j,i)                          a copy
//   %merged = tensor.collapse_shape %wide [[0], [1, 2], [3, 4]] : tensor<2x4x4x4x4xf32> into tensor<2x16x16xf32>
//   %r = linalg.generic ins(%s, %merged) (b,q,k), (b,q,k) -> (b,q,k) { addf %s, %merged }
//
// so that attn-raise-attention finds the product in the scores. Vision models reshape the scores to (rows, columns, rows,
// columns) of an image, and add a bias along each axis. An operand that has all or none of the dimensions of each group
// needs no copy. A chain of such ops is rewritten as a whole.
// Test: test/passes/raise/merge-grids.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"
#include "passes/Passes.h"
#include "support/Loops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace attn {
#define GEN_PASS_DEF_MERGEGRIDS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// Merges the dimensions of elementwise ops as one collapse_shape does.
class Merger {
public:
  Merger(RewriterBase &rewriter, tensor::CollapseShapeOp collapse)
      : rewriter(rewriter), collapse(collapse), groups(collapse.getReassociationIndices()) {
    groupOf.resize(collapse.getSrcType().getRank());
    for (auto [number, group] : llvm::enumerate(groups))
      for (int64_t dim : group)
        groupOf[dim] = number;
  }

  /// Whether `tensor` is split as the collapse_shape merges, perhaps with elementwise ops in between that nothing else
  /// reads.
  bool reachesSplit(Value tensor) {
    if (isSplit(tensor))
      return true;
    auto op = tensor.getDefiningOp<linalg::GenericOp>();
    return op && isElementwise(op) && tensor.hasOneUse() &&
           llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
             return op.getMatchingIndexingMap(input).isIdentity() && reachesSplit(input->get());
           });
  }

  /// `tensor` with merged dimensions.
  Value merge(Value tensor) {
    if (isSplit(tensor))
      return tensor.getDefiningOp<tensor::ExpandShapeOp>().getSrc();
    if (!reachesSplit(tensor))
      return tensor::CollapseShapeOp::create(rewriter, collapse.getLoc(), tensor, groups);
    auto op = tensor.getDefiningOp<linalg::GenericOp>();
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      auto [merged, read] = map.isIdentity()
                                ? std::pair(merge(input->get()), identity(groups.size()))
                                : mergeOperand(op, input->get(), map);
      inputs.push_back(merged);
      maps.push_back(read);
    }
    unsigned whole = llvm::find(maps, identity(groups.size())) - maps.begin();
    maps.push_back(identity(groups.size()));
    Value out = tensor::EmptyOp::create(rewriter, op.getLoc(),
                                        tensor::getMixedSizes(rewriter, op.getLoc(), inputs[whole]),
                                        getElementTypeOrSelf(tensor));
    SmallVector<utils::IteratorType> loops(groups.size(), utils::IteratorType::parallel);
    auto merged =
        linalg::GenericOp::create(rewriter, op.getLoc(), out.getType(), inputs, out, maps, loops);
    IRMapping mapping;
    op.getRegion().cloneInto(&merged.getRegion(), mapping);
    return merged.getResult(0);
  }

private:
  bool isSplit(Value tensor) {
    auto expand = tensor.getDefiningOp<tensor::ExpandShapeOp>();
    return expand && expand.getReassociationIndices() == groups &&
           expand.getSrcType() == collapse.getResultType();
  }

  /// Whether `op` computes its result from one element of each operand, without using coordinates.
  static bool isElementwise(linalg::GenericOp op) {
    return op->getNumResults() == 1 && isScalarFunction(op) &&
           op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
           op.getRegionOutputArgs()[0].use_empty() &&
           op.getBlock()->getOps<linalg::IndexOp>().empty() &&
           llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
             return map.isProjectedPermutation(/*allowZeroInResults=*/true);
           });
  }

  AffineMap identity(unsigned rank) { return rewriter.getMultiDimIdentityMap(rank); }

  /// Merges the dimensions of an operand that `op` reads at `map`. Returns the map at which the merged op reads it.
  std::pair<Value, AffineMap> mergeOperand(linalg::GenericOp op, Value operand, AffineMap map) {
    llvm::SmallBitVector named(groups.size());
    for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
      if (map.isFunctionOfDim(dim))
        named.set(groupOf[dim]);
    // The operand gets all dimensions of the groups that it names.
    SmallVector<AffineExpr> wide, read;
    SmallVector<ReassociationIndices> merged;
    for (unsigned group : named.set_bits()) {
      merged.emplace_back();
      for (int64_t dim : groups[group]) {
        merged.back().push_back(wide.size());
        wide.push_back(rewriter.getAffineDimExpr(dim));
      }
      read.push_back(rewriter.getAffineDimExpr(group));
    }
    AffineMap all = AffineMap::get(map.getNumDims(), 0, wide, rewriter.getContext());
    if (map != all)
      operand = widen(op, operand, map, all);
    if (wide.size() != read.size())
      operand = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), operand, merged);
    return {operand, AffineMap::get(groups.size(), 0, read, rewriter.getContext())};
  }

  /// A copy of `operand`, which `op` reads at `from`, with the dimensions `to`.
  Value widen(linalg::GenericOp op, Value operand, AffineMap from, AffineMap to) {
    SmallVector<OpFoldResult> all =
                                  tensor::getMixedSizes(rewriter, op.getLoc(), op.getDpsInits()[0]),
                              sizes;
    SmallVector<AffineExpr> loops(to.getNumDims(), rewriter.getAffineConstantExpr(0));
    for (auto [loop, expr] : llvm::enumerate(to.getResults())) {
      unsigned dim = *findLoop(expr);
      sizes.push_back(all[dim]);
      loops[dim] = rewriter.getAffineDimExpr(loop);
    }
    Value out =
        tensor::EmptyOp::create(rewriter, op.getLoc(), sizes, getElementTypeOrSelf(operand));
    SmallVector<AffineMap> maps = {from.replaceDimsAndSymbols(loops, {}, sizes.size(), 0),
                                   identity(sizes.size())};
    SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
    return linalg::GenericOp::create(rewriter, op.getLoc(), out.getType(), operand, out, maps,
                                     iterators,
                                     [](OpBuilder &b, Location loc, ValueRange elements) {
                                       linalg::YieldOp::create(b, loc, elements[0]);
                                     })
        .getResult(0);
  }

  RewriterBase &rewriter;
  tensor::CollapseShapeOp collapse;
  SmallVector<ReassociationIndices> groups;
  SmallVector<unsigned> groupOf; // for each dimension before merging
};

struct MergeGrids : attn::impl::MergeGridsBase<MergeGrids> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](tensor::CollapseShapeOp op) {
      Merger merger(rewriter, op);
      if (!merger.reachesSplit(op.getSrc()))
        return;
      rewriter.setInsertionPoint(op);
      rewriter.replaceOp(op, merger.merge(op.getSrc()));
    });
  }
};
} // namespace
