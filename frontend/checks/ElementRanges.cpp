//===- ElementRanges.cpp - the integers that a tensor can hold -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The analysis follows the ops that compute an element, from the result back to the arguments. On the way, it keeps the
// positions at which each tensor is read: for example, torch.arange(512)[:S] reads the positions 0 to S - 1.
// Test: test/frontend/pt2/positions.test, test/frontend/pt2/indices.test, test/frontend/mlir/indices.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/checks/ElementRanges.h"
#include "support/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace attn;
using Reach = ElementRange::Reach;

/// The dimensions of numbers that may depend on any other number.
static constexpr uint64_t kAllDims = ~uint64_t(0);

/// Calls `function` if both sizes are known.
template <typename Function>
static std::optional<Size> both(Function function, const std::optional<Size> &a,
                                const std::optional<Size> &b) {
  return a && b ? function(*a, *b) : std::nullopt;
}

static bool isNonNegative(const ElementRange &range) {
  return !range.argument && range.least && range.least->isNonNegative();
}

/// A range of which only the numbers are known, if they do not depend on elements of an argument.
static ElementRange numbersOf(const ElementRange &range) {
  return range.argument ? ElementRange() : range;
}

/// How near a sum or a product of the two numbers is to its ends.
static Reach reachOfBoth(const ElementRange &a, const ElementRange &b) {
  if (a.dims & b.dims)
    return Reach::Unknown; // the numbers may depend on each other, as in i - i
  return std::min(a.reach, b.reach);
}

static ElementRange plus(const ElementRange &a, const ElementRange &b) {
  if (a.argument && b.argument)
    return {};
  return {a.argument ? a.argument : b.argument, both(add, a.least, b.least),
          both(add, a.most, b.most), reachOfBoth(a, b), a.dims | b.dims};
}

static ElementRange minus(const ElementRange &a, const ElementRange &b) {
  if (b.argument)
    return {};
  return {a.argument, both(subtract, a.least, b.most), both(subtract, a.most, b.least),
          reachOfBoth(a, b), a.dims | b.dims};
}

static ElementRange times(ElementRange a, ElementRange b) {
  if (a.argument || b.argument)
    return {};
  if (a.isSingle())
    std::swap(a, b);
  uint64_t dims = a.dims | b.dims;
  if (b.isSingle() && b.least->constant().value_or(0) < 0)
    return {nullptr, both(multiply, a.most, b.most), both(multiply, a.least, b.least), a.reach,
            dims};
  if (!isNonNegative(b) || (!b.isSingle() && !isNonNegative(a)))
    return {};
  // A product with a mask has a number at its ends if the mask is 0 for some elements and 1 for all others.
  bool isMasked =
      llvm::any_of(std::initializer_list<const ElementRange *>{&a, &b}, [](const ElementRange *x) {
        return x->reach == Reach::Some && x->least == Size(0) && x->most == Size(1);
      });
  return {nullptr, both(multiply, a.least, b.least), both(multiply, a.most, b.most),
          isMasked ? std::min({a.reach, b.reach, Reach::Some}) : reachOfBoth(a, b), dims};
}

/// A range that contains both ranges.
static ElementRange hull(const ElementRange &a, const ElementRange &b, Reach reach) {
  if (a.argument || b.argument)
    return {};
  return {nullptr, both(minimum, a.least, b.least), both(maximum, a.most, b.most),
          std::min({a.reach, b.reach, reach}), a.dims | b.dims};
}

/// The range of the greater of two numbers or, with `isMin`, of the smaller one. One known end limits the result even
/// if the other number is not known.
static ElementRange extremeOf(ElementRange a, ElementRange b, bool isMin) {
  a = numbersOf(a), b = numbersOf(b);
  auto pick = isMin ? minimum : maximum;
  auto either = [&](const std::optional<Size> &x, const std::optional<Size> &y) {
    return x && y ? pick(*x, *y) : x ? x : y;
  };
  ElementRange result{nullptr, both(pick, a.least, b.least), both(pick, a.most, b.most),
                      Reach::Unknown, a.dims | b.dims};
  (isMin ? result.most : result.least) = isMin ? either(a.most, b.most) : either(a.least, b.least);
  if (a.isKnown() && b.isKnown() && (a.isSingle() || b.isSingle()))
    result.reach = std::min(a.reach, b.reach);
  return result;
}

