//===- RaiseSoftmax.cpp - the ops of a softmax become linalg.softmax -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %m = linalg.generic ins(%s) outs(-inf) { maximumf }          reduces the last dimension
//   %d = linalg.generic ins(%s, %m) { subf }
//   %e = linalg.generic ins(%d) { exp }
//   %l = linalg.generic ins(%e) outs(0) { addf }                 reduces the last dimension
//   %p = linalg.generic ins(%e, %l) { divf }
// becomes
//   %p = linalg.softmax dimension(..) ins(%s)
//
// A product with the reciprocal of %l counts as a quotient.
//
// The softmax of s - m, the scores minus their maximum, becomes the softmax of s, which subtracts the maximum anyway.
//
// The elementwise steps may be one op or several. If the maximum is not subtracted from the scores, the ops stay
// unchanged, because their exponentials may overflow where those of a softmax do not.
// Test: test/passes/raise/raise-softmax.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/raise/Element.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

namespace attn {
#define GEN_PASS_DEF_RAISESOFTMAX
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// The input and the dimension of a softmax.
struct Softmax {
  Value input;
  unsigned dim;
};
} // namespace

/// The reduction whose result `element` reads, if its combiner is an `OpTy`; otherwise none.
template <typename OpTy>
static std::optional<RowReduction> matchReductionBy(const Element &element) {
  std::optional<RowReduction> reduction = matchRowReduction(element);
  return reduction && isa<OpTy>(reduction->combiner) ? reduction : std::nullopt;
}

/// If `shifted` is s - max(s), returns the scores s and the dimension of the maximum; otherwise none.
static std::optional<Softmax> matchShift(const Element &shifted) {
  if (!isa_and_nonnull<arith::SubFOp>(shifted.getOp()))
    return std::nullopt;
  auto max = matchReductionBy<arith::MaximumFOp>(shifted.getOperand(1));
  if (!max || !(Element::of(max->input) == shifted.getOperand(0)))
    return std::nullopt;
  return Softmax{max->input, max->dim};
}

/// If `element` is a / b or, as in TOSA, a * (1 / b), returns a and b; otherwise none.
static std::optional<std::pair<Element, Element>> matchQuotient(const Element &element) {
  if (isa_and_nonnull<arith::DivFOp>(element.getOp()))
    return std::pair(element.getOperand(0), element.getOperand(1));
  if (!isa_and_nonnull<arith::MulFOp>(element.getOp()))
    return std::nullopt;
  for (unsigned i : {1, 0})
    if (Element factor = element.getOperand(i); isa_and_nonnull<arith::DivFOp>(factor.getOp()))
      if (auto one = dyn_cast_or_null<FloatAttr>(factor.getOperand(0).getConstant());
          one && one.getValue().isExactlyValue(1.0))
        return std::pair(element.getOperand(1 - i), factor.getOperand(1));
  return std::nullopt;
}

/// If `value` is exp(s - max(s)) / sum(exp(s - max(s))), returns this softmax; otherwise none.
static std::optional<Softmax> matchSoftmax(Value value) {
  auto quotient = matchQuotient(Element::of(value));
  if (!quotient)
    return std::nullopt;
  auto &[exponential, divisor] = *quotient;
  auto sum = matchReductionBy<arith::AddFOp>(divisor);
  if (!sum || !isa_and_nonnull<math::ExpOp>(exponential.getOp()) ||
      !(Element::of(sum->input) == exponential) || !haveEqualSizes(sum->input, value))
    return std::nullopt;
  std::optional<Softmax> softmax = matchShift(exponential.getOperand(0));
  if (!softmax || softmax->dim != sum->dim || !haveEqualSizes(softmax->input, value))
    return std::nullopt;
  return softmax;
}

namespace {
struct RaiseSoftmax : attn::impl::RaiseSoftmaxBase<RaiseSoftmax> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op->getNumResults() != 1 || !isScalarFunction(op))
        return;
      std::optional<Softmax> found = matchSoftmax(op->getResult(0));
      if (!found)
        return;
      rewriter.setInsertionPoint(op);
      rewriter.replaceOpWithNewOp<linalg::SoftmaxOp>(op, op->getResultTypes(), found->input,
                                                     op.getDpsInits()[0], found->dim);
    });
    getOperation().walk([&](linalg::SoftmaxOp op) {
      if (!op.hasPureTensorSemantics())
        return;
      std::optional<Softmax> found = matchShift(Element::of(op.getInput()));
      if (found && found->dim == op.getDimension() && haveEqualSizes(found->input, op.getInput()))
        op.getInputMutable().assign(found->input);
    });
  }
};
} // namespace
