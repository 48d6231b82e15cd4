//===- KeyBounds.cpp - key ranges and proofs from the sets of a mask -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A set of kept pairs is intersected with a tile; then the query and the symbols are eliminated. The remaining
// constraints bound the keys by affine functions of the operands of attn.key_range. A symbol is treated as if it could
// have any value between its least and its greatest value in the tile, so a symbol that varies with q needs no special
// case. Elimination treats variables as rationals, so it can only widen a set. Therefore [lo, hi), a projection of the
// kept pairs, may be too large, and [full_lo, full_hi), the complement of a projection of the hidden pairs, may be too
// small. The results are then still correct, because the mask is applied to all keys outside [full_lo, full_hi).
//
//===----------------------------------------------------------------------===//

#include "dialect/KeyBounds.h"
#include "dialect/Symbols.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Analysis/Presburger/PresburgerRelation.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

namespace {
/// The space in which one set is intersected with a tile. Its dimensions are the operands of attn.key_range, the key,
/// and then the dimensions that are eliminated: the query and the value of each symbol of the set.
class TileSpace {
public:
  TileSpace(MLIRContext *context, unsigned numBatch, unsigned numOperands, unsigned firstSymbol,
            unsigned numSymbols)
      : context(context), numBatch(numBatch), numOperands(numOperands), firstSymbol(firstSymbol),
        numSymbols(numSymbols) {}

  AffineExpr operand(unsigned i) const { return dim(i); }
  AffineExpr key() const { return dim(numOperands); }
  AffineExpr firstQuery() const { return operand(numBatch); }
  AffineExpr rows() const { return operand(numBatch + 1); }
  AffineExpr keys() const { return operand(numBatch + 2); }

  /// Rewrites `expr`, over (batch..., q, k)[symbols], in the dimensions of this space.
  AffineExpr embed(AffineExpr expr) const {
    SmallVector<AffineExpr> dims, symbols;
    for (unsigned i = 0; i < numBatch; ++i)
      dims.push_back(operand(i));
    dims.append({query(), key()});
    for (unsigned i = 0; i < numSymbols; ++i)
      symbols.push_back(symbol(i));
    return expr.replaceDimsAndSymbols(dims, symbols);
  }

  /// Constraints that hold for the pairs of every tile that has a row. They do not include the range of the keys.
  SmallVector<AffineExpr> pairsOfTile() const {
    SmallVector<AffineExpr> exprs = {query() - firstQuery(), firstQuery() + rows() - 1 - query()};
    for (unsigned i = 0; i < numSymbols; ++i)
      exprs.append(
          {symbol(i) - operand(firstSymbol + 2 * i), operand(firstSymbol + 2 * i + 1) - symbol(i)});
    llvm::append_range(exprs, factsOfTile());
    return exprs;
  }

  /// Constraints that hold for every tile, even for a tile without rows.
  SmallVector<AffineExpr> factsOfTile() const {
    SmallVector<AffineExpr> exprs = {firstQuery(), rows(), keys()};
    for (unsigned i = 0; i < numBatch; ++i)
      exprs.push_back(operand(i));
    return exprs;
  }

  /// Bounds on the key, as expressions of the operands. Upper bounds are exclusive.
  struct Bounds {
    SmallVector<AffineExpr> lower, upper;
  };

