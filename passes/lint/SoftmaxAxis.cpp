//===- SoftmaxAxis.cpp - a softmax along the wrong dimension ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %s = linalg.contract (b,q,d), (b,k,d) -> (b,q,k) ins(%q, %k)
//   %p = linalg.softmax dimension(1) ins(%s)                           // warning: the dimension of queries
//   %o = linalg.contract (b,q,k), (b,k,e) -> (b,q,e) ins(%p, %v)       // sums over dimension 2
//
// In this example, the probabilities in the sum for one output do not add up to 1. The rule does not warn if one of
// several products sums over the dimension of the softmax: a graph with gradients also has products with the transposed
// probabilities, which sum over another dimension. The rule also does not warn if two softmaxes are multiplied by each
// other, or if other ops, such as another normalisation, change the probabilities before the product.
// Test: test/passes/lint/softmax-axis.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/lint/Scores.h"

namespace attn {
#define GEN_PASS_DEF_LINTSOFTMAXAXIS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The access, over the loops of `product`, to the softmax that `operand` is a view of; none if there is no such
/// softmax.
static std::optional<Access> softmaxBehind(linalg::LinalgOp product, OpOperand &operand) {
  std::optional<Access> access = Access{operand.get(), product.getMatchingIndexingMap(&operand)};
  while (access && !access->tensor.getDefiningOp<linalg::SoftmaxOp>())
    access = readThroughView(*access);
  return access;
}

namespace {
struct LintSoftmaxAxis : attn::impl::LintSoftmaxAxisBase<LintSoftmaxAxis> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    // The dimensions that products sum over, for each softmax that a product reads.
    llvm::MapVector<Operation *, SmallVector<int64_t>> sums;
    getOperation().walk([&](linalg::LinalgOp product) {
      if (!isProduct(product))
        return;
      std::optional<Access> left = softmaxBehind(product, product->getOpOperand(0)),
                            right = softmaxBehind(product, product->getOpOperand(1));
      if (left.has_value() == right.has_value())
        return;
      Access probabilities = left ? *left : *right;
      SmallVector<unsigned> reduced;
      product.getReductionDims(reduced);
      for (auto [dim, expr] : llvm::enumerate(probabilities.map.getResults()))
        if (auto loop = dyn_cast<AffineDimExpr>(expr);
            loop && llvm::is_contained(reduced, loop.getPosition()))
          sums[probabilities.tensor.getDefiningOp()].push_back(dim);
    });
    for (auto &[op, dims] : sums) {
      auto softmax = cast<linalg::SoftmaxOp>(op);
      int64_t dim = softmax.getDimension(), rank = softmax.getInputOperandType().getRank();
      if (llvm::is_contained(dims, dim) || scoresOf(softmax).empty())
        continue;
      softmax.emitWarning()
          << "softmax is over dimension " << dim - rank
          << " and the sum of the values over dimension " << dims.front() - rank
          << ", so the probabilities in a sum do not add up to 1; use softmax(scores, dim="
          << dims.front() - rank << ")";
    }
  }
};
} // namespace
