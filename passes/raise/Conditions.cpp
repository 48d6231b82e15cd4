//===- Conditions.cpp - conditions as parts of a mask ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/raise/Conditions.h"
#include "passes/raise/Captures.h"
#include "passes/raise/PossibleValues.h"

#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

namespace {

/// A predicate on a scalar.
struct Test {
  llvm::unique_function<bool(Attribute) const> holds;
  /// Whether the result depends only on whether the scalar is zero.
  bool isZeroTest;
};

/// One side of a comparison, an expression of the coordinates; symbol i is the element of captured operand i. Elements
/// may be so large that the sums of the graph wrap around. `width` is the bit width of sums with elements, or 0 if
/// there is no such sum.
struct Side {
  AffineExpr expr;
  unsigned width = 0;
  bool readsElement = false;
  /// Whether no element is large enough for the sum to wrap around.
  bool isExact = true;
};

/// Splits one condition of a score region into parts.
class ConditionReader {
public:
  ConditionReader(AttentionOp op, bool boundsLengths)
      : op(op), context(op.getContext()), boundsLengths(boundsLengths) {}

  /// Adds to `kept` the parts that must hold for `condition` to be `truth`.
  LogicalResult require(Value condition, bool truth) {
    return require(condition, isNonzero(), truth);
  }

  Kept kept;

private:
  LogicalResult require(Value value, const Test &test, bool truth);
  LogicalResult state(Value value, const Test &test, bool truth);
  static LogicalResult both(LogicalResult left, LogicalResult right) {
    return failure(failed(left) || failed(right));
  }
  LogicalResult requireResult(Operation *op, const Test &test, bool truth);
  LogicalResult requireComparison(arith::CmpIOp compare, bool truth);
  LogicalResult requireAtLeast(Value left, Value right, int64_t gap);
  LogicalResult requireAtLeast(const Side &left, const Side &right, int64_t gap);
  FailureOr<SmallVector<int64_t>> flatten(AffineExpr expr);
  bool isSmall(Value capture);
  FailureOr<unsigned> computeLengths(const Side &left, const Side &right, int64_t gap);
  std::optional<Side> affine(Value value, unsigned &numTerms);

  /// The number of coordinates along a dimension, if it is known.
  std::optional<int64_t> extent(unsigned dim) {
    for (auto [operand, map] : {std::pair<Value, AffineMap>{op.getQuery(), op.getQueryMap()},
                                std::pair<Value, AffineMap>{op.getKey(), op.getKeyMap()}})
      if (auto position = map.getResultPosition(getAffineDimExpr(dim, context)))
        if (int64_t size = cast<ShapedType>(operand.getType()).getDimSize(*position);
            !ShapedType::isDynamic(size))
          return size;
    return std::nullopt;
  }

  /// True if the expression with the coefficients and the constant in `flat` is at least 0 at all coordinates.
  bool alwaysHolds(ArrayRef<int64_t> flat) {
    unsigned numDims = op.getKDim() + 1;
    int64_t least = flat.back();
    for (auto [dim, factor] : llvm::enumerate(flat.drop_back())) {
      std::optional<int64_t> size = dim < numDims ? extent(dim) : std::nullopt;
      int64_t atEnd = 0;
      if (factor != 0 && dim >= numDims)
        return false;
      // Coordinates start at 0. If the expression decreases with a coordinate, its minimum is at the last coordinate.
      if (factor < 0 && (!size || llvm::MulOverflow(factor, *size - 1, atEnd)))
        return false;
      if (llvm::AddOverflow(least, atEnd, least))
        return false;
    }
    return least >= 0;
  }

  /// The number of the captured operand whose element `value` is.
  std::optional<unsigned> captureOf(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    unsigned first = op.getKDim() + 2;
    if (!argument || argument.getOwner() != &op.getScore().front() ||
        argument.getArgNumber() < first)
      return std::nullopt;
    return argument.getArgNumber() - first;
  }

  static bool isZero(Attribute attr) {
    if (auto number = dyn_cast<FloatAttr>(attr))
      return number.getValue().isZero();
    return cast<IntegerAttr>(attr).getValue().isZero();
  }
  static Test isNonzero() {
    return {[](Attribute attr) { return !isZero(attr); }, true};
  }

  /// The largest number of scalars of which a condition may consist; a scalar counts once for each reader. A larger
  /// condition stays unchanged.
  static constexpr unsigned kMaxScalars = 1024;

