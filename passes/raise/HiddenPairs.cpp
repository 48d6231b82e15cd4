//===- HiddenPairs.cpp - conditions that hide scores -----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Tests: test/passes/raise/raise-attention.mlir for empty rows,
// test/passes/raise/hidden-probabilities.mlir for hidden pairs
//
//===----------------------------------------------------------------------===//

#include "passes/raise/HiddenPairs.h"
#include "passes/Access.h"
#include "passes/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <cmath>

using namespace mlir;
using namespace attn;

/// Whether `element`, a comparison of a boolean that is converted to a number with 0, holds where the boolean is false
/// (true) or where it is true (false); none for any other element.
static std::optional<bool> comparesWithFalse(const Element &element) {
  Operation *number = element.getOperand(0).getOp();
  if (!isa_and_nonnull<arith::ExtUIOp, arith::UIToFPOp>(number) ||
      !getElementTypeOrSelf(number->getOperand(0)).isInteger(1))
    return std::nullopt;
  Attribute other = element.getOperand(1).getConstant();
  auto integer = dyn_cast_or_null<IntegerAttr>(other);
  auto real = dyn_cast_or_null<FloatAttr>(other);
  if (!(integer && integer.getValue().isZero()) && !(real && real.getValue().isZero()))
    return std::nullopt;
  if (auto compare = dyn_cast<arith::CmpIOp>(element.getOp()))
    return compare.getPredicate() == arith::CmpIPredicate::eq   ? std::optional(true)
           : compare.getPredicate() == arith::CmpIPredicate::ne ? std::optional(false)
                                                                : std::nullopt;
  if (auto compare = dyn_cast<arith::CmpFOp>(element.getOp()))
    return compare.getPredicate() == arith::CmpFPredicate::OEQ   ? std::optional(true)
           : compare.getPredicate() == arith::CmpFPredicate::UNE ? std::optional(false)
                                                                 : std::nullopt;
  return std::nullopt;
}

