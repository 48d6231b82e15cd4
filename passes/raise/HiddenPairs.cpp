//===- HiddenPairs.cpp - conditions that hide scores -----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Tests: test/passes/raise/raise-attention.mlir for empty rows,
// test/passes/raise/hidden-probabilities.mlir for hidden pairs
//
//===----------------------------------------------------------------------===//

#include "passes/raise/HiddenPairs.h"
#include "passes/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace attn;

/// Strips `not` ops from `element`: xor with true, and comparison of a boolean with false. Returns whether the number
/// of these ops is odd.
static bool takeNegations(Element &element) {
  bool isOdd = false;
  for (; element.getOp() && element.getOp()->getNumOperands() == 2; isOdd = !isOdd) {
    auto number = dyn_cast_or_null<IntegerAttr>(element.getOperand(1).getConstant());
    auto compare = dyn_cast<arith::CmpIOp>(element.getOp());
    Element left = element.getOperand(0);
    if (number && number.getValue().isZero() && compare &&
        compare.getPredicate() == arith::CmpIPredicate::eq &&
        isa_and_nonnull<arith::ExtUIOp>(left.getOp()) &&
        getElementTypeOrSelf(left.getOp()->getOperand(0)).isInteger(1))
      element = left.getOperand(0);
    else if (number && number.getType().isInteger(1) && number.getValue().isOne() &&
             isa<arith::XOrIOp>(element.getOp()))
      element = left;
    else
      break;
  }
  return isOdd;
}

/// Whether `a` is `isNegated ? not b : b`: the same op, or a comparison of the same numbers.
static bool isSameCondition(const Element &a, const Element &b, bool isNegated) {
  if (a == b)
    return !isNegated;
  auto left = dyn_cast_or_null<arith::CmpIOp>(a.getOp()),
       right = dyn_cast_or_null<arith::CmpIOp>(b.getOp());
  auto areEqual = [](const Element &x, const Element &y) {
    return x == y || (x.getConstant() && x.getConstant() == y.getConstant());
  };
  return left && right && areEqual(a.getOperand(0), b.getOperand(0)) &&
         areEqual(a.getOperand(1), b.getOperand(1)) &&
         left.getPredicate() ==
             (isNegated ? arith::invertPredicate(right.getPredicate()) : right.getPredicate());
}

bool attn::holdsInEmptyRows(Element condition, Value scores, unsigned dim) {
  bool isNegated = takeNegations(condition);
  std::optional<RowReduction> row = matchRowReduction(condition);
  if (!row || row->dim != dim || !haveEqualSizes(row->input, scores) ||
      !(isNegated ? isa<arith::OrIOp>(row->combiner) : isa<arith::AndIOp>(row->combiner)))
    return false;
  Element test = row->element;
  bool isTestNegated = takeNegations(test);
  auto compare = dyn_cast_or_null<arith::CmpFOp>(test.getOp());
  if (!compare)
    return false;
  Element tested = test.getOperand(0);
  if (isa_and_nonnull<arith::ExtFOp>(tested.getOp())) // torch-mlir compares as f64, which is the same for -inf
    tested = tested.getOperand(0);
  if (!(tested == Element::of(scores)))
    return false;
  auto bound = dyn_cast_or_null<FloatAttr>(test.getOperand(1).getConstant());
  if (!bound || !bound.getValue().isInfinity() || !bound.getValue().isNegative())
    return false;
  // The comparison that tests each score, and the comparison with which `condition` holds in empty rows.
  return compare.getPredicate() ==
         (isNegated != isTestNegated ? arith::CmpFPredicate::UNE : arith::CmpFPredicate::OEQ);
}

/// Whether `condition` is true exactly if `probability` is NaN.
static bool isNaNTest(const Element &condition, const Element &probability) {
  auto compare = dyn_cast_or_null<arith::CmpFOp>(condition.getOp());
  if (!compare || !(condition.getOperand(0) == probability))
    return false;
  Element other = condition.getOperand(1);
  auto number = dyn_cast_or_null<FloatAttr>(other.getConstant());
  return compare.getPredicate() == arith::CmpFPredicate::UNO
             ? other == probability || (number && !number.getValue().isNaN())
             : compare.getPredicate() == arith::CmpFPredicate::UNE && other == probability;
}

/// Strips selects of other numbers where `probability` is infinite, as nan_to_num has them: no probability is infinite.
static Element withoutInfinities(Element element, const Element &probability) {
  while (isa_and_nonnull<arith::SelectOp>(element.getOp())) {
    Element condition = element.getOperand(0);
    auto compare = dyn_cast_or_null<arith::CmpFOp>(condition.getOp());
    if (!compare || compare.getPredicate() != arith::CmpFPredicate::OEQ ||
        !(condition.getOperand(0) == probability))
      break;
    auto number = dyn_cast_or_null<FloatAttr>(condition.getOperand(1).getConstant());
    if (!number || !number.getValue().isInfinity())
      break;
    element = element.getOperand(2);
  }
  return element;
}

std::optional<Element> attn::findNaNReplacement(const Element &value, const Element &probability) {
  Element select = withoutInfinities(value, probability);
  bool replaces = isa_and_nonnull<arith::SelectOp>(select.getOp()) &&
                  isNaNTest(select.getOperand(0), probability) &&
                  withoutInfinities(select.getOperand(2), probability) == probability;
  return replaces ? std::optional(select.getOperand(1)) : std::nullopt;
}

/// Whether `score` is computed from products and from numbers above kGreatestFiniteFill, by ops such as sums, products
/// and selects only.
static bool isAboveFill(const Element &score, llvm::SmallPtrSetImpl<Operation *> &seen) {
  if (Attribute constant = score.getConstant()) {
    auto number = dyn_cast<FloatAttr>(constant);
    return number && number.getValue().isFinite() &&
           number.getValueAsDouble() > kGreatestFiniteFill;
  }
  Operation *op = score.getOp();
  if (!op) {
    return isProduct(score.getRead().tensor.getDefiningOp());
  }
  if (!seen.insert(op).second || isa<arith::UIToFPOp, arith::SIToFPOp>(op))
    return true;
  if (!isa<arith::SelectOp, arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
           arith::NegFOp, math::TanhOp>(op))
    return false;
  return llvm::all_of(llvm::seq<unsigned>(isa<arith::SelectOp>(op), op->getNumOperands()),
                      [&](unsigned i) { return isAboveFill(score.getOperand(i), seen); });
}

std::optional<ConstantFill> attn::findFill(Element condition, bool hides, const Element &score) {
  if (!isa_and_nonnull<arith::SelectOp>(score.getOp()))
    return std::nullopt;
  Element tested = score.getOperand(0);
  bool isNegated = takeNegations(tested) != takeNegations(condition);
  if (!isSameCondition(tested, condition, /*isNegated=*/false)) {
    if (!isSameCondition(tested, condition, /*isNegated=*/true))
      return std::nullopt;
    isNegated = !isNegated;
  }
  unsigned operand = hides != isNegated ? 1 : 2;
  auto fill = dyn_cast_or_null<FloatAttr>(score.getOperand(operand).getConstant());
  llvm::SmallPtrSet<Operation *, 8> seen;
  if (!fill || !(fill.getValueAsDouble() <= kGreatestFiniteFill) ||
      !isAboveFill(score.getOperand(3 - operand), seen))
    return std::nullopt;
  return ConstantFill{fill.getValueAsDouble(), operand};
}