  /// Bounds of the keys for which some query and some values of the symbols satisfy the constraints; none if there is
  /// no such key. Each expression of `exprs` must be 0 if `isEquality` says so, and at least 0 otherwise.
  std::optional<Bounds> project(ArrayRef<AffineExpr> exprs, ArrayRef<bool> isEquality) const {
    FlatLinearValueConstraints system(IntegerSet::get(numDims(), 0, exprs, isEquality));
    if (system.isEmpty())
      return std::nullopt;
    system.projectOut(1 + numOperands, system.getNumVars() - (1 + numOperands));
    system.removeRedundantConstraints();
    Bounds bounds;
    // Adds the bound that the constraint row . (operands, key, 1) >= 0 implies.
    auto addRow = [&](SmallVector<int64_t> row) {
      int64_t coefficient = std::exchange(row[numOperands], 0);
      if (coefficient > 0)
        for (int64_t &other : row)
          other = -other;
      AffineExpr rest = getAffineExprFromFlatForm(row, 1 + numOperands, 0, {}, context);
      if (coefficient > 0)
        bounds.lower.push_back(rest.ceilDiv(coefficient));
      else if (coefficient < 0)
        bounds.upper.push_back(rest.floorDiv(-coefficient) + 1);
    };
    for (unsigned i = 0; i < system.getNumInequalities(); ++i)
      addRow(system.getInequality64(i));
    for (unsigned i = 0; i < system.getNumEqualities(); ++i) {
      SmallVector<int64_t> row = system.getEquality64(i);
      addRow(row);
      addRow(llvm::map_to_vector(row, std::negate<int64_t>()));
    }
    return bounds;
  }

  /// Whether `expr` over the operands is proved to be >= 0 for every tile.
  bool isNonNegative(AffineExpr expr) const {
    SmallVector<AffineExpr> exprs = factsOfTile();
    exprs.push_back(-expr - 1);
    return FlatLinearValueConstraints(
               IntegerSet::get(numDims(), 0, exprs, SmallVector<bool>(exprs.size(), false)))
        .isEmpty();
  }

private:
  AffineExpr dim(unsigned i) const { return getAffineDimExpr(i, context); }
  AffineExpr query() const { return dim(1 + numOperands); }
  AffineExpr symbol(unsigned i) const { return dim(2 + numOperands + i); }
  unsigned numDims() const { return 2 + numOperands + numSymbols; }

  MLIRContext *context;
  unsigned numBatch, numOperands, firstSymbol, numSymbols;
};
} // namespace

//===----------------------------------------------------------------------===//
// Deriving bounds
//===----------------------------------------------------------------------===//

KeyBounds KeyBounds::get(MLIRContext *context, MaskInterface mask, unsigned numBatch,
                         int64_t step) {
  if (mask)
    return get(context, mask.kept(numBatch), numBatch, step);
  return get(context, KeptSet::always(context, numBatch), numBatch, step);
}