  AttentionOp op;
  MLIRContext *context;
  bool boundsLengths;
  unsigned numScalars = 0;
  Part comparison; // the comparison that requireAtLeast() reads, for `lowerParts`
};

} // namespace

/// The test that `compare` makes of its left operand, if its right operand is a constant.
static std::optional<Test> testOf(Operation *compare, llvm::function_ref<bool(Attribute)> isZero) {
  Attribute right;
  if (!matchPattern(compare->getOperand(1), m_Constant(&right)))
    return std::nullopt;
  if (auto cmp = dyn_cast<arith::CmpFOp>(compare)) {
    arith::CmpFPredicate predicate = cmp.getPredicate();
    // A NaN counts as nonzero.
    bool isEquality =
        predicate == arith::CmpFPredicate::OEQ || predicate == arith::CmpFPredicate::UNE;
    return Test{[=](Attribute left) {
                  return arith::applyCmpPredicate(predicate, cast<FloatAttr>(left).getValue(),
                                                  cast<FloatAttr>(right).getValue());
                },
                isEquality && isZero(right)};
  }
  arith::CmpIPredicate predicate = cast<arith::CmpIOp>(compare).getPredicate();
  bool isEquality = predicate == arith::CmpIPredicate::eq || predicate == arith::CmpIPredicate::ne;
  return Test{[=](Attribute left) {
                return arith::applyCmpPredicate(predicate, cast<IntegerAttr>(left).getValue(),
                                                cast<IntegerAttr>(right).getValue());
              },
              isEquality && isZero(right)};
}

/// Adds the parts that must hold for `test` of `value` to be `truth`. If no mask states them, a boolean `value` becomes
/// a part of its own. For other values the function then fails. Parts that were found before a failure stay in `kept`: the
/// condition implies them.
LogicalResult ConditionReader::require(Value value, const Test &test, bool truth) {
  size_t numParts = kept.rest.size();
  if (succeeded(state(value, test, truth)))
    return success();
  if (!value.getType().isInteger(1))
    return failure();
  bool ifTrue = test.holds(BoolAttr::get(context, true));
  if (ifTrue == test.holds(BoolAttr::get(context, false)))
    return failure();
  kept.rest.truncate(numParts); // `value` contains them
  kept.rest.push_back({value, ifTrue == truth});
  return success();
}

/// Adds the parts that must hold for `test` of `value` to be `truth`. Fails if no mask states one of the parts.
LogicalResult ConditionReader::state(Value value, const Test &test, bool truth) {
  if (++numScalars > kMaxScalars)
    return failure();
  Builder builder(context);
  auto constantAnswer = [&](Value of) -> std::optional<bool> {
    Attribute constant;
    if (!matchPattern(of, m_Constant(&constant)))
      return std::nullopt;
    return test.holds(constant);
  };
  if (std::optional<bool> answer = constantAnswer(value))
    return success(*answer == truth);

  if (std::optional<unsigned> capture = captureOf(value)) {
    if (!test.isZeroTest)
      return failure();
    bool isKeptAtZero = test.holds(builder.getZeroAttr(value.getType())) == truth;
    kept.masks.push_back(
        DenseAttr::get(context, *capture, isKeptAtZero ? Polarity::Zero : Polarity::Nonzero));
    return success();
  }

  Operation *op = value.getDefiningOp();
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    if (constantAnswer(select.getFalseValue()) == !truth)
      return both(require(select.getCondition(), true),
                  require(select.getTrueValue(), test, truth));
    if (constantAnswer(select.getTrueValue()) == !truth)
      return both(require(select.getCondition(), false),
                  require(select.getFalseValue(), test, truth));
    return failure();
  }
  if (isa_and_nonnull<arith::ExtUIOp, arith::ExtSIOp, arith::UIToFPOp, arith::SIToFPOp>(op) &&
      test.isZeroTest && !op->getOperand(0).getType().isInteger(1)) {
    // These casts keep zero.
    bool atZero = test.holds(builder.getZeroAttr(value.getType()));
    return require(op->getOperand(0), isNonzero(), atZero != truth);
  }
  if (!op)
    return failure();
  if (!value.getType().isInteger(1))
    return requireResult(op, test, truth);
  bool ifTrue = test.holds(builder.getBoolAttr(true));
  if (ifTrue == test.holds(builder.getBoolAttr(false)))
    return success(ifTrue == truth);
  truth = ifTrue == truth;
  if (isa<arith::XOrIOp>(op)) {
    APInt flip;
    if (!matchPattern(op->getOperand(1), m_ConstantInt(&flip)))
      return failure();
    return require(op->getOperand(0), truth != flip.isOne());
  }
  if ((isa<arith::AndIOp>(op) && truth) || (isa<arith::OrIOp>(op) && !truth))
    return both(require(op->getOperand(0), truth), require(op->getOperand(1), truth));
  if (auto compare = dyn_cast<arith::CmpIOp>(op);
      compare && succeeded(requireComparison(compare, truth)))
    return success();
  if (isa<arith::CmpIOp, arith::CmpFOp>(op))
    if (std::optional<Test> inner = testOf(op, isZero))
      return require(op->getOperand(0), *inner, truth);
  return failure();
}

