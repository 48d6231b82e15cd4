//===- Exp2.cpp - powers of two and e without a library --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// 2^x = 2^n 2^r with n the integer nearest to x and r = x - n in [-1/2, 1/2]. Adding 1.5 * 2^23
// rounds: the sum has no bits for a fraction, and its low bits are n. 2^r is a polynomial of degree
// 5 with p(0) = 1, so that 2^0 is exactly 1. Multiplying by 2^n, and not adding n to the exponent,
// keeps NaN. Where the machine has instructions for the first and the last step (vrndscaleps,
// vscalefps), each takes one instead of two and needs no clamp.
//
// Error over [-126, 0] against a double: 2.0 ulp with fused multiply-add, 2.2 without. The
// coefficients minimise the relative error of the polynomial (9.1e-8) by weighted least squares.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Exp2.h"

#include "codegen/cpu/Lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace attn;

static constexpr double kRound = 12582912.0; // 1.5 * 2^23
static constexpr int64_t kMantissaBits = 23;
static constexpr int64_t kExponentBias = 127;
/// Of a clamped exponent, which is a product that may be off by an ulp and must not fall below the
/// least normal number's.
static constexpr double kLeastExponent = 1 - kExponentBias + 0.001;
static constexpr double kPolynomial[] = {1.326472731e-03, 9.671512991e-03, 5.550733581e-02,
                                         2.402224988e-01, 6.931470037e-01, 1.0};

namespace {
/// Builds ops of one type, f32 or a vector of it.
struct FloatBuilder {
  OpBuilder &builder;
  Location loc;
  Type type;

  FloatBuilder(OpBuilder &builder, Location loc, Type type)
      : builder(builder), loc(loc), type(type) {}