KeyBounds KeyBounds::get(MLIRContext *context, ArrayRef<KeptSet> kept, unsigned numBatch,
                         int64_t step) {
  KeyBounds result;
  result.context = context;
  result.step = step;
  unsigned numOperands = numBatch + 3;
  for (const KeptSet &set : kept)
    numOperands += 2 * set.symbols.size();

  unsigned firstSymbol = numBatch + 3;
  for (const KeptSet &set : kept) {
    TileSpace space(context, numBatch, numOperands, firstSymbol, set.symbols.size());
    firstSymbol += 2 * set.symbols.size();
    SmallVector<AffineExpr> constraints = llvm::map_to_vector(
        set.pairs.getConstraints(), [&](AffineExpr expr) { return space.embed(expr); });

    // Find the keys that some row keeps.
    SmallVector<AffineExpr> exprs = space.pairsOfTile();
    exprs.append({space.key(), space.keys() - 1 - space.key()});
    SmallVector<bool> isEquality(exprs.size(), false);
    llvm::append_range(exprs, constraints);
    llvm::append_range(isEquality, set.pairs.getEqFlags());
    std::optional<TileSpace::Bounds> live = space.project(exprs, isEquality);
    if (!live)
      continue;
    // The projection may drop the range of the keys as redundant, but a tile without kept pairs needs this range.
    AffineExpr zero = getAffineConstantExpr(0, context);
    for (auto [bounds, end] :
         {std::pair(&live->lower, zero), std::pair(&live->upper, space.keys())})
      if (!llvm::is_contained(*bounds, end))
        bounds->push_back(end);

    // Find the keys that some row does not keep, one constraint at a time. The keys that violate a constraint must all
    // lie on one side of a bound; otherwise the range of the keys that every row keeps is not computed.
    SmallVector<AffineExpr> fullLower, fullUpper;
    bool hasFull = set.tests.empty();
    auto hide = [&](AffineExpr hidden) {
      SmallVector<AffineExpr> exprs = space.pairsOfTile();
      exprs.push_back(hidden);
      std::optional<TileSpace::Bounds> bounds =
          space.project(exprs, SmallVector<bool>(exprs.size(), false));
      if (!bounds)
        return;
      hasFull &= bounds->lower.empty() != bounds->upper.empty();
      if (hasFull && bounds->lower.empty())
        fullLower.push_back(bounds->upper.front());
      else if (hasFull)
        fullUpper.push_back(bounds->lower.front());
    };
    for (auto [constraint, isEquality] : llvm::zip_equal(constraints, set.pairs.getEqFlags())) {
      hide(-constraint - 1);
      if (isEquality)
        hide(constraint - 1);
    }

    auto mayBeNegative = [&](AffineExpr expr) { return !space.isNonNegative(expr); };
    Disjunct disjunct;
    disjunct.hasFull = hasFull;
    disjunct.hiMayBeNegative = llvm::any_of(live->upper, mayBeNegative);
    // The length of [lo, hi) is never negative. The length of a range [0, end) is not negative if `end` is not
    // negative.
    bool startsAtZero = live->lower == SmallVector<AffineExpr>{zero} && fullLower.empty();
    disjunct.fullMayBeNegative =
        !fullLower.empty() ||
        !(fullUpper.empty() || (startsAtZero && llvm::none_of(fullUpper, mayBeNegative)));
    // The last dimension of fullLo is lo and that of fullHi is hi, so the maps need not repeat the expressions of lo
    // and hi.
    auto map = [&](ArrayRef<AffineExpr> exprs, unsigned extraDims) {
      return AffineMap::get(numOperands + extraDims, 0, exprs, context);
    };
    auto within = [&](SmallVector<AffineExpr> exprs) {
      if (!exprs.empty())
        exprs.push_back(getAffineDimExpr(numOperands, context));
      return map(exprs, 1);
    };
    disjunct.lo = map(live->lower, 0);
    disjunct.hi = map(live->upper, 0);
    disjunct.fullLo = within(fullLower);
    disjunct.fullHi = within(fullUpper);
    result.disjuncts.push_back(disjunct);
  }
  return result;
}

bool KeyBounds::isFunctionOf(unsigned operand) const {
  return llvm::any_of(disjuncts, [&](const Disjunct &disjunct) {
    return disjunct.lo.isFunctionOfDim(operand) || disjunct.hi.isFunctionOfDim(operand) ||
           (disjunct.hasFull &&
            (disjunct.fullLo.isFunctionOfDim(operand) || disjunct.fullHi.isFunctionOfDim(operand)));
  });
}

//===----------------------------------------------------------------------===//
// Computing bounds, on integers and in IR
//===----------------------------------------------------------------------===//

static int64_t evaluateExpr(AffineExpr expr, ArrayRef<int64_t> dims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluateExpr(binary.getLHS(), dims), rhs = evaluateExpr(binary.getRHS(), dims);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::Mod:
    return llvm::mod(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(lhs, rhs);
  default:
    llvm_unreachable("expected a binary expression");
  }
}

namespace {
struct OnIntegers {
  using Value = int64_t;
  Value constant(int64_t value) { return value; }
  Value max(AffineMap map, ArrayRef<Value> operands) {
    return *llvm::max_element(results(map, operands));
  }
  Value min(AffineMap map, ArrayRef<Value> operands) {
    return *llvm::min_element(results(map, operands));
  }
  Value selectIfGreater(Value a, Value b, Value ifTrue, Value ifFalse) {
    return a > b ? ifTrue : ifFalse;
  }

private:
  SmallVector<int64_t> results(AffineMap map, ArrayRef<Value> operands) {
    return llvm::map_to_vector(map.getResults(),
                               [&](AffineExpr expr) { return evaluateExpr(expr, operands); });
  }
};

struct InIR {
  using Value = OpFoldResult;
  OpBuilder &builder;
  Location loc;