/// The remainders of a division by `divisor`, which is a number or a size.
static ElementRange remainderBy(const ElementRange &divisor) {
  if (!divisor.isSingle() || !isNonNegative(divisor))
    return {};
  return {nullptr, Size(0), subtract(*divisor.least, Size(1)), Reach::Unknown, kAllDims};
}

/// Whether the numbers are elements of arguments that do not depend on positions.
static bool areFree(const ElementRange &range) {
  auto isNumber = [](const std::optional<Size> &end) { return !end || end->constant(); };
  return range.argument ||
         (range.reach == Reach::Some && isNumber(range.least) && isNumber(range.most));
}

/// All integers of `type`, if it has at most 16 bits.
static ElementRange allOf(Type type, bool isUnsigned) {
  unsigned width = type.isInteger() ? type.getIntOrFloatBitWidth() : 64;
  if (width > 16)
    return {};
  if (isUnsigned || width == 1)
    return {nullptr, Size(0), Size((int64_t(1) << width) - 1)};
  return {nullptr, Size(-(int64_t(1) << (width - 1))), Size((int64_t(1) << (width - 1)) - 1)};
}

namespace {
class Analysis {
public:
  explicit Analysis(ValueSizes &values) : values(values) {}

  /// The elements of `tensor` at `positions`, one range for each dimension.
  ElementRange elementsOf(Value tensor, ArrayRef<ElementRange> positions);
  /// The values of a scalar, if the iterations of `op` are in `loops`. The scalar is in the body of `op`, or outside of
  /// all linalg ops.
  ElementRange scalarOf(Value scalar, linalg::LinalgOp op, ArrayRef<ElementRange> loops);
  /// The iterations of `op`.
  SmallVector<ElementRange> iterationsOf(linalg::LinalgOp op);

private:
  ElementRange fitIn(Type type, const ElementRange &range);
  ElementRange argumentOf(BlockArgument argument, ArrayRef<ElementRange> positions);
  ElementRange operandOf(linalg::LinalgOp op, OpOperand &operand, ArrayRef<ElementRange> loops);
  ElementRange loopsOf(linalg::LinalgOp op, ArrayRef<ElementRange> positions);
  ElementRange sumOf(linalg::LinalgOp op, SmallVector<ElementRange> loops);
  ElementRange readFrom(tensor::ExtractSliceOp slice, ArrayRef<ElementRange> positions);
  ElementRange readFrom(tensor::CollapseShapeOp view, ArrayRef<ElementRange> positions);
  ElementRange readFrom(tensor::ExpandShapeOp view, ArrayRef<ElementRange> positions);
  ElementRange wholeDim(Value tensor, int64_t dim);
  bool isWhole(const ElementRange &positions, Value tensor, int64_t dim);

  ValueSizes &values;
  /// The number of ops that the analysis may still visit. The graph of a model needs a few; a hostile graph could need
  /// exponentially many.
  int64_t rest = 500;
};
} // namespace

/// `range`, if a sum, a product or a conversion of type `type` can hold its integers in every call, and no range
/// otherwise.
ElementRange Analysis::fitIn(Type type, const ElementRange &range) {
  Type element = getElementTypeOrSelf(type);
  int64_t width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  SizeRange ofType;
  if (width < 64)
    ofType = {-(int64_t(1) << (width - 1)), (int64_t(1) << (width - 1)) - 1};
  for (const std::optional<Size> &end : {range.least, range.most}) {
    if (!end)
      continue;
    // The least and the greatest int64 of a SizeRange stand for all numbers beyond them.
    SizeRange numbers = values.rangeOf(*end);
    if (numbers.min < ofType.min || numbers.max > ofType.max || numbers.min == SizeRange::kLeast ||
        numbers.max == SizeRange::kMost)
      return {};
    if (range.argument && width == 32 && (numbers.min < -kMostOffset || numbers.max > kMostOffset))
      return {};
  }
  return width < 32 && range.argument ? ElementRange() : range;
}

/// All positions in a dimension.
ElementRange Analysis::wholeDim(Value tensor, int64_t dim) {
  std::optional<Size> size = values.sizeOf(tensor, dim);
  return {nullptr, Size(0), size ? subtract(*size, Size(1)) : std::nullopt};
}

bool Analysis::isWhole(const ElementRange &positions, Value tensor, int64_t dim) {
  ElementRange whole = wholeDim(tensor, dim);
  return positions.reach == Reach::Every && positions.isKnown() && positions.least == whole.least &&
         positions.most == whole.most;
}