/// Strips `not` ops from `element`: xor with true, and comparison of a boolean with false. Returns whether the number
/// of these ops is odd.
static bool takeNegations(Element &element) {
  bool isOdd = false;
  while (element.getOp() && element.getOp()->getNumOperands() == 2) {
    auto number = dyn_cast_or_null<IntegerAttr>(element.getOperand(1).getConstant());
    Element left = element.getOperand(0);
    if (std::optional<bool> isFalse = comparesWithFalse(element)) {
      element = left.getOperand(0);
      isOdd ^= *isFalse;
    } else if (number && number.getType().isInteger(1) && number.getValue().isOne() &&
               isa<arith::XOrIOp>(element.getOp())) {
      element = left;
      isOdd = !isOdd;
    } else {
      break;
    }
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

/// Whether `score` is computed from products and from numbers of a magnitude below `limit`, by ops such as sums, products
/// and selects only.
static bool isBelowLimit(const Element &score, double limit, llvm::SmallPtrSetImpl<Operation *> &seen) {
  if (Attribute constant = score.getConstant()) {
    auto number = dyn_cast<FloatAttr>(constant);
    return number && number.getValue().isFinite() &&
           std::abs(number.getValueAsDouble()) < limit;
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
                      [&](unsigned i) { return isBelowLimit(score.getOperand(i), limit, seen); });
}

/// The constant that the select `score` gives to exactly the pairs where `condition` is `hides`, and its operand.
static std::optional<ConstantFill> matchFill(Element condition, bool hides, const Element &score) {
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
  return fill ? std::optional(ConstantFill{fill.getValueAsDouble(), operand}) : std::nullopt;
}

std::optional<ConstantFill> attn::findFill(Element condition, bool hides, const Element &score) {
  std::optional<ConstantFill> fill = matchFill(condition, hides, score);
  llvm::SmallPtrSet<Operation *, 8> seen;
  return fill && fill->value <= kGreatestFiniteFill &&
                 isBelowLimit(score.getOperand(3 - fill->operand), -kGreatestFiniteFill, seen)
             ? fill
             : std::nullopt;
}

std::optional<ConstantFill> attn::findFiniteFill(Element condition, bool hides,
                                                 const Element &score) {
  // Up to this magnitude, f32 holds the sum of the fill and the logarithm of a number. A larger fill needs other scores
  // that stay far from it: they may contain neither a constant of its magnitude nor the product of two constants that
  // reaches it.
  constexpr double kSmall = 16;
  std::optional<ConstantFill> fill = matchFill(condition, hides, score);
  if (!fill || !std::isfinite(fill->value))
    return std::nullopt;
  llvm::SmallPtrSet<Operation *, 8> seen;
  bool isFound = std::abs(fill->value) <= kSmall ||
                 (fill->value < 0 &&
                  isBelowLimit(score.getOperand(3 - fill->operand),
                               std::sqrt(-fill->value / 2), seen));
  return isFound ? fill : std::nullopt;
}

std::optional<HiddenByTensor> attn::findHidden(Value scores, unsigned fill, unsigned keyDim) {
  auto op = scores.getDefiningOp<linalg::GenericOp>();
  if (!op || !isElementwise(op) || op->getNumResults() != 1 ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
    return std::nullopt;
  auto select = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
  auto condition = select ? dyn_cast<BlockArgument>(select.getCondition()) : nullptr;
  if (!condition || condition.getOwner() != op.getBlock())
    return std::nullopt;
  OpOperand *operand = op.getMatchingOpOperand(condition);
  AffineMap map = op.getMatchingIndexingMap(operand);
  if (!map.isProjectedPermutation(/*allowZeroInResults=*/true) ||
      !map.isFunctionOfDim(keyDim))
    return std::nullopt;
  return HiddenByTensor{{operand->get(), map}, fill == 1};
}

Access attn::createScoreOfHidden(OpBuilder &b, Location loc, Value scores,
                                 const HiddenByTensor &hidden, double fill, unsigned keyDim) {
  unsigned rank = cast<RankedTensorType>(scores.getType()).getRank();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, scores), ofRows;
  // The loops are the dimensions along which the condition varies; the rows lack the one of the keys.
  SmallVector<AffineExpr> loops(rank, b.getAffineConstantExpr(0)), rows, ofScores;
  SmallVector<utils::IteratorType> iterators;
  for (unsigned dim = 0; dim < rank; ++dim) {
    if (!hidden.condition.map.isFunctionOfDim(dim))
      continue;
    loops[dim] = b.getAffineDimExpr(iterators.size());
    bool isKey = dim == keyDim;
    iterators.push_back(isKey ? utils::IteratorType::reduction : utils::IteratorType::parallel);
    if (isKey)
      continue;
    rows.push_back(loops[dim]);
    ofRows.push_back(sizes[dim]);
    ofScores.push_back(b.getAffineDimExpr(dim));
  }
  unsigned numLoops = iterators.size();
  AffineMap read = hidden.condition.map.replaceDimsAndSymbols(loops, {}, numLoops, 0),
            ofCount = AffineMap::get(numLoops, 0, rows, b.getContext());
  auto constant = [](OpBuilder &b, Location loc, double number) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(number));
  };
  Value empty = tensor::EmptyOp::create(b, loc, ofRows, b.getF32Type());
  Value start = linalg::FillOp::create(b, loc, constant(b, loc, 0), empty).getResult(0);
  Value count = linalg::GenericOp::create(
                    b, loc, start.getType(), hidden.condition.tensor, start,
                    ArrayRef<AffineMap>{read, ofCount}, iterators,
                    [&](OpBuilder &b, Location loc, ValueRange x) {
                      Value one = constant(b, loc, 1), zero = constant(b, loc, 0);
                      Value hides = arith::SelectOp::create(b, loc, x[0], hidden.hides ? one : zero,
                                                            hidden.hides ? zero : one);
                      Value sum = arith::AddFOp::create(b, loc, x[1], hides);
                      linalg::YieldOp::create(b, loc, sum);
                    })
                    .getResult(0);
  AffineMap identity = b.getMultiDimIdentityMap(ofRows.size());
  SmallVector<utils::IteratorType> parallel(ofRows.size(), utils::IteratorType::parallel);
  Value score = linalg::GenericOp::create(
                    b, loc, empty.getType(), count, empty, ArrayRef<AffineMap>{identity, identity},
                    parallel,
                    [&](OpBuilder &b, Location loc, ValueRange x) {
                      Value log = math::LogOp::create(b, loc, x[0]); // -inf without hidden pairs
                      Value sum = arith::AddFOp::create(b, loc, log, constant(b, loc, fill));
                      linalg::YieldOp::create(b, loc, sum);
                    })
                    .getResult(0);
  return {score, AffineMap::get(rank, 0, ofScores, b.getContext())};
}