  Value constant(int64_t value) { return builder.getIndexAttr(value); }
  Value max(AffineMap map, ArrayRef<Value> operands) {
    if (map.getNumResults() == 1)
      return affine::makeComposedFoldedAffineApply(builder, loc, map, operands);
    return affine::makeComposedFoldedAffineMax(builder, loc, map, operands);
  }
  Value min(AffineMap map, ArrayRef<Value> operands) {
    if (map.getNumResults() == 1)
      return affine::makeComposedFoldedAffineApply(builder, loc, map, operands);
    return affine::makeComposedFoldedAffineMin(builder, loc, map, operands);
  }
  Value selectIfGreater(Value a, Value b, Value ifTrue, Value ifFalse) {
    if (ifTrue == ifFalse)
      return ifTrue;
    std::optional<int64_t> constantA = getConstantIntValue(a), constantB = getConstantIntValue(b);
    if (constantA && constantB)
      return *constantA > *constantB ? ifTrue : ifFalse;
    auto value = [&](OpFoldResult result) {
      return getValueOrCreateConstantIndexOp(builder, loc, result);
    };
    auto isGreater =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, value(a), value(b));
    return arith::SelectOp::create(builder, loc, isGreater, value(ifTrue), value(ifFalse))
        .getResult();
  }
};
} // namespace

template <typename Algebra>
std::array<typename Algebra::Value, 4>
KeyBounds::compute(Algebra &algebra, ArrayRef<typename Algebra::Value> operands) const {
  using Value = typename Algebra::Value;
  AffineExpr d0, d1;
  bindDims(context, d0, d1);
  AffineMap both = AffineMap::get(2, 0, {d0, d1}, context);
  AffineMap orZero = AffineMap::get(1, 0, {d0, getAffineConstantExpr(0, context)}, context);
  AffineMap sum = AffineMap::get(2, 0, d0 + d1);
  AffineExpr wholeSteps = (d1 - d0).floorDiv(step) * step;
  AffineMap steps = AffineMap::get(2, 0, wholeSteps);
  AffineMap stepsOrZero =
      AffineMap::get(2, 0, {wholeSteps, getAffineConstantExpr(0, context)}, context);
  Value zero = algebra.constant(0);

  struct Range {
    Value lo, hi;
  };
  SmallVector<Range, 1> ranges;
  for (const Disjunct &disjunct : disjuncts) {
    Value hi = algebra.min(disjunct.hi, operands);
    if (disjunct.hiMayBeNegative)
      hi = algebra.max(orZero, {hi});
    Value lo = algebra.max(disjunct.lo, operands);
    if (lo != zero)
      lo = algebra.min(both, {lo, hi});
    ranges.push_back({lo, hi});
  }
  if (ranges.empty())
    return {zero, zero, zero, zero};

  // Take the hull of the sets, and the longest range that a single set keeps completely.
  auto [lo, hi] = ranges.front();
  for (Range range : ArrayRef(ranges).drop_front()) {
    lo = algebra.min(both, {lo, range.lo});
    hi = algebra.max(both, {hi, range.hi});
  }
  Value fullLo = lo, length = zero;
  for (auto [disjunct, range] : llvm::zip_equal(disjuncts, ranges)) {
    if (!disjunct.hasFull)
      continue;
    auto within = [&](Value end) {
      SmallVector<Value> all(operands);
      all.push_back(end);
      return all;
    };
    Value start =
        disjunct.fullLo.getNumResults() ? algebra.max(disjunct.fullLo, within(range.lo)) : range.lo;
    Value end =
        disjunct.fullHi.getNumResults() ? algebra.min(disjunct.fullHi, within(range.hi)) : range.hi;
    Value candidate = algebra.max(disjunct.fullMayBeNegative ? stepsOrZero : steps, {start, end});
    // A range too short for a step becomes an empty range at lo, so that all keys that need the mask form one range.
    fullLo = algebra.selectIfGreater(candidate, length, start, fullLo);
    length = length == zero ? candidate : algebra.max(both, {candidate, length});
  }
  return {lo, fullLo, fullLo == zero ? length : algebra.max(sum, {fullLo, length}), hi};
}