ElementRange Analysis::argumentOf(BlockArgument argument, ArrayRef<ElementRange> positions) {
  Type element = getElementTypeOrSelf(argument.getType());
  uint64_t dims = 0;
  bool readsAll = true;
  for (auto [dim, position] : llvm::enumerate(positions)) {
    dims |= position.dims;
    readsAll &= isWhole(position, argument, dim);
  }
  if (std::optional<std::pair<int64_t, int64_t>> ends = values.endsOf(argument))
    return {nullptr, Size(ends->first), Size(ends->second),
            readsAll ? Reach::Every : Reach::Unknown, dims};
  if (element.isInteger(1))
    return {nullptr, Size(0), Size(1), Reach::Some, dims};
  // A bound applies to all elements of an argument.
  if (readsAll && isa<IntegerType>(element))
    return {argument, Size(0), Size(0), Reach::Every, dims};
  return {nullptr, std::nullopt, std::nullopt, Reach::Some, dims};
}

ElementRange Analysis::readFrom(tensor::ExtractSliceOp slice, ArrayRef<ElementRange> positions) {
  SmallVector<ElementRange> source;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  size_t next = 0;
  for (auto [dim, offset] : llvm::enumerate(slice.getMixedOffsets())) {
    std::optional<Size> first = values.numberOf(offset);
    std::optional<int64_t> stride = getConstantIntValue(slice.getMixedStrides()[dim]);
    ElementRange position = dropped[dim] ? ElementRange::single(0) : positions[next++];
    source.push_back(first && stride ? plus(times(position, ElementRange::single(*stride)),
                                            ElementRange::single(*first))
                                     : ElementRange());
  }
  return elementsOf(slice.getSource(), source);
}

/// The dimension of a group that is not of size 1, if there is exactly one such dimension.
static std::optional<int64_t> onlyLarge(Value tensor, ArrayRef<int64_t> group) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto isLarge = [&](int64_t dim) { return type.getDimSize(dim) != 1; };
  if (llvm::count_if(group, isLarge) != 1)
    return std::nullopt;
  return *llvm::find_if(group, isLarge);
}

ElementRange Analysis::readFrom(tensor::CollapseShapeOp view, ArrayRef<ElementRange> positions) {
  Value from = view.getSrc();
  SmallVector<ElementRange> source(view.getSrcType().getRank(), ElementRange::single(0));
  for (auto [dim, group] : llvm::enumerate(view.getReassociationIndices())) {
    if (std::optional<int64_t> only = onlyLarge(from, group)) {
      source[*only] = positions[dim];
      continue;
    }
    std::optional<Size> last = both(subtract, values.countOf(from, group), Size(1));
    bool isAll = positions[dim].reach == Reach::Every && positions[dim].least == Size(0) && last &&
                 positions[dim].most == last;
    for (int64_t of : group) {
      source[of] = wholeDim(from, of);
      source[of].reach = isAll ? Reach::Every : Reach::Unknown;
      source[of].dims = source[of].isSingle() ? 0 : positions[dim].dims;
    }
  }
  return elementsOf(from, source);
}

ElementRange Analysis::readFrom(tensor::ExpandShapeOp view, ArrayRef<ElementRange> positions) {
  Value to = view.getResult();
  SmallVector<ElementRange> source(view.getSrcType().getRank(), ElementRange::single(0));
  for (auto [dim, group] : llvm::enumerate(view.getReassociationIndices())) {
    if (std::optional<int64_t> only = onlyLarge(to, group)) {
      source[dim] = positions[*only];
      continue;
    }
    ElementRange whole{nullptr, Size(0), both(subtract, values.countOf(to, group), Size(1)),
                       Reach::Every};
    for (int64_t of : group) {
      whole.dims |= positions[of].dims;
      if (!isWhole(positions[of], to, of))
        whole.reach = Reach::Unknown;
    }
    source[dim] = whole;
  }
  return elementsOf(view.getSrc(), source);
}

