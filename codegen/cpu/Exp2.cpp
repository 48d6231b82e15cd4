//===- Exp2.cpp - powers of two and e without a library --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// 2^x = 2^n 2^r with n the integer nearest to x and r = x - n in [-1/2, 1/2]. Adding 1.5 * 2^23 to x rounds it: the sum
// has no bits for a fraction, and its low bits are n. 2^r is approximated by a polynomial p with p(0) = 1, so that 2^0
// is exactly 1. The result is p multiplied by 2^n: adding n to the exponent bits instead would turn NaN into a number.
// On CPUs that can scale by a power of two, this multiplication is one instruction instead of two, and another
// instruction computes r. On these CPUs, n is the floor of x, and r lies in [0, 1).
//
// The relative error of the power, from the polynomial and all roundings, is at most 1.7e-7 for r in [-1/2, 1/2], and
// 1.6e-7 for r in [0, 1). The coefficients minimise the error of the polynomial alone, which is at most 9.1e-8 in the
// first case and 8.3e-8 in the second.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Exp2.h"

#include "codegen/cpu/Instructions.h"
#include "codegen/cpu/Lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

static constexpr double kRound = 12582912.0; // 1.5 * 2^23
static constexpr int64_t kMantissaBits = 23;
static constexpr int64_t kExponentBias = 127;
static constexpr double kPolynomial[] = {1.326472731e-03, 9.671512991e-03, 5.550733581e-02,
                                         2.402224988e-01, 6.931470037e-01, 1.0};
static constexpr double kFromZero[] = {1.867130108e-03, 9.017030226e-03, 5.579991319e-02,
                                       2.401644501e-01, 6.931513118e-01, 1.0};

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
  Value negate(Value x) { return arith::NegFOp::create(builder, loc, x); }
  Value fma(Value a, Value b, Value c) { return createMultiplyAdd(builder, loc, a, b, c); }
  /// A multiply-add that is always rounded only once. LLVM may fold a vector.fma of constants with two roundings.
  Value fused(Value a, Value b, Value c) { return LLVM::FMAOp::create(builder, loc, a, b, c); }

  // NaN stays NaN. Because `bound` is neither NaN nor 0, each of these is one instruction.
  Value atLeast(Value x, double bound) {
    return arith::MaximumFOp::create(builder, loc, x, constant(bound));
  }
  Value atMost(Value x, double bound) {
    return arith::MinimumFOp::create(builder, loc, x, constant(bound));
  }
  Value clamp(Value x, double least, double greatest) {
    return atMost(atLeast(x, least), greatest);
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

  /// p * 2^n for n from -252 to 254. Multiplies in two steps, because 2^n alone may be out of range
  /// even if the product is not.
  Value scale(Value p, Value n) {
    Value half = arith::ShRSIOp::create(builder, loc, n, integer(1));
    Value rest = arith::SubIOp::create(builder, loc, n, half);
    for (Value part : {half, rest})
      p = mul(p, powerOfBiased(arith::AddIOp::create(builder, loc, part, integer(kExponentBias))));
    return p;
  }
};
} // namespace

/// The smallest max * factor that counts as large. The rounding error of smaller values is at most 2^-13.
static constexpr double kLarge = 1 << 12;

Exponents::Exponents(OpBuilder &builder, Location loc, Value max, double scale, CpuAttr cpu)
    : loc(loc), isFused(cpu.can(CpuCapabilities::FMA)) {
  FloatBuilder f(builder, loc, max.getType());
  factor = f.constant(scale);
  if (!isFused) {
    isLarge = createIsEqual(builder, loc, max, -std::numeric_limits<double>::infinity());
    subtracted = max;
    return;
  }
  Value size = math::AbsFOp::create(builder, loc, max), zero = f.constant(0);
  isLarge = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UGE, size,
                                  f.constant(kLarge / scale));
  offset = f.mul(max, f.constant(-scale));
  subtracted = arith::SelectOp::create(builder, loc, isLarge, max, zero);
  added = arith::SelectOp::create(builder, loc, isLarge, zero, offset);
}

Value Exponents::of(OpBuilder &builder, Value score) const {
  FloatBuilder f(builder, loc, score.getType());
  Value difference = f.sub(score, subtracted);
  return isFused ? f.fused(difference, factor, added) : f.mul(difference, factor);
}

Value Exponents::ofModerate(OpBuilder &builder, Value score) const {
  FloatBuilder f(builder, loc, score.getType());
  return isFused ? f.fused(score, factor, offset) : of(builder, score);
}

Value Exponents::changeTo(OpBuilder &builder, const Exponents &next) const {
  FloatBuilder f(builder, loc, subtracted.getType());
  Value difference = f.sub(subtracted, next.subtracted);
  return isFused ? f.fused(difference, factor, f.sub(next.added, added))
                 : f.mul(difference, factor);
}

int64_t attn::exponentialsInFlight(CpuAttr cpu) { return std::max(1u, cpu.getRegisters() / 8); }