std::array<int64_t, 4> KeyBounds::evaluate(ArrayRef<int64_t> operands) const {
  OnIntegers algebra;
  return compute(algebra, operands);
}

std::array<OpFoldResult, 4> KeyBounds::build(OpBuilder &builder, Location loc,
                                             ArrayRef<OpFoldResult> operands) const {
  InIR algebra{builder, loc};
  return compute(algebra, operands);
}

template <typename Algebra>
static std::array<typename Algebra::Value, 4>
computeRelative(MLIRContext *context, Algebra &algebra, typename Algebra::Value first, int64_t step,
                std::array<typename Algebra::Value, 4> bounds) {
  AffineExpr d0, d1, d2;
  bindDims(context, d0, d1, d2);
  AffineExpr zero = getAffineConstantExpr(0, context);
  AffineMap fromFirst = AffineMap::get(2, 0, {d1 - d0, zero}, context);
  auto [lo, fullLo, fullHi, hi] = bounds;
  auto relativeLo = algebra.max(fromFirst, {first, fullLo});
  AffineMap wholeSteps =
      AffineMap::get(3, 0, {d2 + (d1 - d0 - d2).floorDiv(step) * step, d2}, context);
  return {algebra.max(fromFirst, {first, lo}), relativeLo,
          algebra.max(wholeSteps, {first, fullHi, relativeLo}),
          algebra.max(fromFirst, {first, hi})};
}

std::array<int64_t, 4> KeyBounds::relativeTo(int64_t first, std::array<int64_t, 4> bounds) const {
  OnIntegers algebra;
  return computeRelative(context, algebra, first, step, bounds);
}

std::array<OpFoldResult, 4> KeyBounds::relativeTo(OpBuilder &builder, Location loc,
                                                  OpFoldResult first, int64_t step,
                                                  std::array<OpFoldResult, 4> bounds) {
  InIR algebra{builder, loc};
  return computeRelative(builder.getContext(), algebra, first, step, bounds);
}

//===----------------------------------------------------------------------===//
// Proofs over every pair
//===----------------------------------------------------------------------===//

namespace {
/// The space (batch..., q, k) of all pairs of an attention. It has a symbol for each captured operand that is a symbol
/// of the mask's sets, then one for the number of queries and one for the number of keys if these numbers are unknown.
class PairSpace {
public:
  PairSpace(MLIRContext *context, ArrayRef<KeptSet> kept, unsigned numBatch, PairCounts counts)
      : context(context), numBatch(numBatch) {
    for (const KeptSet &set : kept)
      for (unsigned capture : set.symbols)
        symbolOfCapture.try_emplace(capture, symbolOfCapture.size());
    numSymbols = symbolOfCapture.size();
    auto count = [&](int64_t size) {
      return ShapedType::isDynamic(size) ? getAffineSymbolExpr(numSymbols++, context)
                                         : getAffineConstantExpr(size, context);
    };
    queries = count(counts.queries);
    keys = counts.equal ? queries : count(counts.keys);
    someKey = counts.someKey;
  }

