//===- ScoreRegion.cpp - scores of L pairs at a time -----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A value that is the same in all lanes of a vector stays a scalar, and is broadcast only where it is combined with a
// vector.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/ScoreRegion.h"
#include "support/Loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

static bool isVector(Value value) { return isa<VectorType>(value.getType()); }

static Value toVector(OpBuilder &builder, Location loc, Value value, int64_t lanes) {
  if (isVector(value))
    return value;
  return vector::BroadcastOp::create(builder, loc, VectorType::get(lanes, value.getType()), value);
}

/// Casts an integer, or a vector of integers, to index.
static Value toIndex(OpBuilder &builder, Location loc, Value value) {
  Type index = builder.getIndexType();
  Type type = isVector(value) ? cast<VectorType>(value.getType()).clone(index) : index;
  return type == value.getType()
             ? value
             : arith::IndexCastOp::create(builder, loc, type, value).getResult();
}

template <typename OpTy>
static Value createBinary(OpBuilder &builder, Location loc, Value a, Value b, int64_t lanes) {
  if (isVector(a) || isVector(b)) {
    a = toVector(builder, loc, a, lanes);
    b = toVector(builder, loc, b, lanes);
  }
  return OpTy::create(builder, loc, a, b);
}

/// The constant by which `expr` changes when `variable` grows by one; none if `expr` is not linear in `variable`.
static std::optional<int64_t> slopeOf(AffineExpr expr, AffineExpr variable, unsigned numDims,
                                      unsigned numSymbols) {
  AffineExpr change =
      simplifyAffineExpr(expr.replace(variable, variable + 1) - expr, numDims, numSymbols);
  auto constant = dyn_cast<AffineConstantExpr>(change);
  return constant ? std::optional(constant.getValue()) : std::nullopt;
}

/// The position of dimension `dim` of (k, q) among the `numDims` coordinates (batch..., q, k).
static unsigned coordinateOf(unsigned dim, unsigned numDims) { return numDims - 1 - dim; }

SmallVector<Value> ScoreRegion::coordinates(Value ofLanes, Value ofOther) const {
  SmallVector<Value> result(origin.drop_back(2));
  llvm::append_values(result, laneDim == 1 ? ofLanes : ofOther, laneDim == 1 ? ofOther : ofLanes);
  return result;
}

LogicalResult ScoreRegion::verify() const {
  for (AffineMap map : captureMaps)
    if (laneDim == 0 && findWordOfKey(map))
      return op->emitOpError() << "expected no packed mask with queries in rows, got a capture at "
                               << AffineMapAttr::get(map);
  for (const KeptSet &set : kept) {
    unsigned numDims = set.pairs.getNumDims(), numSymbols = set.pairs.getNumSymbols();
    for (AffineExpr expr : set.pairs.getConstraints()) {
      SmallVector<AffineExpr> variables = {
          getAffineDimExpr(coordinateOf(laneDim, numDims), expr.getContext())};
      for (unsigned i = 0; i < numSymbols; ++i)
        if (captureMaps[set.symbols[i]].isFunctionOfDim(laneDim))
          variables.push_back(getAffineSymbolExpr(i, expr.getContext()));
      for (AffineExpr variable : variables)
        if (!slopeOf(expr, variable, numDims, numSymbols))
          return op->emitOpError()
                 << "expected a mask that is linear in the values that vary within a vector, got "
                 << IntegerSetAttr::get(set.pairs);
    }
  }
  return success();
}

Exponents ScoreRegion::createExponents(OpBuilder &builder, Value max, CpuAttr cpu) const {
  return Exponents(builder, op->getLoc(), max, unit * llvm::numbers::log2e, cpu);
}