/// The same for the result of `op` and a test of it, if one operand is computed from booleans, and all others are
/// constants.
LogicalResult ConditionReader::requireResult(Operation *op, const Test &test, bool truth) {
  SmallVector<Attribute> operands(op->getNumOperands());
  std::optional<unsigned> varying;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (matchPattern(operand, m_Constant(&operands[i])))
      continue;
    if (varying)
      return failure();
    varying = i;
  }
  std::optional<SmallVector<Attribute>> values;
  if (varying)
    values = findPossibleValues(op->getOperand(*varying));
  if (!values)
    return failure();
  auto fold = [&](Attribute value) {
    SmallVector<Attribute> all(operands);
    all[*varying] = value;
    return foldConstants(op, all);
  };
  if (!llvm::all_of(*values, fold))
    return failure();
  if (op->getOperand(*varying).getType().isInteger(1)) {
    bool ifTrue = test.holds(fold(BoolAttr::get(context, true))),
         ifFalse = test.holds(fold(BoolAttr::get(context, false)));
    if (ifTrue == ifFalse)
      return success(ifTrue == truth);
    return require(op->getOperand(*varying), ifTrue == truth);
  }
  Test inner{[&](Attribute value) { return test.holds(fold(value)); }, /*isZeroTest=*/false};
  return require(op->getOperand(*varying), inner, truth);
}

/// Whether the elements of a captured operand have at most 32 bits, or are sizes of dimensions.
bool ConditionReader::isSmall(Value capture) {
  if (getElementTypeOrSelf(capture).getIntOrFloatBitWidth() <= 32)
    return true;
  auto elements = capture.getDefiningOp<tensor::FromElementsOp>();
  return elements && llvm::all_of(elements.getElements(), [](Value element) {
           return element.getDefiningOp<arith::IndexCastOp>() != nullptr;
         });
}

/// `value` as an expression of the coordinates. Coordinates are less than sizes of dimensions, so sums of at most
/// `kMaxTerms` terms, with constants of at most `kLargest`, are too small to wrap around in 32 bits.
std::optional<Side> ConditionReader::affine(Value value, unsigned &numTerms) {
  constexpr int64_t kLargest = 1 << 26;
  constexpr unsigned kMaxTerms = 16;
  if (!value.getType().isIndex() && value.getType().getIntOrFloatBitWidth() < 32)
    return std::nullopt;
  Operation *inner = value.getDefiningOp();
  unsigned width = value.getType().isIndex() ? 64 : value.getType().getIntOrFloatBitWidth();
  if (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(inner))
    return affine(inner->getOperand(0), numTerms);
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(inner)) {
    std::optional<Side> left = affine(inner->getOperand(0), numTerms);
    std::optional<Side> right = left ? affine(inner->getOperand(1), numTerms) : std::nullopt;
    if (!right)
      return std::nullopt;
    Side sum;
    sum.expr = isa<arith::AddIOp>(inner) ? left->expr + right->expr : left->expr - right->expr;
    sum.readsElement = left->readsElement || right->readsElement;
    sum.isExact = left->isExact && right->isExact && (width == 64 || !sum.readsElement);
    // A sum that may have wrapped around in fewer bits cannot be part of a wider sum.
    for (const Side *part : {&*left, &*right})
      if (part->width != 0 && part->width != width)
        return std::nullopt;
    if (sum.readsElement)
      sum.width = width;
    return sum;
  }
  if (++numTerms > kMaxTerms)
    return std::nullopt;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    if (constant.sgt(kLargest) || constant.slt(-kLargest))
      return std::nullopt;
    return Side{getAffineConstantExpr(constant.getSExtValue(), context)};
  }
  if (std::optional<unsigned> capture = captureOf(value))
    return Side{getAffineSymbolExpr(*capture, context), /*width=*/0, /*readsElement=*/true,
                isSmall(op.getCaptures()[*capture])};
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getArgNumber() <= op.getKDim()
             ? std::optional(Side{getAffineDimExpr(argument.getArgNumber(), context)})
             : std::nullopt;
}

