//===- ExposeTransposes.cpp - ask producers for the order attention wants --===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %o = attn.attention ins(%q, ...) {(b,h,q,k,d,e)->(b,q,h,d), ...}
// becomes
//   %t = linalg.transpose ins(%q) permutation = [0, 2, 1, 3]
//   %o = attn.attention ins(%t, ...) {(b,h,q,k,d,e)->(b,h,q,d), ...}
//
// Query, key and value are best read head-major: (batch..., row, feature), the order of the iteration space.
// A map in another order is a wish that no producer sees; a transposition is one that attn-hoist-views can
// grant, and attn-fold-transposes takes back what it could not. Left alone: captured operands, outputs, and
// maps that read a dimension at 0.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {
#define GEN_PASS_DEF_EXPOSETRANSPOSES
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

struct ExposeTransposes : attn::impl::ExposeTransposesBase<ExposeTransposes> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) {
      OpBuilder builder(op);
      SmallVector<Attribute> maps(op.getIndexingMaps().getValue());
      for (unsigned i = 0; i < 3; ++i) {
        AffineMap map = op.getMap(i);
        if (!map.isProjectedPermutation())
          continue;
        auto loopOf = [&](int64_t dim) { return map.getDimPosition(dim); };
        auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, map.getNumResults()));
        llvm::sort(permutation, [&](int64_t a, int64_t b) { return loopOf(a) < loopOf(b); });
        if (llvm::is_sorted(permutation))
          continue;
        Value operand = op->getOperand(i);
        SmallVector<OpFoldResult> sizes;
        for (int64_t dim : permutation)
          sizes.push_back(dimOf(builder, op.getLoc(), operand, dim));
        Value empty =
            tensor::EmptyOp::create(builder, op.getLoc(), sizes, getElementTypeOrSelf(operand.getType()));
        auto transpose = linalg::TransposeOp::create(builder, op.getLoc(), operand, empty, permutation);
        op->setOperand(i, transpose->getResult(0));
        maps[i] = AffineMapAttr::get(AffineMap::getPermutationMap(permutation, op.getContext()).compose(map));
      }
      op.setIndexingMapsAttr(builder.getArrayAttr(maps));
    });
  }
};

} // namespace