  Value constant(double value) { return floatConstant(builder, loc, type, value); }
  Value add(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
  Value fma(Value a, Value b, Value c) { return createMultiplyAdd(builder, loc, a, b, c); }

  /// `bound` where x lies beyond it; NaN stays.
  Value clamp(Value x, arith::CmpFPredicate beyond, double bound) {
    Value limit = constant(bound);
    Value isBeyond = arith::CmpFOp::create(builder, loc, beyond, x, limit);
    return arith::SelectOp::create(builder, loc, isBeyond, limit, x);
  }
  Value clamp(Value x, double least, double greatest) {
    return clamp(clamp(x, arith::CmpFPredicate::OLT, least), arith::CmpFPredicate::OGT, greatest);
  }

  Type integers() {
    Type i32 = builder.getI32Type();
    return isa<VectorType>(type) ? cast<VectorType>(type).clone(i32) : i32;
  }
  Value integer(int64_t value) {
    TypedAttr attribute = builder.getI32IntegerAttr(value);
    if (auto vectorType = dyn_cast<VectorType>(integers()))
      attribute = DenseElementsAttr::get(vectorType, attribute);
    return arith::ConstantOp::create(builder, loc, attribute);
  }
  Value bits(Value x) { return arith::BitcastOp::create(builder, loc, integers(), x); }
  /// The number whose biased exponent is `exponent`, modulo 2^9.
  Value powerOfBiased(Value exponent) {
    Value shifted = arith::ShLIOp::create(builder, loc, exponent, integer(kMantissaBits));
    return arith::BitcastOp::create(builder, loc, type, shifted);
  }

  /// p * 2^n for n from -252 to 254: in two steps, for 2^n alone may be no number although the
  /// product is.
  Value scale(Value p, Value n) {
    Value half = arith::ShRSIOp::create(builder, loc, n, integer(1));
    Value rest = arith::SubIOp::create(builder, loc, n, half);
    for (Value part : {half, rest})
      p = mul(p, powerOfBiased(arith::AddIOp::create(builder, loc, part, integer(kExponentBias))));
    return p;
  }
};
} // namespace

int64_t attn::exponentialsInFlight(TargetAttr target) {
  return std::max(1u, target.getRegisters() / 8);
}

Value attn::createMultiplyAdd(OpBuilder &builder, Location loc, Value a, Value b, Value c) {
  if (isa<VectorType>(a.getType()))
    return vector::FMAOp::create(builder, loc, a, b, c);
  return arith::AddFOp::create(builder, loc, arith::MulFOp::create(builder, loc, a, b), c);
}

/// 2^r of each value in [-1/2, 1/2].
static SmallVector<Value> createPolynomial(FloatBuilder &f, ArrayRef<Value> rs) {
  SmallVector<Value> ps(rs.size(), f.constant(kPolynomial[0]));
  for (double coefficient : ArrayRef(kPolynomial).drop_front()) {
    Value c = f.constant(coefficient);
    for (auto [p, r] : llvm::zip_equal(ps, rs))
      p = f.fma(p, r, c);
  }
  return ps;
}

/// With instructions that round and that scale by a power of two.
static SmallVector<Value> createExp2ByScaling(FloatBuilder &f, ArrayRef<Value> xs, double factor,
                                              Underflow underflow) {
  OpBuilder &b = f.builder;
  auto constant = [&](TypedAttr value) { return arith::ConstantOp::create(b, f.loc, value); };
  Value every = constant(b.getI16IntegerAttr(-1));
  Value toInteger = constant(b.getI32IntegerAttr(0)), mode = constant(b.getI32IntegerAttr(4));
  // Operands in the order of the intrinsics, which is not that of their names: value, by what, value
  // where the mask is off, mask.
  SmallVector<Value> rs, ns;
  for (Value x : xs) {
    if (static_cast<float>(factor) != 1)
      x = f.mul(x, f.constant(factor));
    // Of -inf, too, the power is to be a number; that of -200 is 0.
    if (underflow != Underflow::Small)
      x = f.clamp(x, arith::CmpFPredicate::OLT,
                  underflow == Underflow::Clamp ? kLeastExponent : -200);
    rs.push_back(x);
    ns.push_back(x86vector::MaskRndScaleOp::create(b, f.loc, f.type, x, toInteger, x, every, mode));
  }
  for (auto [r, n] : llvm::zip_equal(rs, ns))
    r = f.sub(r, n);
  SmallVector<Value> ps = createPolynomial(f, rs);
  for (auto [p, n] : llvm::zip_equal(ps, ns))
    p = x86vector::MaskScaleFOp::create(b, f.loc, f.type, p, n, p, every, mode);
  return ps;
}

SmallVector<Value> attn::createExp2(OpBuilder &builder, Location loc, ArrayRef<Value> xs,
                                    double factor, TargetAttr target, Underflow underflow,
                                    Overflow overflow) {
  FloatBuilder f(builder, loc, xs.front().getType());
  if (target.getScalef())
    return createExp2ByScaling(f, xs, factor, underflow);
  // The rounding constant carries the bias of the exponent too, so that the low bits need no
  // addition. One below the least normal exponent they are 0, and so is the power.
  Value round = f.constant(kRound + kExponentBias), c = f.constant(factor);
  double least = underflow == Underflow::Clamp ? kLeastExponent : -kExponentBias;
  SmallVector<Value> rs, sums;
  for (Value x : xs) {
    Value clamped = f.clamp(x, arith::CmpFPredicate::OLT, least / factor);
    if (overflow == Overflow::Large)
      clamped = f.clamp(clamped, arith::CmpFPredicate::OGT, 100 / factor);
    rs.push_back(clamped);
    sums.push_back(f.fma(clamped, c, round));
  }
  for (auto [r, sum] : llvm::zip_equal(rs, sums))
    r = f.fma(r, c, f.sub(round, sum));
  SmallVector<Value> ps = createPolynomial(f, rs);
  for (auto [p, sum] : llvm::zip_equal(ps, sums))
    p = f.mul(p, f.powerOfBiased(f.bits(sum)));
  return ps;
}

Value attn::createFullExp2(OpBuilder &builder, Location loc, Value x) {
  FloatBuilder f(builder, loc, x.getType());
  // Beyond these the result is 0 and infinity.
  x = f.clamp(x, -151.0, 129.0);
  Value round = f.constant(kRound);
  Value sum = f.add(x, round);
  Value p = createPolynomial(f, f.sub(x, f.sub(sum, round))).front();
  return f.scale(p, arith::SubIOp::create(builder, loc, f.bits(sum), f.bits(round)));
}

Value attn::createFullExp(OpBuilder &builder, Location loc, Value x) {
  FloatBuilder f(builder, loc, x.getType());
  x = f.clamp(x, -105.0, 90.0);
  Value round = f.constant(kRound), log2e = f.constant(1.4426950408889634);
  Value sum = f.fma(x, log2e, round);
  Value n = f.sub(sum, round);
  // x - n ln 2 in two steps: the first part of ln 2 has 9 bits, so that its product is exact
  // without fma too.
  Value r = f.fma(n, f.constant(-0.693359375), x);
  r = f.fma(n, f.constant(2.12194440054690581e-4), r);
  Value p = createPolynomial(f, f.mul(r, log2e)).front();
  return f.scale(p, arith::SubIOp::create(builder, loc, f.bits(sum), f.bits(round)));
}