LogicalResult ConditionReader::requireComparison(arith::CmpIOp compare, bool truth) {
  Value left = compare.getLhs(), right = compare.getRhs();
  arith::CmpIPredicate predicate = compare.getPredicate();
  comparison = {compare, truth};
  switch (truth ? predicate : arith::invertPredicate(predicate)) {
  case arith::CmpIPredicate::sge:
    return requireAtLeast(left, right, 0);
  case arith::CmpIPredicate::sgt:
    return requireAtLeast(left, right, 1);
  case arith::CmpIPredicate::sle:
    return requireAtLeast(right, left, 0);
  case arith::CmpIPredicate::slt:
    return requireAtLeast(right, left, 1);
  default:
    return failure();
  }
}

LogicalResult ConditionReader::requireAtLeast(Value left, Value right, int64_t gap) {
  unsigned numTerms = 0;
  // a >= |b| means a >= b and a >= -b.
  auto magnitude = right.getDefiningOp<math::AbsIOp>();
  std::optional<Side> greater = affine(left, numTerms),
                      lesser = affine(magnitude ? magnitude.getOperand() : right, numTerms);
  if (!greater || !lesser || (magnitude && lesser->readsElement))
    return failure();
  if (failed(requireAtLeast(*greater, *lesser, gap)))
    return failure();
  if (!magnitude)
    return success();
  lesser->expr = -lesser->expr;
  return requireAtLeast(*greater, *lesser, gap);
}

/// A number that is greater than the number of keys of any tensor, but so small that adding coordinates to it does not
/// wrap around in 64 bits.
static constexpr int64_t kBeyondKeys = int64_t(1) << 62;

/// `value`, an integer or an index, converted to 64 bits.
static Value toWide(OpBuilder &builder, Location loc, Value value) {
  Type wide = builder.getI64Type();
  if (value.getType() == wide)
    return value;
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(builder, loc, wide, value);
  return arith::ExtSIOp::create(builder, loc, wide, value);
}

/// Returns the coefficients of the coordinates in `expr`, then those of the captured elements, then the constant.
FailureOr<SmallVector<int64_t>> ConditionReader::flatten(AffineExpr expr) {
  SmallVector<int64_t> flat;
  if (failed(getFlattenedAffineExpr(expr, op.getKDim() + 1, op.getCaptures().size(), &flat)))
    return failure();
  return flat;
}

/// Adds the condition left >= right + gap to `kept`; fails if no mask states it.
LogicalResult ConditionReader::requireAtLeast(const Side &left, const Side &right, int64_t gap) {
  unsigned numDims = op.getKDim() + 1, numSymbols = op.getCaptures().size();
  FailureOr<SmallVector<int64_t>> difference = flatten(left.expr - right.expr - gap);
  if (failed(difference))
    return failure();
  ArrayRef<int64_t> flat = *difference;
  if (alwaysHolds(flat))
    return success();
  int64_t constant = flat.back();
  // If there is a single query, its coordinate is 0, and the region may have a constant in its place.
  bool isSingleQuery = extent(op.getQDim()) == 1;
  auto is = [&](int64_t ofQ, int64_t ofK, std::optional<unsigned> symbol) {
    SmallVector<int64_t> expected(numDims + numSymbols, 0);
    expected[op.getQDim()] = isSingleQuery ? flat[op.getQDim()] : ofQ;
    expected[op.getKDim()] = ofK;
    if (symbol)
      expected[numDims + *symbol] = 1;
    return flat.drop_back() == ArrayRef(expected);
  };
  Kept found;
  auto variesWith = [&](unsigned symbol, unsigned dim) {
    return flat[numDims + symbol] != 0 && op.getCaptureMap(symbol).isFunctionOfDim(dim);
  };
  auto symbols = llvm::seq(numSymbols);
  if (is(1, -1, std::nullopt)) {
    found.upper = constant;
  } else if (is(-1, 1, std::nullopt)) {
    found.lower = constant;
    found.lowerParts = {comparison};
  } else if (flat[op.getKDim()] == -1 && llvm::none_of(symbols, [&](unsigned symbol) {
               return variesWith(symbol, op.getKDim());
             })) {
    // The number of kept keys is an element of a captured operand, or is computed from such elements.
    auto length = llvm::find_if(symbols, [&](unsigned symbol) {
      return boundsLengths && is(0, -1, symbol) && constant == -1 &&
             !variesWith(symbol, op.getQDim()) && left.width == 0 && right.width == 0;
    });
    FailureOr<unsigned> capture =
        length == symbols.end() ? computeLengths(left, right, gap) : FailureOr<unsigned>(*length);
    if (failed(capture))
      return failure();
    found.masks.push_back(LengthsAttr::get(context, *capture));
  } else {
    return failure();
  }
  kept.add(found);
  return success();
}

