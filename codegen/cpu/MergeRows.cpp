//===- MergeRows.cpp - one loop over the rows of a product -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   linalg.broadcast ins(%bias) outs(%y : memref<1x7x7x64xf32>)
//   linalg.contract ins(%x, %w : memref<1x7x7x768xf32>, memref<768x64xf32>) outs(%y : memref<1x7x7x64xf32>)
// becomes
//   %c = memref.collapse_shape %y [[0], [1, 2], [3]]
//   linalg.generic ins(%bias) outs(%c : memref<1x49x64xf32>)
//   %r = memref.collapse_shape %x [[0], [1, 2], [3]]
//   linalg.generic ins(%r, %w : memref<1x49x768xf32>, memref<768x64xf32>) outs(%c : memref<1x49x64xf32>)
//
// A register block has rows of one loop. An image with few tokens in a row, or a batch of short sequences, has more
// rows for a block if its loops over rows become one loop. Loops are merged if their rows lie at equal distances in all
// buffers that have them. The op that starts the sums changes with the product, so that code generation still finds it.
// Test: test/codegen/cpu/merge-rows.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Passes.h"
#include "passes/Product.h"
#include "passes/Rows.h"
#include "support/Loops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"

namespace attn {
#define GEN_PASS_DEF_MERGEROWS
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Lists of loops that become one loop each.
using Groups = SmallVector<ReassociationIndices>;

/// The loops of `product`, in groups: loops over rows that follow each other are together, and any other loop is alone.
/// Empty if no group has two loops of more than one iteration.
static Groups findGroups(linalg::LinalgOp product) {
  std::optional<Rows> rows = findRowLoops(product);
  if (!rows)
    return {};
  SmallVector<int64_t> ranges = product.getStaticLoopRanges();
  Groups groups;
  bool merges = false, wasRow = false;
  for (int64_t loop = 0; loop < product.getNumLoops(); ++loop) {
    bool isRow = llvm::is_contained(*rows, loop);
    if (isRow && wasRow) {
      auto hasRows = [&](int64_t other) { return ranges[other] != 1; };
      merges |= hasRows(loop) && llvm::any_of(groups.back(), hasRows);
      groups.back().push_back(loop);
    } else {
      groups.push_back({loop});
    }
    wasRow = isRow;
  }
  return merges ? groups : Groups();
}

/// Whether the loops of each group run over dimensions that follow each other, and whose elements lie at equal
/// distances, in each operand of `op` that has one of them.
static bool canMerge(linalg::LinalgOp op, const Groups &groups) {
  if (op.hasIndexSemantics() ||
      !linalg::areDimSequencesPreserved(op.getIndexingMapsArray(), groups))
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    std::optional<SmallVector<unsigned>> loops = findLoops(op.getMatchingIndexingMap(&operand));
    if (!type || !loops)
      return !isa<MemRefType>(operand.get().getType());
    SmallVector<ReassociationIndices> dims;
    for (const ReassociationIndices &group : groups) {
      ReassociationIndices ofGroup;
      for (auto [dim, loop] : llvm::enumerate(*loops))
        if (llvm::is_contained(group, int64_t(loop)))
          ofGroup.push_back(dim);
      if (!ofGroup.empty())
        dims.push_back(ofGroup);
    }
    llvm::sort(dims, [](const auto &a, const auto &b) { return a[0] < b[0]; });
    return memref::CollapseShapeOp::isGuaranteedCollapsible(type, dims);
  });
}

static void merge(IRRewriter &rewriter, linalg::LinalgOp op, const Groups &groups) {
  DictionaryAttr attributes = op->getDiscardableAttrDictionary();
  rewriter.setInsertionPoint(op);
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic)
    generic = *linalg::generalizeNamedOp(rewriter, op);
  FailureOr<linalg::CollapseResult> merged =
      linalg::collapseOpIterationDims(generic, groups, rewriter);
  if (failed(merged)) { // canMerge() is as strict; the general form computes the same
    generic->setDiscardableAttrs(attributes);
    return;
  }
  merged->collapsedOp->setDiscardableAttrs(attributes);
  rewriter.eraseOp(generic);
}

/// The elementwise op before `product` that writes its output, or null.
static linalg::LinalgOp findStart(linalg::LinalgOp product) {
  Value out = product.getDpsInits()[0];
  for (Operation *op = product->getPrevNode(); op; op = op->getPrevNode())
    if (auto writer = dyn_cast<linalg::LinalgOp>(op);
        writer && llvm::is_contained(writer.getDpsInits(), out))
      return writer.getNumDpsInits() == 1 && writer.getNumReductionLoops() == 0
                 ? writer
                 : linalg::LinalgOp();
  return {};
}

/// `start` writes the output of `product`. Returns the loops of `start`, grouped like the loops of `product` that run
/// over the same dimensions; empty if the two ops have these loops in different orders.
static Groups groupsOfStart(linalg::LinalgOp start, linalg::LinalgOp product,
                            const Groups &groups) {
  std::optional<SmallVector<unsigned>> own = findResultLoops(start), out = findResultLoops(product);
  if (!own || !out || own->size() != out->size() || !llvm::is_sorted(*own))
    return {};
  Groups found;
  for (const ReassociationIndices &group : groups) {
    ReassociationIndices loops;
    for (auto [mine, its] : llvm::zip_equal(*own, *out))
      if (llvm::is_contained(group, int64_t(its)))
        loops.push_back(mine);
    if (!loops.empty())
      found.push_back(loops);
  }
  return found;
}

namespace {
struct MergeRows : attn::impl::MergeRowsBase<MergeRows> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> products;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics() && isProduct(op))
        products.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp product : products) {
      Groups groups = findGroups(product);
      if (groups.empty() || !canMerge(product, groups))
        continue;
      if (linalg::LinalgOp start = findStart(product))
        if (Groups ofStart = groupsOfStart(start, product, groups);
            !ofStart.empty() && canMerge(start, ofStart))
          merge(rewriter, start, ofStart);
      merge(rewriter, product, groups);
    }
  }
};
} // namespace