Value attn::createMultiplyAdd(OpBuilder &builder, Location loc, Value a, Value b, Value c) {
  if (isa<VectorType>(a.getType()))
    return vector::FMAOp::create(builder, loc, a, b, c);
  return arith::AddFOp::create(builder, loc, arith::MulFOp::create(builder, loc, a, b), c);
}

/// Evaluates the polynomial with these coefficients, the highest power first, at each of `rs`.
static SmallVector<Value> createPolynomial(FloatBuilder &f, ArrayRef<Value> rs,
                                           ArrayRef<double> coefficients) {
  SmallVector<Value> ps(rs.size(), f.constant(coefficients.front()));
  for (double coefficient : coefficients.drop_front()) {
    Value c = f.constant(coefficient);
    for (auto [p, r] : llvm::zip_equal(ps, rs))
      p = f.fma(p, r, c);
  }
  return ps;
}

/// 2^x with the instructions createFraction() and createScale().
static SmallVector<Value> createExp2ByScaling(FloatBuilder &f, ArrayRef<Value> xs) {
  auto rs = llvm::map_to_vector(xs, [&](Value x) { return createFraction(f.builder, f.loc, x); });
  SmallVector<Value> ps = createPolynomial(f, rs, kFromZero);
  for (auto [p, x] : llvm::zip_equal(ps, xs))
    p = createScale(f.builder, f.loc, p, x);
  return ps;
}

/// 2^x by an addition that rounds x.
static SmallVector<Value> createExp2ByRounding(FloatBuilder &f, ArrayRef<Value> xs) {
  // The rounding constant includes the exponent bias, so that the low bits of the sum are the biased exponent.
  Value round = f.constant(kRound + kExponentBias);
  SmallVector<Value> sums, rs;
  for (Value x : xs) {
    sums.push_back(f.add(x, round));
    rs.push_back(f.sub(x, f.sub(sums.back(), round)));
  }
  SmallVector<Value> ps = createPolynomial(f, rs, kPolynomial);
  for (auto [p, sum] : llvm::zip_equal(ps, sums))
    p = f.mul(p, f.powerOfBiased(f.bits(sum)));
  return ps;
}

SmallVector<Value> attn::createExp2(OpBuilder &builder, Location loc, ArrayRef<Value> xs,
                                    CpuAttr cpu, Underflow underflow, Overflow overflow) {
  FloatBuilder f(builder, loc, xs.front().getType());
  bool scales = canScale(cpu, f.type);
  SmallVector<Value> clamped(xs), areSmall;
  for (Value &x : clamped) {
    constexpr double kLeast = AttnDialect::kLeastProbabilityExponent;
    if (underflow == Underflow::Live)
      x = f.atLeast(x, kLeast);
    else
      areSmall.push_back(
          arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, x, f.constant(kLeast)));
    // -127 is one less than the least exponent of a normal number. With it, the low bits of the sum in
    // createExp2ByRounding() are 0, and so is the power.
    if (underflow == Underflow::Zero && !scales)
      x = arith::SelectOp::create(builder, loc, areSmall.back(), f.constant(-kExponentBias), x);
    if (overflow == Overflow::Large && !scales)
      x = f.atMost(x, 100);
  }
  SmallVector<Value> ps =
      scales ? createExp2ByScaling(f, clamped) : createExp2ByRounding(f, clamped);
  if (underflow == Underflow::Zero && scales)
    for (auto [p, isSmall] : llvm::zip_equal(ps, areSmall))
      p = arith::SelectOp::create(builder, loc, isSmall, f.constant(0), p);
  return ps;
}

Value attn::createFullExp2(OpBuilder &builder, Location loc, Value x) {
  FloatBuilder f(builder, loc, x.getType());
  // Beyond these bounds the result is 0 or infinity.
  x = f.clamp(x, -151.0, 129.0);
  Value round = f.constant(kRound);
  Value sum = f.add(x, round);
  Value p = createPolynomial(f, f.sub(x, f.sub(sum, round)), kPolynomial).front();
  return f.scale(p, arith::SubIOp::create(builder, loc, f.bits(sum), f.bits(round)));
}

Value attn::createFullExp(OpBuilder &builder, Location loc, Value x) {
  FloatBuilder f(builder, loc, x.getType());
  x = f.clamp(x, -105.0, 90.0);
  Value round = f.constant(kRound), log2e = f.constant(llvm::numbers::log2e);
  Value sum = f.fma(x, log2e, round);
  Value n = f.sub(sum, round);
  // Subtract n ln 2 in two steps: the first part of ln 2 has 9 bits, so that its product with n is
  // exact even without fma.
  Value r = f.fma(n, f.constant(-0.693359375), x);
  r = f.fma(n, f.constant(2.12194440054690581e-4), r);
  Value p = createPolynomial(f, f.mul(r, log2e), kPolynomial).front();
  return f.scale(p, arith::SubIOp::create(builder, loc, f.bits(sum), f.bits(round)));
}