Value ScoreRegion::createCapture(OpBuilder &builder, unsigned capture, Value other,
                                 const Lanes &lanes) const {
  Location loc = op->getLoc();
  Value buffer = captures[capture];
  AffineMap map = captureMaps[capture];
  auto type = cast<MemRefType>(buffer.getType());
  if (findWordOfKey(map)) {
    // Take the bit of key `other` from the word of each query.
    Value key = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), other);
    auto constant = [&](int64_t value) {
      return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
    };
    Value bit =
        arith::ShLIOp::create(builder, loc, constant(1),
                              arith::RemUIOp::create(builder, loc, key, constant(kKeysPerWord)));
    Value row = arith::DivUIOp::create(builder, loc, other,
                                       arith::ConstantIndexOp::create(builder, loc, kKeysPerWord));
    Value words = lanes.load(builder, loc, buffer, {row, lanes.offset});
    Value bits =
        arith::AndIOp::create(builder, loc, words, toVector(builder, loc, bit, lanes.count));
    return createDenseTest(builder, loc, bits, Polarity::Nonzero);
  }
  auto indicesAt = [&](Value lane) {
    return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
      return findLoop(expr) == laneDim ? lane : other;
    });
  };
  if (!map.isFunctionOfDim(laneDim))
    return memref::LoadOp::create(builder, loc, buffer, indicesAt(lanes.offset));
  // A load of a vector of i1 would read packed bits, but a buffer of i1 has a byte for each element. So load bytes one
  // by one.
  bool isBoolean = type.getElementType().isInteger(1);
  AffineExpr ofLanes = getAffineDimExpr(laneDim, map.getContext());
  if (map.getResults().back() == ofLanes && isRowContiguous(type) && !isBoolean)
    return lanes.load(builder, loc, buffer, indicesAt(lanes.offset));
  // Lanes beyond the end load the last element again, because no element follows it.
  Value last;
  if (lanes.mask) {
    unsigned dim = *map.getResultPosition(ofLanes);
    Value size = memref::DimOp::create(builder, loc, buffer, dim);
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    last = arith::SubIOp::create(builder, loc, size, one);
  }
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    Value index = arith::AddIOp::create(builder, loc, lanes.offset,
                                        arith::ConstantIndexOp::create(builder, loc, lane));
    if (last)
      index = arith::MinSIOp::create(builder, loc, index, last);
    Value element = memref::LoadOp::create(builder, loc, buffer, indicesAt(index));
    if (isBoolean)
      element = arith::ExtUIOp::create(builder, loc, builder.getI8Type(), element);
    elements.push_back(element);
  }
  VectorType vectorType = lanes.vectorOf(elements.front().getType());
  Value result = vector::FromElementsOp::create(builder, loc, vectorType, elements);
  return isBoolean ? createDenseTest(builder, loc, result, Polarity::Nonzero) : result;
}

ScoreRegion::Span ScoreRegion::createSpan(OpBuilder &builder, const Lanes &lanes) const {
  Location loc = op->getLoc();
  Span span{lanes, {}, {}};
  span.index = arith::AddIOp::create(builder, loc, originOfLanes(), lanes.offset);
  for (unsigned i = 0; i < captures.size(); ++i)
    span.captures.push_back(captureMaps[i].isFunctionOfDim(1 - laneDim)
                                ? Value()
                                : createCapture(builder, i, /*other=*/{}, lanes));
  return span;
}

Value ScoreRegion::createRegion(OpBuilder &builder, Value score, Value other, ValueRange elements,
                                const Span &span) const {
  Location loc = op->getLoc();
  Block &block = region.front();
  int64_t lanes = span.lanes.count;
  IRMapping mapping;
  Value lane = vector::StepOp::create(builder, loc, span.lanes.vectorOf(builder.getIndexType()));
  Value ofLanes = createBinary<arith::AddIOp>(builder, loc, span.index, lane, lanes);
  SmallVector<Value> arguments = coordinates(ofLanes, other);
  arguments.push_back(score);
  llvm::append_range(arguments, elements);
  mapping.map(block.getArguments(), arguments);
  for (Operation &inner : block.without_terminator()) {
    bool anyVector = llvm::any_of(inner.getOperands(),
                                  [&](Value v) { return isVector(mapping.lookupOrDefault(v)); });
    if (anyVector)
      for (Value operand : inner.getOperands())
        mapping.map(operand, toVector(builder, loc, mapping.lookupOrDefault(operand), lanes));
    Operation *clone = builder.clone(inner, mapping);
    if (anyVector)
      for (Value result : clone->getResults())
        result.setType(VectorType::get(lanes, result.getType()));
  }
  Value yielded = cast<YieldOp>(block.getTerminator()).getValue();
  return toVector(builder, loc, mapping.lookupOrDefault(yielded), lanes);
}

