//===- HiddenPairs.cpp - conditions that hide scores -----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Test: test/passes/raise/raise-attention.mlir, test/passes/raise/hidden-probabilities.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/raise/HiddenPairs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

/// Strips `not` ops from `element`: xor with true, and comparison of a boolean with false. Returns whether their number
/// is odd.
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
         left.getPredicate() == (isNegated ? arith::invertPredicate(right.getPredicate())
                                           : right.getPredicate());
}

bool attn::holdsInEmptyRows(Element condition, Value scores, unsigned dim) {
  bool isNegated = takeNegations(condition);
  std::optional<RowReduction> row = matchRowReduction(condition);
  if (!row || row->dim != dim || !haveEqualSizes(row->input, scores) ||
      !(isNegated ? isa<arith::OrIOp>(row->combiner) : isa<arith::AndIOp>(row->combiner)))
    return false;
  Element test = Element::of(row->input);
  bool isTestNegated = takeNegations(test);
  auto compare = dyn_cast_or_null<arith::CmpFOp>(test.getOp());
  if (!compare || !(test.getOperand(0) == Element::of(scores)))
    return false;
  auto bound = dyn_cast_or_null<FloatAttr>(test.getOperand(1).getConstant());
  if (!bound || !bound.getValue().isInfinity() || !bound.getValue().isNegative())
    return false;
  // The comparison that tests each score, and the comparison that is needed.
  arith::CmpFPredicate tested = compare.getPredicate(), expected = isNegated != isTestNegated
                                                                       ? arith::CmpFPredicate::UNE
                                                                       : arith::CmpFPredicate::OEQ;
  return tested == expected;
}

std::optional<double> attn::findFill(Element condition, bool hides, const Element &score) {
  if (!isa_and_nonnull<arith::SelectOp>(score.getOp()))
    return std::nullopt;
  Element tested = score.getOperand(0);
  bool isNegated = takeNegations(tested) != takeNegations(condition);
  if (!isSameCondition(tested, condition, /*isNegated=*/false)) {
    if (!isSameCondition(tested, condition, /*isNegated=*/true))
      return std::nullopt;
    isNegated = !isNegated;
  }
  auto fill =
      dyn_cast_or_null<FloatAttr>(score.getOperand(hides != isNegated ? 1 : 2).getConstant());
  if (!fill || !(fill.getValueAsDouble() <= kGreatestFiniteFill))
    return std::nullopt;
  return fill.getValueAsDouble();
}
