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
// A product with the reciprocal of %l counts as a quotient. The exponential may also be exp2, with a factor in front or
// behind the maximum. The other forms are those of log_softmax and of logsumexp:
//   exp(d - log(l))   and   exp(s - (log(l) + m))
//
// The softmax of s - m, the scores minus their maximum, becomes the softmax of s, which subtracts the maximum anyway.
//
// The elementwise steps may be one op or several. If the maximum is not subtracted from the scores, the ops stay
// unchanged, because their exponentials may overflow where those of a softmax do not. A remark says so if the result is
// multiplied by values.
// Test: test/passes/raise/raise-softmax.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Finding.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/raise/Element.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

namespace attn {
#define GEN_PASS_DEF_RAISESOFTMAX
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// The softmax of `scale * input` along a dimension.
struct Softmax {
  Value input;
  unsigned dim;
  double scale = 1;
};

/// exp(scale * argument)
struct Exponential {
  Element argument;
  double scale;
};
} // namespace

/// The reduction whose result `element` reads, if its combiner is an `OpTy`; otherwise none.
template <typename OpTy>
static std::optional<RowReduction> matchReductionBy(const Element &element) {
  std::optional<RowReduction> reduction = matchRowReduction(element);
  return reduction && isa<OpTy>(reduction->combiner) ? reduction : std::nullopt;
}

static std::optional<double> getNumber(const Element &element) {
  auto constant = dyn_cast_or_null<FloatAttr>(element.getConstant());
  return constant ? std::optional(constant.getValueAsDouble()) : std::nullopt;
}

/// The maximum of the elements of a tensor that `element` is; it may be 0 where the maximum is infinite, as in
/// torch.logsumexp. Each softmax with such a maximum is NaN, as with the infinite one.
static std::optional<RowReduction> matchMaximum(const Element &element) {
  if (!isa_and_nonnull<arith::SelectOp>(element.getOp())) {
    auto max = matchReductionBy<arith::MaximumFOp>(element);
    return max && max->element == Element::of(max->input) ? max : std::nullopt;
  }
  Element test = element.getOperand(0);
  auto compare = dyn_cast_or_null<arith::CmpFOp>(test.getOp());
  if (!compare)
    return std::nullopt;
  bool isKeptIfTrue = compare.getPredicate() == arith::CmpFPredicate::UNE;
  if (!isKeptIfTrue && compare.getPredicate() != arith::CmpFPredicate::OEQ)
    return std::nullopt;
  Element kept = element.getOperand(isKeptIfTrue ? 1 : 2), magnitude = test.getOperand(0);
  bool isOfMagnitude = isa_and_nonnull<math::AbsFOp>(magnitude.getOp());
  if (!isOfMagnitude || !(magnitude.getOperand(0) == kept) ||
      getNumber(element.getOperand(isKeptIfTrue ? 2 : 1)) != 0.0 ||
      getNumber(test.getOperand(1)) != std::numeric_limits<double>::infinity())
    return std::nullopt;
  return isa_and_nonnull<arith::SelectOp>(kept.getOp()) ? std::nullopt : matchMaximum(kept);
}

/// If `shifted` is s - max(s), returns the scores s and the dimension of the maximum; otherwise none.
static std::optional<Softmax> matchShift(const Element &shifted) {
  if (!isa_and_nonnull<arith::SubFOp>(shifted.getOp()))
    return std::nullopt;
  std::optional<RowReduction> max = matchMaximum(shifted.getOperand(1));
  if (!max || !(max->element == shifted.getOperand(0)))
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
    if (Element factor = element.getOperand(i);
        isa_and_nonnull<arith::DivFOp>(factor.getOp()) && getNumber(factor.getOperand(0)) == 1.0)
      return std::pair(element.getOperand(1 - i), factor.getOperand(1));
  return std::nullopt;
}

/// If `element` is exp or exp2 of an argument, returns it. Constant factors of the argument become the scale.
static std::optional<Exponential> matchExponential(const Element &element) {
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(element.getOp()))
    return std::nullopt;
  Exponential found{element.getOperand(0),
                    isa<math::Exp2Op>(element.getOp()) ? llvm::numbers::ln2 : 1};
  for (unsigned i : {1, 0})
    if (isa_and_nonnull<arith::MulFOp>(found.argument.getOp()))
      if (std::optional<double> factor = getNumber(found.argument.getOperand(i))) {
        found.scale *= *factor;
        found.argument = found.argument.getOperand(1 - i);
      }
  // exp2(log2(e) * x) is exp(x); the constant has the precision of f32.
  if (std::abs(found.scale - 1) < 0x1p-23)
    found.scale = 1;
  if (!(found.scale > 0) || !std::isfinite(found.scale))
    return std::nullopt;
  return found;
}