  /// The pairs of the attention that are in `set`, or all its pairs if `set` is null.
  presburger::IntegerPolyhedron pairs(const KeptSet *set = nullptr) const {
    SmallVector<AffineExpr> exprs = rowConstraints();
    AffineExpr key = getAffineDimExpr(numBatch + 1, context);
    exprs.append({key, keys - 1 - key});
    SmallVector<bool> isEquality(exprs.size(), false);
    if (set) {
      SmallVector<AffineExpr> symbols = llvm::map_to_vector(set->symbols, [&](unsigned capture) {
        return getAffineSymbolExpr(symbolOfCapture.at(capture), context);
      });
      for (AffineExpr expr : set->pairs.getConstraints())
        exprs.push_back(expr.replaceSymbols(symbols));
      llvm::append_range(isEquality, set->pairs.getEqFlags());
    }
    return FlatLinearValueConstraints(IntegerSet::get(numBatch + 2, numSymbols, exprs, isEquality));
  }

  /// All rows of the attention, over (batch..., q).
  presburger::IntegerPolyhedron rows() const {
    SmallVector<AffineExpr> exprs = rowConstraints();
    return FlatLinearValueConstraints(
        IntegerSet::get(numBatch + 1, numSymbols, exprs, SmallVector<bool>(exprs.size(), false)));
  }

private:
  SmallVector<AffineExpr> rowConstraints() const {
    SmallVector<AffineExpr> exprs;
    for (unsigned i = 0; i <= numBatch; ++i)
      exprs.push_back(getAffineDimExpr(i, context));
    exprs.push_back(queries - 1 - exprs.back());
    if (someKey)
      exprs.push_back(keys - 1);
    return exprs;
  }

  MLIRContext *context;
  unsigned numBatch, numSymbols;
  llvm::SmallDenseMap<unsigned, unsigned> symbolOfCapture;
  AffineExpr queries, keys;
  bool someKey;
};
} // namespace

PairCounts attn::countPairs(AttentionOp op) {
  auto axisOf = [&](Value operand, AffineMap map, unsigned dim) {
    auto position = map.getResultPosition(getAffineDimExpr(dim, op.getContext()));
    return std::pair<Value, int64_t>(operand, *position);
  };
  auto [query, q] = axisOf(op.getQuery(), op.getQueryMap(), op.getQDim());
  auto [key, k] = axisOf(op.getKey(), op.getKeyMap(), op.getKDim());
  PairCounts counts{cast<ShapedType>(query.getType()).getDimSize(q),
                    cast<ShapedType>(key.getType()).getDimSize(k)};
  if (auto function = op->getParentOfType<FunctionOpInterface>()) {
    StringAttr symbol = symbolOf(function, query, q);
    counts.equal = symbol && symbol == symbolOf(function, key, k);
  }
  return counts;
}

bool attn::mayHaveEmptyRow(MaskInterface mask, unsigned numBatch, PairCounts counts) {
  SmallVector<KeptSet> kept = mask.kept(numBatch);
  PairSpace space(mask.getContext(), kept, numBatch, counts);
  presburger::PresburgerRelation emptyRows{space.rows()};
  for (const KeptSet &set : kept) {
    if (!set.tests.empty())
      continue;
    presburger::IntegerPolyhedron pairs = space.pairs(&set);
    pairs.convertToLocal(presburger::VarKind::SetDim, numBatch + 1, numBatch + 2);
    emptyRows = emptyRows.subtract(pairs.computeReprWithOnlyDivLocals());
  }
  return !emptyRows.isIntegerEmpty();
}

bool attn::keepsAll(MaskInterface mask, unsigned numBatch, PairCounts counts) {
  SmallVector<KeptSet> kept = mask.kept(numBatch);
  PairSpace space(mask.getContext(), kept, numBatch, counts);
  presburger::PresburgerRelation hidden{space.pairs()};
  for (const KeptSet &set : kept)
    if (set.tests.empty())
      hidden = hidden.subtract(presburger::PresburgerRelation(space.pairs(&set)));
  return hidden.isIntegerEmpty();
}
