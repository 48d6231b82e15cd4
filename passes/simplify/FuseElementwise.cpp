//===- FuseElementwise.cpp - elementwise ops in a row become one -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %h = linalg.generic ins(%x) { yield 0.5 * x }
//   %t = linalg.generic ins(%x) { yield tanh x }
//   %y = linalg.generic ins(%h, %t) { yield h * (1 + t) }
// becomes
//   %y = linalg.generic ins(%x) { yield 0.5 * x * (1 + tanh x) }
//
// Graphs often compute an activation by several ops. As one op, they pass over memory once, and if no other op reads
// the product before them, they are computed in the tasks of this product. An op is fused if a single op reads its
// result, and reads each element once: a reader that broadcasts the result would compute elements again.
// Test: test/passes/simplify/fuse-elementwise.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;

/// True if each element of `operand`'s producer is read once, by an elementwise op.
static bool isReadOnce(OpOperand *operand) {
  auto consumer = cast<linalg::LinalgOp>(operand->getOwner());
  return operand->get().hasOneUse() && consumer.getNumReductionLoops() == 0 &&
         consumer.getMatchingIndexingMap(operand).isPermutation();
}

namespace {
struct FuseElementwise : attn::impl::FuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, isReadOnce);
    // Each fusion removes an op, so the rewriting terminates.
    auto config = GreedyRewriteConfig().setMaxIterations(GreedyRewriteConfig::kNoLimit);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace
