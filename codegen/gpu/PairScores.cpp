//===- PairScores.cpp - scores of the pairs that a lane holds --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Most constraints of masks are linear in k. For such a constraint, a lane computes one bound for each of its queries,
// and compares the bound with constants, one for each key. A bound is clamped to the range of these constants, so 32
// bits hold it for any sequence length. A constraint that is not linear, or whose slope is too large for 32 bits, is
// evaluated for each pair.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/PairScores.h"
#include "support/Loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// The largest slope for which slope * column fits into 32 bits for any column of a tile.
static constexpr int64_t kSteepest = 1 << 20;

double PairScores::exponentScale() const { return unit * llvm::numbers::log2e; }

/// The first of the two neighbouring columns that this lane holds of each accumulator.
static Value laneColumn(ThreadBuilder &b) { return b.multiply(b.remainder(b.lane(), 4), 2); }

Value PairScores::keyAt(ThreadBuilder &b, int64_t column) const {
  Value key = b.add(laneColumn(b), column);
  if (!isPartial())
    return key;
  Value last = b.subtract(memref::DimOp::create(b, this->key, 0), b.constant(1));
  return b.min(key, last);
}

static Value toIndex(ThreadBuilder &b, Value value) {
  return value.getType().isIndex()
             ? value
             : arith::IndexCastOp::create(b, b.getIndexType(), value).getResult();
}

Value PairScores::createCapture(ThreadBuilder &b, unsigned capture, Value row, Value column) const {
  AffineMap map = captureMaps[capture];
  std::optional<unsigned> word = findWordOfKey(map);
  SmallVector<Value> indices;
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    if (i == word)
      indices.push_back(b.divide(column, kKeysPerWord));
    else
      indices.push_back(findLoop(expr) == 0u ? column : row);
  }
  Value element = memref::LoadOp::create(b, captures[capture], indices);
  if (!word)
    return element;
  Value bit = b.toI32(b.remainder(column, kKeysPerWord));
  Value shifted = arith::ShRUIOp::create(b, element, bit);
  return arith::TruncIOp::create(b, b.getI1Type(), shifted);
}

std::optional<int64_t> PairScores::slopeOf(const KeptSet &set, unsigned constraint) const {
  AffineExpr expr = set.pairs.getConstraint(constraint);
  for (unsigned i = 0; i < set.pairs.getNumSymbols(); ++i)
    if (expr.isFunctionOfSymbol(i) && captureMaps[set.symbols[i]].isFunctionOfDim(0))
      return std::nullopt;
  AffineExpr k = getAffineDimExpr(set.pairs.getNumDims() - 1, expr.getContext());
  auto slope = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(
      expr.replace(k, k + 1) - expr, set.pairs.getNumDims(), set.pairs.getNumSymbols()));
  if (!slope || std::abs(slope.getValue()) > kSteepest)
    return std::nullopt;
  return slope.getValue();
}

/// The value of a constraint for a pair. `elements` has one element of each captured operand; elements that the
/// constraint does not read may be null.
static Value evaluate(ThreadBuilder &b, const KeptSet &set, unsigned constraint, ValueRange origin,
                      Value query, Value key, ArrayRef<Value> elements) {
  SmallVector<Value> dims(origin.drop_back(2)), symbols;
  dims.push_back(b.add(origin.drop_back().back(), query));
  dims.push_back(b.add(origin.back(), key));
  for (unsigned capture : set.symbols)
    symbols.push_back(elements[capture] ? toIndex(b, elements[capture]) : b.constant(0));
  return affine::expandAffineExpr(b, b.getLoc(), set.pairs.getConstraint(constraint), dims,
                                  symbols);
}

static arith::CmpIPredicate predicateOf(const KeptSet &set, unsigned constraint) {
  return set.pairs.isEq(constraint) ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge;
}

PairScores::Row PairScores::createRow(ThreadBuilder &b, Value row) const {
  Row result;
  result.query = row;
  if (!captures.empty() || !region.empty())
    result.query = b.min(row, b.subtract(memref::DimOp::create(b, query, 0), b.constant(1)));
  for (unsigned i = 0; i < captures.size(); ++i)
    result.captures.push_back(captureMaps[i].isFunctionOfDim(0)
                                  ? Value()
                                  : createCapture(b, i, result.query, /*column=*/{}));
  for (const KeptSet &set : kept)
    for (unsigned i = 0; i < set.pairs.getNumConstraints(); ++i) {
      Value &condition = result.conditions.emplace_back(), &bound = result.bounds.emplace_back();
      std::optional<int64_t> slope = slopeOf(set, i);
      if (!slope)
        continue;
      Value zero = b.constant(0);
      Value base =
          evaluate(b, set, i, origin, result.query, *slope ? laneColumn(b) : zero, result.captures);
      if (*slope == 0) {
        condition = arith::CmpIOp::create(b, predicateOf(set, i), base, zero);
        continue;
      }
      // base + slope * column >= 0
      int64_t reach = std::abs(*slope) * columns + 1;
      bound = b.subtract(zero, base);
      bound = b.toI32(b.min(b.max(bound, b.constant(-reach)), b.constant(reach)));
    }
  return result;
}