/// The elements of an operand that the body of `op` reads.
ElementRange Analysis::operandOf(linalg::LinalgOp op, OpOperand &operand,
                                 ArrayRef<ElementRange> loops) {
  if (!isa<RankedTensorType>(operand.get().getType()))
    return scalarOf(operand.get(), nullptr, {});
  AffineMap map = op.getMatchingIndexingMap(&operand);
  bool isPermutation = map.isProjectedPermutation(/*allowZeroInResults=*/true);
  SmallVector<ElementRange> positions;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    ElementRange position = wholeDim(operand.get(), dim);
    if (std::optional<unsigned> loop = findLoop(expr))
      position = loops[*loop];
    else if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      position = ElementRange::single(constant.getValue());
    if (!isPermutation) // such as a diagonal, which does not read all elements
      position.reach = Reach::Unknown;
    positions.push_back(position);
  }
  return elementsOf(operand.get(), positions);
}

/// The elements of a result at `positions`, for an op that computes them in parallel or that adds up integers.
ElementRange Analysis::loopsOf(linalg::LinalgOp op, ArrayRef<ElementRange> positions) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  std::optional<SmallVector<unsigned>> ofResult = findLoops(map);
  if (op->getNumResults() != 1 || !ofResult)
    return {};
  SmallVector<ElementRange> loops(op.getNumLoops());
  for (auto [loop, position] : llvm::zip_equal(*ofResult, positions))
    loops[loop] = position;
  if (op.getNumReductionLoops() != 0)
    return sumOf(op, loops);
  return scalarOf(op.getBlock()->getTerminator()->getOperand(0), op, loops);
}

/// The elements of a sum over the reduction loops, as in torch.sum and torch.cumsum.
ElementRange Analysis::sumOf(linalg::LinalgOp op, SmallVector<ElementRange> loops) {
  std::optional<Size> count = Size(1); // of the numbers in a sum
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (auto [loop, iterator] : llvm::enumerate(iterators)) {
    if (iterator != utils::IteratorType::reduction)
      continue;
    std::optional<Size> size;
    for (OpOperand &operand : op->getOpOperands())
      if (std::optional<unsigned> dim = op.getMatchingIndexingMap(&operand).getResultPosition(
              getAffineDimExpr(loop, op.getContext())))
        size = size ? size : values.sizeOf(operand.get(), *dim);
    count = both(multiply, count, size);
    loops[loop] = {nullptr, Size(0), both(subtract, size, Size(1)), Reach::Every, kAllDims};
  }
  auto sum = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp<arith::AddIOp>();
  BlockArgument sofar = op.getRegionOutputArgs()[0];
  if (!sum || (sum.getLhs() != sofar && sum.getRhs() != sofar))
    return {};
  Value added = sum.getLhs() == sofar ? sum.getRhs() : sum.getLhs();
  ElementRange start = operandOf(op, *op.getDpsInitOperand(0), loops);
  // In torch.cumsum, the sum at a position contains the elements up to this position.
  ElementRange counts{nullptr, count, count, Reach::Every};
  auto select = added.getDefiningOp<arith::SelectOp>();
  auto isBefore = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
  auto from = isBefore ? isBefore.getLhs().getDefiningOp<linalg::IndexOp>() : nullptr,
       to = isBefore ? isBefore.getRhs().getDefiningOp<linalg::IndexOp>() : nullptr;
  if (from && to && isBefore.getPredicate() == arith::CmpIPredicate::sle &&
      iterators[from.getDim()] == utils::IteratorType::reduction &&
      iterators[to.getDim()] == utils::IteratorType::parallel && op.getNumReductionLoops() == 1 &&
      matchPattern(select.getFalseValue(), m_Zero())) {
    counts = plus(loops[to.getDim()], ElementRange::single(1));
    added = select.getTrueValue();
  }
  ElementRange element = numbersOf(scalarOf(added, op, loops));
  if (!start.isSingle() || !element.isKnown() || !isNonNegative(element))
    return {};
  ElementRange total = times(counts, element);
  // If all elements can be at the same end of their range, the sum can be at this end of its range.
  if (!element.isSingle()) {
    total.reach = areFree(element) ? std::min(counts.reach, Reach::Some) : Reach::Unknown;
    total.dims = kAllDims;
  }
  return fitIn(sum.getType(), plus(total, start));
}

