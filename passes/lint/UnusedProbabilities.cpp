//===- UnusedProbabilities.cpp - probabilities without a use ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %p = linalg.softmax ins(%s)                     // warning: multiplies no values
//   %o = linalg.contract ins(%s, %v)
//   return %o, %p
// and
//   %p = linalg.softmax ins(%s)
//   %o = linalg.contract ins(%p, %v)
//   %mean = linalg.generic ins(%p) { addf }         // warning: dropped
//   return %o
//
// The first case is a mistake if there are values to multiply: a product reads the scores instead of the probabilities,
// or the function returns the probabilities and drops a product, which is the product of probabilities and values or
// the projection of the values. A softmax without such a product belongs to a classifier or a pointer network. The
// second case occurs if a program does not use the mean of the probabilities, the second result of
// torch.nn.MultiheadAttention. Probabilities that the function returns count as used.
// Test: test/passes/lint/unused-probabilities.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/lint/Scores.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {
#define GEN_PASS_DEF_LINTUNUSEDPROBABILITIES
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
struct LintUnusedProbabilities : attn::impl::LintUnusedProbabilitiesBase<LintUnusedProbabilities> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    live = liveOps(getOperation());
    dropsProduct = false;
    getOperation().walk(
        [&](linalg::LinalgOp op) { dropsProduct |= isProduct(op) && !live.contains(op); });
    getOperation().walk([&](linalg::SoftmaxOp softmax) { check(softmax); });
  }

  void check(linalg::SoftmaxOp softmax) {
    SetVector<Value> scores = scoresOf(softmax);
    if (scores.empty())
      return;
    SetVector<Operation *> readers = readersOf(softmax->getResult(0));
    auto isLiveProduct = [&](Operation *op) { return isProduct(op) && live.contains(op); };
    if (llvm::any_of(readers, isLiveProduct)) {
      auto dropped = llvm::find_if(readers, [&](Operation *op) {
        auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
        return linalgOp && !isCopy(linalgOp) && !live.contains(op); // views cost nothing
      });
      if (dropped != readers.end())
        (*dropped)->emitWarning()
            << "a result computed from the probabilities is dropped, so it only costs time; do not "
               "compute it, or call torch.nn.MultiheadAttention with need_weights=False";
      return;
    }
    bool multipliesScores = llvm::any_of(
        scores, [&](Value score) { return llvm::any_of(score.getUsers(), isLiveProduct); });
    if (multipliesScores || (live.contains(softmax) && dropsProduct))
      softmax.emitWarning()
          << "the probabilities multiply no values, so the output is not an attention; "
             "multiply the values by the result of softmax";
  }

  /// The ops that read `probabilities` directly or through elementwise ops and views, in order.
  static SetVector<Operation *> readersOf(Value probabilities) {
    SetVector<Operation *> readers;
    SmallVector<Value> worklist = {probabilities};
    while (!worklist.empty())
      for (Operation *user : worklist.pop_back_val().getUsers()) {
        if (isa<tensor::DimOp, func::ReturnOp>(user) || !readers.insert(user))
          continue;
        if (isElementwiseOrView(user))
          llvm::append_range(worklist, user->getResults());
      }
    return readers;
  }

  DenseSet<Operation *> live;
  bool dropsProduct = false;
};
} // namespace