/// Computes and captures the number of keys k for which left - right, which contains -k, is at least `gap`. If the sums
/// of the graph may wrap around, elements must be on the left and the key on the right: the sum computed here then
/// wraps around in the same cases.
FailureOr<unsigned> ConditionReader::computeLengths(const Side &left, const Side &right,
                                                    int64_t gap) {
  unsigned numDims = op.getKDim() + 1;
  bool isExact = left.isExact && right.isExact;
  FailureOr<SmallVector<int64_t>> whole = flatten(left.expr - right.expr - gap),
                                  ofData = flatten(left.expr);
  if (failed(whole) || failed(ofData))
    return failure();
  if (!isExact && (right.readsElement || (*ofData)[op.getKDim()] != 0))
    return failure();
  SmallVector<int64_t> flat = *whole;
  // A coordinate on both sides cancels out here, but is part of the sum that may wrap around.
  for (unsigned dim = 0; dim < op.getKDim() && !isExact; ++dim)
    if (flat[dim] == 0 && (*ofData)[dim] != 0)
      return failure();
  ArrayRef<int64_t> ofDims = ArrayRef(flat).take_front(numDims),
                    ofSymbols = ArrayRef(flat).drop_front(numDims).drop_back();
  SmallVector<unsigned> captures, dims; // what the lengths vary with
  for (auto [symbol, factor] : llvm::enumerate(ofSymbols))
    if (factor != 0)
      captures.push_back(symbol);
  for (unsigned dim = 0; dim < op.getKDim(); ++dim)
    if (ofDims[dim] != 0 || llvm::any_of(captures, [&](unsigned capture) {
          return op.getCaptureMap(capture).isFunctionOfDim(dim);
        }))
      dims.push_back(dim);
  auto compute = [&](OpBuilder &b, Location loc, ValueRange elements) -> Value {
    auto constant = [&](int64_t value) {
      return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
    };
    // Compute the sum that may wrap around first.
    SmallVector<int64_t> first(numDims, 0), rest(ofDims);
    int64_t last = flat.back() + 1;
    Value sum = constant(last);
    if (!isExact) {
      first.assign(ofData->begin(), ofData->begin() + numDims);
      for (auto [now, later] : llvm::zip(first, rest))
        later -= now;
      last -= ofData->back();
      sum = constant(ofData->back());
    }
    auto add = [&](Value term, int64_t factor) {
      term = b.createOrFold<arith::MulIOp>(loc, toWide(b, loc, term), constant(factor));
      sum = arith::AddIOp::create(b, loc, sum, term);
    };
    auto addCoordinates = [&](ArrayRef<int64_t> factors) {
      for (auto [loop, dim] : llvm::enumerate(dims))
        if (factors[dim] != 0)
          add(linalg::IndexOp::create(b, loc, loop), factors[dim]);
    };
    for (auto [element, capture] : llvm::zip_equal(elements, captures))
      add(element, ofSymbols[capture]);
    if (!isExact) {
      addCoordinates(first);
      if (left.width == 32)
        sum = arith::ExtSIOp::create(b, loc, b.getI64Type(),
                                     arith::TruncIOp::create(b, loc, b.getI32Type(), sum));
      // Clamp the sum, so that the additions below cannot wrap around. The limits are beyond every key.
      sum = arith::MaxSIOp::create(b, loc, sum, constant(-kBeyondKeys));
      sum = arith::MinSIOp::create(b, loc, sum, constant(kBeyondKeys));
      sum = arith::AddIOp::create(b, loc, sum, constant(last));
    }
    addCoordinates(rest);
    return arith::MaxSIOp::create(b, loc, sum, constant(0));
  };
  return captureComputed(op, dims, captures, IntegerType::get(context, 64), compute);
}

Kept attn::readCondition(AttentionOp op, Value condition, bool truth, bool boundsLengths) {
  ConditionReader reader(op, boundsLengths);
  (void)reader.require(condition, truth); // a condition that no mask states becomes a part
  return reader.kept;
}