Value ScoreRegion::createConstraint(OpBuilder &builder, const KeptSet &set, unsigned constraint,
                                    Value other, ValueRange elements, const Span &span) const {
  Location loc = op->getLoc();
  int64_t lanes = span.lanes.count;
  unsigned numDims = set.pairs.getNumDims(), numSymbols = set.pairs.getNumSymbols();
  AffineExpr expr = set.pairs.getConstraint(constraint);
  auto predicate =
      set.pairs.isEq(constraint) ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge;

  // `base` is the value at lane 0, with 0 for the symbols that vary with the lane. `varying` is the sum
  // of the terms of those symbols.
  SmallVector<Value> dims = coordinates(span.index, other), symbols;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0), varying;
  for (unsigned i = 0; i < numSymbols; ++i) {
    Value symbol = toIndex(builder, loc, elements[set.symbols[i]]);
    symbols.push_back(isVector(symbol) ? zero : symbol);
    if (!isVector(symbol))
      continue;
    int64_t slope = *slopeOf(expr, getAffineSymbolExpr(i, expr.getContext()), numDims, numSymbols);
    Value factor = arith::ConstantIndexOp::create(builder, loc, slope);
    Value term = createBinary<arith::MulIOp>(builder, loc, symbol, factor, lanes);
    varying = varying ? arith::AddIOp::create(builder, loc, varying, term).getResult() : term;
  }
  Value base = affine::expandAffineExpr(builder, loc, expr, dims, symbols);
  int64_t slope =
      *slopeOf(expr, getAffineDimExpr(coordinateOf(laneDim, numDims), expr.getContext()), numDims,
               numSymbols);
  if (slope == 0 && !varying)
    return arith::CmpIOp::create(builder, loc, predicate, base, zero);

  // Lane i holds base + i * slope. Without varying symbols, clamping the base to the range that i * slope can reach
  // does not change the result. The clamped base fits in 32 bits for any sequence length.
  Value bound = arith::SubIOp::create(builder, loc, zero, base);
  Type element = builder.getIndexType();
  if (!varying) {
    int64_t reach = std::abs(slope) * lanes;
    bound = arith::MaxSIOp::create(builder, loc, bound,
                                   arith::ConstantIndexOp::create(builder, loc, -reach));
    bound = arith::MinSIOp::create(builder, loc, bound,
                                   arith::ConstantIndexOp::create(builder, loc, reach));
    element = builder.getI32Type();
    bound = arith::IndexCastOp::create(builder, loc, element, bound);
  }
  VectorType type = span.lanes.vectorOf(element);
  unsigned width = element.isIndex() ? 64 : 32;
  auto perLane = llvm::map_to_vector(llvm::seq<int64_t>(0, lanes), [&](int64_t i) {
    return APInt(width, i * slope, /*isSigned=*/true);
  });
  Value value = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, perLane));
  if (varying)
    value = arith::AddIOp::create(builder, loc, value, varying);
  return arith::CmpIOp::create(builder, loc, predicate, value,
                               toVector(builder, loc, bound, lanes));
}

Value ScoreRegion::createKept(OpBuilder &builder, Value other, ValueRange elements,
                              const Span &span) const {
  Location loc = op->getLoc();
  int64_t lanes = span.lanes.count;
  SmallVector<Value> alternatives;
  for (const KeptSet &set : kept) {
    SmallVector<Value> tests;
    for (unsigned i = 0; i < set.pairs.getNumConstraints(); ++i)
      if (set.pairs.getConstraint(i) !=
          getAffineConstantExpr(0, builder.getContext())) // always holds
        tests.push_back(createConstraint(builder, set, i, other, elements, span));
    for (DenseTest test : set.tests)
      tests.push_back(createDenseTest(builder, loc, elements[test.capture], test.keeps));
    if (tests.empty())
      return {};
    alternatives.push_back(reduceTree(tests, [&](Value a, Value b) {
      return createBinary<arith::AndIOp>(builder, loc, a, b, lanes);
    }));
  }
  Value any = reduceTree(alternatives, [&](Value a, Value b) {
    return createBinary<arith::OrIOp>(builder, loc, a, b, lanes);
  });
  return toVector(builder, loc, any, lanes);
}

Value ScoreRegion::createScores(OpBuilder &builder, Value products, Value other,
                                const Span &span) const {
  Location loc = op->getLoc();
  Type type = products.getType();
  Value scores = products;
  if (!isRaw() && scale != 1)
    scores = arith::MulFOp::create(builder, loc, scores, floatConstant(builder, loc, type, scale));
  if (!canHide())
    return scores;
  SmallVector<Value> elements(span.captures);
  for (auto [i, element] : llvm::enumerate(elements))
    if (!element)
      element = createCapture(builder, i, other, span.lanes);
  Value position = arith::AddIOp::create(builder, loc, originOfOther(), other);
  if (!region.empty())
    scores = createRegion(builder, scores, position, elements, span);
  if (Value isKept = kept.empty() ? Value() : createKept(builder, position, elements, span)) {
    Value hidden = floatConstant(builder, loc, type, -std::numeric_limits<double>::infinity());
    scores = arith::SelectOp::create(builder, loc, isKept, scores, hidden);
  }
  return scores;
}