ElementRange Analysis::elementsOf(Value tensor, ArrayRef<ElementRange> positions) {
  if (--rest < 0)
    return {};
  if (std::optional<Size> size = values.positionsOf(tensor))
    return {nullptr, Size(0), subtract(*size, Size(1)), Reach::Unknown, kAllDims};
  if (auto argument = dyn_cast<BlockArgument>(tensor))
    return isa<func::FuncOp>(argument.getOwner()->getParentOp()) ? argumentOf(argument, positions)
                                                                 : ElementRange();
  return llvm::TypeSwitch<Operation *, ElementRange>(tensor.getDefiningOp())
      .Case<tensor::ExtractSliceOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
          [&](auto op) { return readFrom(op, positions); })
      .Case([&](tensor::CastOp cast) { return elementsOf(cast.getSource(), positions); })
      .Case([&](tensor::FromElementsOp op) {
        return op.getElements().size() == 1 ? scalarOf(op.getElements()[0], nullptr, {})
                                            : ElementRange();
      })
      .Case([&](linalg::LinalgOp op) { return loopsOf(op, positions); })
      .Default(ElementRange());
}

ElementRange Analysis::scalarOf(Value scalar, linalg::LinalgOp in, ArrayRef<ElementRange> loops) {
  Type type = scalar.getType();
  if (--rest < 0)
    return {};
  if (type.isIndex())
    if (std::optional<Size> size = values.numberOf(scalar))
      return ElementRange::single(*size);
  IntegerAttr constant;
  if (matchPattern(scalar, m_Constant(&constant))) {
    const APInt &number = constant.getValue();
    if (number.getSignificantBits() > 64)
      return {};
    return ElementRange::single(type.isInteger(1) ? int64_t(number.getZExtValue())
                                                  : number.getSExtValue());
  }
  FloatAttr real;
  if (matchPattern(scalar, m_Constant(&real))) {
    double number = real.getValueAsDouble();
    return std::abs(number) < 0x1p53 && number == std::floor(number)
               ? ElementRange::single(int64_t(number))
               : ElementRange();
  }
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    if (auto loop = scf::getForInductionVarOwner(argument)) {
      ElementRange first = numbersOf(scalarOf(loop.getLowerBound(), in, loops)),
                   end = numbersOf(scalarOf(loop.getUpperBound(), in, loops));
      return countsUp(loop) ? fitIn(type, {nullptr, first.least, both(subtract, end.most, Size(1)),
                                           Reach::Unknown, kAllDims})
                            : ElementRange();
    }
    if (!in || argument.getOwner() != in.getBlock())
      return {};
    // The body of a sum also gets what earlier iterations computed.
    OpOperand &read = in->getOpOperand(argument.getArgNumber());
    bool isInit = in.isDpsInit(&read);
    return isInit && (in.getNumReductionLoops() != 0 || !in.getMatchingIndexingMap(&read).isPermutation())
               ? ElementRange()
               : operandOf(in, read, loops);
  }
  Operation *op = scalar.getDefiningOp();
  auto operand = [&](unsigned i) { return scalarOf(op->getOperand(i), in, loops); };
  auto join = [&](auto combine) { return fitIn(type, combine(operand(0), operand(1))); };
  ElementRange range =
      llvm::TypeSwitch<Operation *, ElementRange>(op)
          .Case([&](linalg::IndexOp index) {
            return in && index->getBlock() == in.getBlock() ? loops[index.getDim()]
                                                            : ElementRange();
          })
          .Case([&](tensor::ExtractOp extract) {
            SmallVector<ElementRange> positions;
            uint64_t dims = 0;
            for (Value index : extract.getIndices()) {
              ElementRange position = numbersOf(scalarOf(index, in, loops));
              if (position.dims & dims) // such as a diagonal, which does not read all elements
                position.reach = Reach::Unknown;
              dims |= position.dims;
              positions.push_back(position);
            }
            return elementsOf(extract.getTensor(), positions);
          })
          .Case([&](arith::IndexCastOp op) {
            // The boolean true is -1 for this op.
            return op.getIn().getType().isInteger(1) ? ElementRange() : fitIn(type, operand(0));
          })
          .Case([&](arith::TruncIOp) { return fitIn(type, operand(0)); })
          .Case<arith::FPToSIOp, arith::ExtFOp>([&](Operation *) {
            ElementRange number = operand(0); // known only if it is a constant
            return number.isSingle() ? fitIn(type, number) : ElementRange();
          })
          .Case([&](arith::ExtSIOp op) {
            ElementRange narrow = operand(0);
            if (op.getIn().getType().isInteger(1))
              return ElementRange();
            return narrow.argument || narrow.isKnown() ? narrow
                                                       : allOf(op.getIn().getType(), false);
          })
          .Case([&](arith::ExtUIOp op) {
            ElementRange narrow = operand(0);
            // A bounded element of an argument is not negative.
            return narrow.least && narrow.least->isNonNegative() ? narrow
                                                                 : allOf(op.getIn().getType(), true);
          })
          .Case([&](arith::AddIOp) { return join(plus); })
          .Case([&](arith::SubIOp op) {
            // x - x / c * c is the remainder of a division by c.
            auto product = op.getRhs().getDefiningOp<arith::MulIOp>();
            auto quotient =
                product ? product.getLhs().getDefiningOp<arith::FloorDivSIOp>() : nullptr;
            if (quotient && quotient.getLhs() == op.getLhs() &&
                quotient.getRhs() == product.getRhs())
              return remainderBy(scalarOf(product.getRhs(), in, loops));
            return join(minus);
          })
          .Case([&](arith::MulIOp) { return join(times); })
          .Case<arith::MinSIOp, arith::MaxSIOp>([&](Operation *op) {
            return type.isInteger(1)
                       ? ElementRange()
                       : extremeOf(operand(0), operand(1), isa<arith::MinSIOp>(op));
          })
          .Case<arith::FloorDivSIOp, arith::DivSIOp>([&](Operation *op) {
            ElementRange x = numbersOf(operand(0)), divisor = operand(1);
            bool isPositive = divisor.isSingle() && divisor.least->constant().value_or(0) > 0;
            if (!isPositive || (isa<arith::DivSIOp>(op) && !isNonNegative(x)))
              return ElementRange();
            return ElementRange{nullptr, both(divideDown, x.least, divisor.least),
                                both(divideDown, x.most, divisor.least), x.reach, x.dims};
          })
          .Case([&](arith::RemSIOp) {
            return isNonNegative(operand(0)) ? remainderBy(operand(1)) : ElementRange();
          })
          .Case([&](arith::SelectOp) {
            // If elements of the arguments decide which operand is selected, they may select either one everywhere.
            return hull(operand(1), operand(2), std::min(operand(0).reach, Reach::Some));
          })
          .Case<arith::CmpIOp, arith::CmpFOp>([&](Operation *) {
            ElementRange x = operand(0), y = operand(1);
            bool isFree = areFree(x) || areFree(y);
            return ElementRange{nullptr, Size(0), Size(1), isFree ? Reach::Some : Reach::Unknown,
                                x.dims | y.dims};
          })
          .Case<arith::XOrIOp, arith::AndIOp, arith::OrIOp>([&](Operation *) {
            ElementRange x = operand(0), y = operand(1);
            return ElementRange{nullptr, Size(0), Size(1),
                                std::min({x.reach, y.reach, Reach::Some}), x.dims | y.dims};
          })
          .Default(ElementRange());
  // The ops of booleans above are exact only for one bit.
  if (isa<arith::XOrIOp, arith::AndIOp, arith::OrIOp>(op) && !type.isInteger(1))
    return {};
  return range;
}

