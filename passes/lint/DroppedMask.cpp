//===- DroppedMask.cpp - masked scores that nothing reads ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %s = linalg.contract ins(%q, %k)
//   %m = linalg.generic ins(%s, %hidden) { select %hidden, -inf, %s }    // warning: nothing reads %m
//   %p = linalg.softmax ins(%s)
//
// PyTorch's masked_fill returns the masked scores; if a program does not assign the result, its mask has no effect. The
// rule warns about an op on the scores of a softmax if no result of the function depends on the op, and if the op
// chooses between a score and a constant, or adds another element to a score. The rule warns neither about other
// dropped ops nor about a mask that is only an unused argument. Test: test/passes/lint/dropped-mask.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/lint/Scores.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace attn {
#define GEN_PASS_DEF_LINTDROPPEDMASK
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Whether each element of `op` is a choice between an element of `scores` and a constant, or the sum of such an
/// element and another operand.
static bool masks(linalg::LinalgOp op, const SetVector<Value> &scores) {
  if (!isScalarFunction(op))
    return false;
  auto isScore = [&](Value scalar) {
    auto argument = dyn_cast<BlockArgument>(scalar);
    return argument && argument.getOwner() == op.getBlock() &&
           scores.contains(op.getMatchingOpOperand(argument)->get());
  };
  Operation *last = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  auto isPair = [&](unsigned i, unsigned j, auto &&isOther) {
    return (isScore(last->getOperand(i)) && isOther(last->getOperand(j))) ||
           (isScore(last->getOperand(j)) && isOther(last->getOperand(i)));
  };
  if (isa_and_nonnull<arith::SelectOp>(last))
    return isPair(1, 2, [](Value value) { return matchPattern(value, m_Constant()); });
  return isa_and_nonnull<arith::AddFOp>(last) &&
         isPair(0, 1, [&](Value value) { return isa<BlockArgument>(value) && !isScore(value); });
}

namespace {
struct LintDroppedMask : attn::impl::LintDroppedMaskBase<LintDroppedMask> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    DenseSet<Operation *> live = liveOps(getOperation());
    SetVector<Value> scores;
    getOperation().walk([&](linalg::SoftmaxOp softmax) {
      if (live.contains(softmax))
        scores.insert_range(scoresOf(softmax));
    });
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!live.contains(op) && masks(op, scores))
        op.emitWarning()
            << "masked scores are dropped, so the mask changes nothing; assign them, as "
               "in scores = scores.masked_fill(...)";
    });
  }
};
} // namespace