Value PairScores::createRegion(ThreadBuilder &b, Value score, const Row &row, Value column,
                               ValueRange elements) const {
  Block &block = region.front();
  IRMapping mapping;
  SmallVector<Value> arguments(origin.drop_back(2));
  arguments.push_back(b.add(origin.drop_back().back(), row.query));
  arguments.push_back(b.add(origin.back(), column));
  arguments.push_back(score);
  llvm::append_range(arguments, elements);
  mapping.map(block.getArguments(), arguments);
  for (Operation &inner : block.without_terminator())
    b.clone(inner, mapping);
  return mapping.lookupOrDefault(cast<YieldOp>(block.getTerminator()).getValue());
}

Value PairScores::createKept(ThreadBuilder &b, const Row &row, int64_t column, Value key,
                             ValueRange elements) const {
  Value any;
  unsigned next = 0;
  for (const KeptSet &set : kept) {
    Value all;
    auto require = [&](Value test) {
      all = all ? arith::AndIOp::create(b, all, test).getResult() : test;
    };
    for (unsigned i = 0; i < set.pairs.getNumConstraints(); ++i, ++next) {
      if (set.pairs.getConstraint(i) == getAffineConstantExpr(0, b.getContext())) // always holds
        continue;
      if (row.conditions[next]) {
        require(row.conditions[next]);
      } else if (Value bound = row.bounds[next]) {
        int64_t reached = *slopeOf(set, i) * column;
        require(arith::CmpIOp::create(b, predicateOf(set, i), b.i32(reached), bound));
      } else {
        Value value = evaluate(b, set, i, origin, row.query, key, SmallVector<Value>(elements));
        require(arith::CmpIOp::create(b, predicateOf(set, i), value, b.constant(0)));
      }
    }
    for (DenseTest test : set.tests)
      require(createDenseTest(b, b.getLoc(), elements[test.capture], test.keeps));
    if (!all)
      return {};
    any = any ? arith::OrIOp::create(b, any, all).getResult() : all;
  }
  return any;
}

void PairScores::apply(ThreadBuilder &b, Value row, MutableArrayRef<Accumulator> products) const {
  if (isRaw() && !canHide())
    return;
  Value hidden = b.f32(-std::numeric_limits<double>::infinity());
  // Columns from `end` on are beyond the last key of the tile.
  Value end;
  if (isPartial())
    end = b.toI32(b.subtract(memref::DimOp::create(b, key, 0), laneColumn(b)));
  bool readsKeys =
      !captures.empty() || !region.empty() || llvm::any_of(kept, [&](const KeptSet &set) {
        return llvm::any_of(llvm::seq(set.pairs.getNumConstraints()),
                            [&](unsigned i) { return !slopeOf(set, i); });
      });
  for (int64_t half : {0, 1}) {
    Row ofLane = createRow(b, b.add(b.add(row, b.divide(b.lane(), 4)), 8 * half));
    for (auto [tile, sums] : llvm::enumerate(products))
      for (int64_t odd : {0, 1}) {
        Value &score = sums[2 * half + odd];
        int64_t column = int64_t(tile) * kMatrixColumns + odd;
        if (!isRaw() && scale != 1)
          score = arith::MulFOp::create(b, score, b.f32(scale));
        Value key = readsKeys ? keyAt(b, column) : Value();
        SmallVector<Value> elements(ofLane.captures);
        for (auto [i, element] : llvm::enumerate(elements))
          if (!element)
            element = createCapture(b, i, ofLane.query, key);
        if (!region.empty())
          score = createRegion(b, score, ofLane, key, elements);
        Value isKept = kept.empty() ? Value() : createKept(b, ofLane, column, key, elements);
        if (end) {
          Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, b.i32(column), end);
          isKept = isKept ? arith::AndIOp::create(b, isKept, exists).getResult() : exists;
        }
        if (isKept)
          score = arith::SelectOp::create(b, isKept, score, hidden);
      }
  }
}