/// If `element` is exp(s - max(s)) / sum(exp(s - max(s))), returns this softmax.
static std::optional<Softmax> matchQuotientForm(const Element &element) {
  auto quotient = matchQuotient(element);
  if (!quotient)
    return std::nullopt;
  std::optional<Exponential> exponential = matchExponential(quotient->first);
  auto sum = matchReductionBy<arith::AddFOp>(quotient->second);
  if (!exponential || !sum || !(sum->element == quotient->first))
    return std::nullopt;
  std::optional<Softmax> softmax = matchShift(exponential->argument);
  if (!softmax || softmax->dim != sum->dim || !haveEqualSizes(sum->input, softmax->input))
    return std::nullopt;
  softmax->scale = exponential->scale;
  return softmax;
}

/// If `element` is exp(s - m - log(sum(exp(s - m)))) or exp(s - (log(sum(exp(s - m))) + m)), where m is max(s), returns
/// the softmax of s: the exponential of log_softmax, or of the difference to logsumexp.
static std::optional<Softmax> matchLogarithmicForm(const Element &element) {
  std::optional<Exponential> exponential = matchExponential(element);
  if (!exponential || exponential->scale != 1 ||
      !isa_and_nonnull<arith::SubFOp>(exponential->argument.getOp()))
    return std::nullopt;
  Element left = exponential->argument.getOperand(0), log = exponential->argument.getOperand(1);
  std::optional<RowReduction> added; // m in the second form
  if (isa_and_nonnull<arith::AddFOp>(log.getOp())) {
    unsigned position = matchMaximum(log.getOperand(0)) ? 0 : 1;
    added = matchMaximum(log.getOperand(position));
    if (!added)
      return std::nullopt;
    log = log.getOperand(1 - position);
  }
  if (!isa_and_nonnull<math::LogOp>(log.getOp()))
    return std::nullopt;
  auto sum = matchReductionBy<arith::AddFOp>(log.getOperand(0));
  std::optional<Exponential> summand = sum ? matchExponential(sum->element) : std::nullopt;
  std::optional<Softmax> softmax =
      summand && summand->scale == 1 ? matchShift(summand->argument) : std::nullopt;
  if (!softmax || softmax->dim != sum->dim || !haveEqualSizes(sum->input, softmax->input))
    return std::nullopt;
  if (added)
    return added->input == softmax->input && added->dim == softmax->dim &&
                   left == Element::of(softmax->input)
               ? softmax
               : std::nullopt;
  std::optional<Softmax> shift = matchShift(left);
  return shift && shift->input == softmax->input && shift->dim == softmax->dim ? softmax
                                                                               : std::nullopt;
}

/// If `value` is a softmax, returns it; otherwise none.
static std::optional<Softmax> matchSoftmax(Value value) {
  Element element = Element::of(value);
  std::optional<Softmax> softmax = matchQuotientForm(element);
  if (!softmax)
    softmax = matchLogarithmicForm(element);
  return softmax && haveEqualSizes(softmax->input, value) ? softmax : std::nullopt;
}

/// Reports exp(s) / sum(exp(s)) whose result is multiplied by values: it overflows where a softmax does not.
static void reportWithoutMaximum(linalg::LinalgOp op) {
  Element element = Element::of(op->getResult(0));
  auto quotient = matchQuotient(element);
  if (!quotient || !matchExponential(quotient->first))
    return;
  auto sum = matchReductionBy<arith::AddFOp>(quotient->second);
  if (sum && sum->element == quotient->first &&
      llvm::any_of(op->getUsers(), [](Operation *user) { return isProduct(user); }))
    emitFinding(op.getLoc(), Finding::Unfused)
        << "attention left unfused: expected a softmax, got exponentials divided by their sum; use "
           "softmax, or subtract the maximum from the scores first";
}

/// `scale * tensor`
static Value createScaled(RewriterBase &rewriter, Location loc, Value tensor, double scale) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Value out = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, tensor),
                                      type.getElementType());
  SmallVector<AffineMap> maps(2, rewriter.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto multiply = [&](OpBuilder &b, Location loc, ValueRange elements) {
    Value factor = arith::ConstantOp::create(b, loc, b.getFloatAttr(type.getElementType(), scale));
    Value product = arith::MulFOp::create(b, loc, elements[0], factor);
    linalg::YieldOp::create(b, loc, product);
  };
  return linalg::GenericOp::create(rewriter, loc, out.getType(), tensor, out, maps, loops, multiply)
      .getResult(0);
}

namespace {
struct RaiseSoftmax : attn::impl::RaiseSoftmaxBase<RaiseSoftmax> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op->getNumResults() != 1 || !isScalarFunction(op))
        return;
      std::optional<Softmax> found = matchSoftmax(op->getResult(0));
      if (!found) {
        reportWithoutMaximum(op);
        return;
      }
      rewriter.setInsertionPoint(op);
      Value input = found->input;
      if (found->scale != 1)
        input = createScaled(rewriter, op.getLoc(), input, found->scale);
      rewriter.replaceOpWithNewOp<linalg::SoftmaxOp>(op, op->getResultTypes(), input,
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