SmallVector<ElementRange> Analysis::iterationsOf(linalg::LinalgOp op) {
  SmallVector<ElementRange> loops(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands())
    for (auto [dim, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (std::optional<unsigned> loop = findLoop(expr); loop && !loops[*loop].isKnown()) {
        loops[*loop] = wholeDim(operand.get(), dim);
        loops[*loop].reach = Reach::Every;
        loops[*loop].dims = *loop < 64 ? uint64_t(1) << *loop : kAllDims;
      }
  return loops;
}

ElementRange attn::rangeOf(ValueSizes &values, Value tensor, ArrayRef<Size> sizes) {
  SmallVector<ElementRange> positions;
  for (auto [dim, size] : llvm::enumerate(sizes))
    positions.push_back({nullptr, Size(0), subtract(size, Size(1)), Reach::Every,
                         size.isOne() ? 0 : uint64_t(1) << dim});
  return Analysis(values).elementsOf(tensor, positions);
}

ElementRange attn::rangeOf(ValueSizes &values, Value integer) {
  Analysis analysis(values);
  auto op = integer.getParentRegion()->getParentOfType<linalg::LinalgOp>();
  return analysis.scalarOf(integer, op,
                           op ? analysis.iterationsOf(op) : SmallVector<ElementRange>());
}

bool attn::countsUp(scf::ForOp loop) {
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  return !loop.getUnsignedCmp() && step && *step >= 1;
}
