//===- TransposeCaptures.cpp - captured products in the order of scores ----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %p = linalg.contract ... ins(%pair, %w) outs(%0)                                    [B,Q,K,H]
//   %o = attn.attention ins(%q, %k, %v) captures(%p) {..., (b,h,q,k,d,e)->(b,q,k,h), ...} score { ... }
// becomes
//   %t = linalg.transpose ins(%p) outs(%1) permutation = [0, 3, 1, 2]                   [B,H,Q,K]
//   %o = attn.attention ins(%q, %k, %v) captures(%t) {..., (b,h,q,k,d,e)->(b,h,q,k), ...} score { ... }
//
// The score of a pair reads such a bias beside the scores of the next keys. attn-hoist-views then moves the
// transposition into the product, which computes vectors of keys instead of vectors of heads. Where it cannot,
// attn-fold-transposes restores the map. Captures that no product computes keep their maps.
// Test: test/passes/simplify/transpose-captures.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "support/Loops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace attn {
#define GEN_PASS_DEF_TRANSPOSECAPTURES
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Whether `value` is the result of a product, directly or through views and elementwise ops. Each of these results
/// must have no other use.
static bool isFromProduct(Value value) {
  while (value.hasOneUse()) {
    Operation *op = value.getDefiningOp();
    if (isProduct(op))
      return true;
    auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
    if (!isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp, linalg::TransposeOp>(op) &&
        !(linalgOp && linalgOp.getNumReductionLoops() == 0 && linalgOp.getNumDpsInputs() > 0))
      return false;
    // An elementwise op is from a product if one of its inputs is.
    if (linalgOp)
      return llvm::any_of(linalgOp.getDpsInputs(), isFromProduct);
    value = op->getOperand(0);
  }
  return false;
}

/// The permutation that brings the results of `map` into the order of its loops; the constant 0 comes first. None if
/// the map has other results, or has this order already.
static std::optional<SmallVector<int64_t>> findOrder(AffineMap map) {
  SmallVector<int64_t> loops;
  for (AffineExpr expr : map.getResults()) {
    std::optional<unsigned> loop = findLoop(expr);
    if (!loop && !isa<AffineConstantExpr>(expr))
      return std::nullopt;
    loops.push_back(loop ? int64_t(*loop) : -1);
  }
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, loops.size()));
  llvm::sort(order,
             [&](int64_t a, int64_t b) { return std::pair(loops[a], a) < std::pair(loops[b], b); });
  return llvm::is_sorted(order) ? std::nullopt : std::optional(order);
}

namespace {
struct TransposeCaptures : attn::impl::TransposeCapturesBase<TransposeCaptures> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) {
      SmallVector<Attribute> maps(op.getIndexingMaps().getValue());
      for (OpOperand &capture : op.getCapturesMutable()) {
        unsigned i = capture.getOperandNumber();
        AffineMap map = op.getMap(i);
        std::optional<SmallVector<int64_t>> order = findOrder(map);
        if (!order || !isFromProduct(capture.get()))
          continue;
        OpBuilder builder(op);
        Location loc = capture.get().getLoc();
        auto type = cast<RankedTensorType>(capture.get().getType());
        Value empty = tensor::EmptyOp::create(
            builder, loc,
            applyPermutation(tensor::getMixedSizes(builder, loc, capture.get()), *order),
            type.getElementType());
        capture.set(
            linalg::TransposeOp::create(builder, loc, capture.get(), empty, *order)->getResult(0));
        maps[i] = AffineMapAttr::get(AffineMap::get(map.getNumDims(), map.getNumSymbols(),
                                                    applyPermutation(map.getResults(), *order),
                                                    op.getContext()));
      }
      op.setIndexingMapsAttr(ArrayAttr::get(op.getContext(), maps));
    });
  }
};
} // namespace
