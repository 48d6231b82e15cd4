//===- Masks.cpp - the pairs each mask keeps -------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Each mask has a function kept(), which states its sets over (batch..., q, k). The compiler derives loop bounds, tests
// and proofs from these sets.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

#include "dialect/MaskInterface.cpp.inc"

/// The set of pairs for which each expression of `constraints`, over q, k and the symbols, is >= 0.
static KeptSet
keptWhere(MLIRContext *context, unsigned numBatch, ArrayRef<unsigned> symbols,
          llvm::function_ref<SmallVector<AffineExpr>(AffineExpr q, AffineExpr k)> constraints) {
  SmallVector<AffineExpr> exprs =
      constraints(getAffineDimExpr(numBatch, context), getAffineDimExpr(numBatch + 1, context));
  SmallVector<bool> isEquality(exprs.size(), false);
  return {IntegerSet::get(numBatch + 2, symbols.size(), exprs, isEquality),
          llvm::to_vector(symbols),
          {}};
}

KeptSet KeptSet::always(MLIRContext *context, unsigned numBatch) {
  return keptWhere(context, numBatch, {}, [&](AffineExpr, AffineExpr) {
    return SmallVector<AffineExpr>{getAffineConstantExpr(0, context)};
  });
}

SmallVector<KeptSet> CausalAttr::kept(unsigned numBatch) const {
  return {keptWhere(getContext(), numBatch, {}, [&](AffineExpr q, AffineExpr k) {
    return SmallVector<AffineExpr>{q + getOffset() - k};
  })};
}

SmallVector<KeptSet> WindowAttr::kept(unsigned numBatch) const {
  return {keptWhere(getContext(), numBatch, {}, [&](AffineExpr q, AffineExpr k) {
    AffineExpr own = q + getOffset();
    return SmallVector<AffineExpr>{k - own + getLeft(), own + getRight() - k};
  })};
}

SmallVector<KeptSet> LengthsAttr::kept(unsigned numBatch) const {
  return {keptWhere(getContext(), numBatch, {getCapture()}, [&](AffineExpr, AffineExpr k) {
    return SmallVector<AffineExpr>{getAffineSymbolExpr(0, getContext()) - 1 - k};
  })};
}

SmallVector<KeptSet> DenseAttr::kept(unsigned numBatch) const {
  KeptSet set = KeptSet::always(getContext(), numBatch);
  set.tests.push_back({getCapture(), getKeeps()});
  return {set};
}

Value attn::createDenseTest(OpBuilder &builder, Location loc, Value element, Polarity keeps) {
  bool nonzero = keeps == Polarity::Nonzero;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element.getType()));
  if (isa<FloatType>(getElementTypeOrSelf(element)))
    return arith::CmpFOp::create(builder, loc,
                                 nonzero ? arith::CmpFPredicate::UNE : arith::CmpFPredicate::OEQ,
                                 element, zero);
  return arith::CmpIOp::create(
      builder, loc, nonzero ? arith::CmpIPredicate::ne : arith::CmpIPredicate::eq, element, zero);
}

Value attn::createKept(OpBuilder &builder, Location loc, MaskInterface mask, ValueRange indices,
                       ValueRange captured) {
  Value kept, zero = arith::ConstantIndexOp::create(builder, loc, 0);
  for (const KeptSet &set : mask.kept(indices.size() - 2)) {
    SmallVector<Value> symbols;
    for (unsigned symbol : set.symbols) {
      Value value = captured[symbol];
      if (!value.getType().isIndex())
        value = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
      symbols.push_back(value);
    }
    Value all;
    auto also = [&](Value condition) {
      all = all ? builder.createOrFold<arith::AndIOp>(loc, all, condition) : condition;
    };
    for (unsigned i = 0; i < set.pairs.getNumConstraints(); ++i) {
      Value value =
          affine::expandAffineExpr(builder, loc, set.pairs.getConstraint(i), indices, symbols);
      auto predicate = set.pairs.isEq(i) ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge;
      also(builder.createOrFold<arith::CmpIOp>(loc, predicate, value, zero));
    }
    for (DenseTest test : set.tests)
      also(createDenseTest(builder, loc, captured[test.capture], test.keeps));
    kept = kept ? arith::OrIOp::create(builder, loc, kept, all).getResult() : all;
  }
  return kept;
}

/// The intersection of two sets. The constraints, symbols and tests of `b` follow those of `a`.
static KeptSet intersect(const KeptSet &a, const KeptSet &b) {
  unsigned numDims = a.pairs.getNumDims(), numSymbols = a.pairs.getNumSymbols();
  SmallVector<AffineExpr> exprs(a.pairs.getConstraints());
  for (AffineExpr expr : b.pairs.getConstraints())
    exprs.push_back(expr.shiftSymbols(b.pairs.getNumSymbols(), numSymbols));
  SmallVector<bool> isEquality(a.pairs.getEqFlags());
  llvm::append_range(isEquality, b.pairs.getEqFlags());
  KeptSet both{IntegerSet::get(numDims, numSymbols + b.pairs.getNumSymbols(), exprs, isEquality),
               a.symbols, a.tests};
  llvm::append_range(both.symbols, b.symbols);
  llvm::append_range(both.tests, b.tests);
  return both;
}

SmallVector<KeptSet> AndAttr::kept(unsigned numBatch) const {
  SmallVector<KeptSet> result = {KeptSet::always(getContext(), numBatch)};
  for (Attribute mask : getMasks()) {
    SmallVector<KeptSet> product;
    for (const KeptSet &a : result)
      for (const KeptSet &b : cast<MaskInterface>(mask).kept(numBatch))
        product.push_back(intersect(a, b));
    result = std::move(product);
  }
  return result;
}

MaskInterface CausalAttr::remap(ArrayRef<unsigned>) const { return *this; }

MaskInterface WindowAttr::remap(ArrayRef<unsigned>) const { return *this; }

MaskInterface LengthsAttr::remap(ArrayRef<unsigned> captures) const {
  return get(getContext(), captures[getCapture()]);
}

MaskInterface DenseAttr::remap(ArrayRef<unsigned> captures) const {
  return get(getContext(), captures[getCapture()], getKeeps());
}

MaskInterface AndAttr::remap(ArrayRef<unsigned> captures) const {
  return get(getContext(), llvm::map_to_vector(getMasks(), [&](Attribute mask) -> Attribute {
               return cast<MaskInterface>(mask).remap(captures);
             }));
}

/// Refuses distances that exceed any number of keys, because sums of such distances and coordinates could overflow.
static LogicalResult verifyDistances(llvm::function_ref<InFlightDiagnostic()> emitError,
                                     ArrayRef<int64_t> distances) {
  constexpr int64_t kLargest = int64_t(1) << 40;
  for (int64_t distance : distances)
    if (distance < -kLargest || distance > kLargest)
      return emitError() << "expected a distance of at most 2^40, got " << distance;
  return success();
}

LogicalResult CausalAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                 int64_t offset) {
  return verifyDistances(emitError, offset);
}

LogicalResult WindowAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t left,
                                 int64_t right, int64_t offset) {
  if (failed(verifyDistances(emitError, {left, right, offset})))
    return failure();
  if (left + right < 0)
    return emitError() << "expected a window of at least one key, got left = " << left
                       << ", right = " << right;
  return success();
}

LogicalResult AndAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                              ArrayRef<Attribute> masks) {
  for (Attribute mask : masks)
    if (!isa<MaskInterface>(mask))
      return emitError() << "expected masks, got " << mask;
  return success();
}
