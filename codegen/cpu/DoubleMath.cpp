//===- DoubleMath.cpp - functions of f32 computed in f64 -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/DoubleMath.h"

#include "codegen/cpu/Lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// 1.5 * 2^52. The sum of x and this constant has no bits for a fraction; its low bits are the integer nearest to x.
static constexpr double kRound = 6755399441055744.0;

namespace {
/// Arithmetic in f64 on as many elements as an f32 operand has.
struct Doubles {
  OpBuilder &builder;
  Location loc;
  Type narrow, wide, bits;

  Doubles(OpBuilder &builder, Location loc, Type type)
      : builder(builder), loc(loc), narrow(type), wide(builder.getF64Type()),
        bits(builder.getI64Type()) {
    if (auto vector = dyn_cast<VectorType>(type)) {
      wide = vector.clone(wide);
      bits = vector.clone(bits);
    }
  }

  Value extend(Value x) { return arith::ExtFOp::create(builder, loc, wide, x); }
  Value round(Value x) { return arith::TruncFOp::create(builder, loc, narrow, x); }
  Value constant(double value) { return floatConstant(builder, loc, wide, value); }
  Value integer(int64_t value) {
    TypedAttr attribute = builder.getI64IntegerAttr(value);
    if (auto vector = dyn_cast<VectorType>(bits))
      attribute = DenseElementsAttr::get(vector, cast<Attribute>(attribute));
    return arith::ConstantOp::create(builder, loc, attribute);
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(builder, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(builder, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(builder, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(builder, loc, x, y); }
  Value abs(Value x) { return math::AbsFOp::create(builder, loc, x); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(builder, loc, condition, x, y);
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(builder, loc, x, y); }
  Value no(Value condition) {
    TypedAttr yes = builder.getBoolAttr(true);
    if (auto vector = dyn_cast<VectorType>(condition.getType()))
      yes = DenseElementsAttr::get(vector, cast<Attribute>(yes));
    return arith::XOrIOp::create(builder, loc, condition,
                                 arith::ConstantOp::create(builder, loc, yes));
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(builder, loc, predicate, x, y);
  }
  Value is(Value x, double y) { return compare(arith::CmpFPredicate::OEQ, x, constant(y)); }
  Value isLess(Value x, double y) { return compare(arith::CmpFPredicate::OLT, x, constant(y)); }
  Value isNaN(Value x) { return compare(arith::CmpFPredicate::UNO, x, x); }
  Value clamp(Value x, double least, double greatest) {
    x = arith::MaximumFOp::create(builder, loc, x, constant(least));
    return arith::MinimumFOp::create(builder, loc, x, constant(greatest));
  }
  Value toBits(Value x) { return arith::BitcastOp::create(builder, loc, bits, x); }
  Value toDouble(Value x) { return arith::BitcastOp::create(builder, loc, wide, x); }
  template <typename OpTy> Value with(Value x, int64_t y) {
    return OpTy::create(builder, loc, x, integer(y));
  }

  /// The sum of coefficients times powers of x, the highest power first.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value p = constant(coefficients.front());
    for (double c : coefficients.drop_front())
      p = add(mul(p, x), constant(c));
    return p;
  }

  /// log2 of positive numbers that are normal in f64, as all positive finite numbers of f32 are. With x = 2^e m and m
  /// from sqrt(1/2) to sqrt(2), log(m) = 2 atanh(s) = 2 (s + s^3/3 + ...) where s = (m - 1) / (m + 1).
  Value log2(Value x) {
    static constexpr int64_t kMantissa = 52, kHalf = 0x3FE6A09E667F3BCD; // sqrt(1/2)
    Value shifted = with<arith::SubIOp>(toBits(x), kHalf);
    Value exponent = with<arith::ShRSIOp>(shifted, kMantissa);
    Value m = toDouble(arith::SubIOp::create(builder, loc, toBits(x),
                                             with<arith::ShLIOp>(exponent, kMantissa)));
    // Convert the exponent to f64: its sum with 1.5 * 2^52 has the integer in the low bits.
    Value e = sub(toDouble(arith::AddIOp::create(builder, loc, exponent, toBits(constant(kRound)))),
                  constant(kRound));
    Value s = div(sub(m, constant(1)), add(m, constant(1))), square = mul(s, s);
    Value series = polynomial(square, {1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7,
                                       1.0 / 5, 1.0 / 3, 1.0});
    return add(e, mul(mul(s, series), constant(2 * llvm::numbers::log2e)));
  }

  /// 2^x for |x| up to 1000, by the series of e^(r log 2), where r is x minus the nearest integer.
  Value exp2(Value x) {
    Value sum = add(x, constant(kRound));
    Value r = mul(sub(x, sub(sum, constant(kRound))), constant(llvm::numbers::ln2));
    static constexpr double kSeries[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                         1.0 / 362880,    1.0 / 40320,    1.0 / 5040,
                                         1.0 / 720,       1.0 / 120,      1.0 / 24,
                                         1.0 / 6,         1.0 / 2,        1.0,
                                         1.0};
    Value biased = with<arith::AddIOp>(toBits(sum), 1023);
    return mul(polynomial(r, kSeries), toDouble(with<arith::ShLIOp>(biased, 52)));
  }

  /// `result` for positive finite numbers; otherwise the value of a logarithm at 0, infinity, a negative number or NaN.
  Value logarithm(Value x, Value result) {
    result = select(is(x, kInfinity), x, result);
    result = select(is(x, 0), constant(-kInfinity), result);
    Value isNumber = compare(arith::CmpFPredicate::OGE, x, constant(0));
    return select(isNumber, result, constant(kNaN));
  }
};

/// The sine and the cosine of r, and an integer whose low bits are those of k, where x = k pi/2 + r. `isKnown` is false
/// if x is too large to be reduced.
struct Angle {
  Value sine, cosine, quadrant, isKnown;
};
} // namespace

Value attn::createLog2(OpBuilder &builder, Location loc, Value x) {
  Doubles d(builder, loc, x.getType());
  Value wide = d.extend(x);
  return d.round(d.logarithm(wide, d.log2(wide)));
}

Value attn::createLog(OpBuilder &builder, Location loc, Value x) {
  Doubles d(builder, loc, x.getType());
  Value wide = d.extend(x);
  return d.round(d.logarithm(wide, d.mul(d.log2(wide), d.constant(llvm::numbers::ln2))));
}

/// log(1 + x). Near 0, where the sum 1 + x would lose bits of x, the result is x - x^2/2 + x^3/3.
Value attn::createLog1p(OpBuilder &builder, Location loc, Value x) {
  Doubles d(builder, loc, x.getType());
  Value wide = d.extend(x), sum = d.add(wide, d.constant(1));
  Value far = d.logarithm(sum, d.mul(d.log2(sum), d.constant(llvm::numbers::ln2)));
  Value near = d.mul(wide, d.polynomial(wide, {1.0 / 3, -1.0 / 2, 1.0}));
  return d.round(d.select(d.isLess(d.abs(wide), 0x1p-12), near, far));
}

/// e^x - 1, computed by its series near 0.
Value attn::createExpM1(OpBuilder &builder, Location loc, Value x) {
  Doubles d(builder, loc, x.getType());
  Value wide = d.extend(x);
  Value exponent = d.clamp(d.mul(wide, d.constant(llvm::numbers::log2e)), -1000, 1000);
  Value far = d.sub(d.exp2(exponent), d.constant(1));
  Value near = d.mul(wide, d.polynomial(wide, {1.0 / 24, 1.0 / 6, 1.0 / 2, 1.0}));
  return d.round(d.select(d.isLess(d.abs(wide), 0x1p-12), near, far));
}

/// |x|^y = 2^(y log2 |x|), negative for odd powers of negative numbers.
Value attn::createPow(OpBuilder &builder, Location loc, Value x, Value y) {
  Doubles d(builder, loc, x.getType());
  Value base = d.extend(x), power = d.extend(y), size = d.abs(base);
  Value zero = d.constant(0), one = d.constant(1), infinity = d.constant(kInfinity);
  Value isFalling = d.isLess(power, 0);
  Value result = d.exp2(d.clamp(d.mul(power, d.log2(size)), -1000, 1000));
  result = d.select(d.is(size, 1), one, result);
  result = d.select(d.is(size, 0), d.select(isFalling, infinity, zero), result);
  result = d.select(d.is(size, kInfinity), d.select(isFalling, zero, infinity), result);

  // Numbers of 2^53 and more are even integers. Smaller numbers are rounded to an integer by adding 2^52.
  auto rounded = [&](Value v) { return d.sub(d.add(v, d.constant(0x1p52)), d.constant(0x1p52)); };
  auto isWhole = [&](Value v) {
    Value isLarge = d.compare(arith::CmpFPredicate::OGE, v, d.constant(0x1p52));
    Value isEqual = d.compare(arith::CmpFPredicate::OEQ, rounded(v), v);
    return Value(arith::OrIOp::create(builder, loc, isLarge, isEqual));
  };
  Value magnitude = d.abs(power), half = d.mul(magnitude, d.constant(0.5));
  Value isInteger = isWhole(magnitude), isEven = isWhole(half);
  // Test the sign bit instead of comparing with 0, because -0 to an odd power is -0.
  Value isNegative = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, d.toBits(base),
                                           d.integer(0));
  Value isNegativeNumber = d.both(d.isLess(base, 0), d.isLess(size, kInfinity));
  Value minus = arith::NegFOp::create(builder, loc, result);
  Value isOdd = d.both(isInteger, d.no(isEven));
  result = d.select(d.both(isNegative, isOdd), minus, result);
  result = d.select(isNegativeNumber, d.select(isInteger, result, d.constant(kNaN)), result);
  Value isUnknown = arith::OrIOp::create(builder, loc, d.isNaN(base), d.isNaN(power));
  result = d.select(isUnknown, d.constant(kNaN), result);
  Value isOne = arith::OrIOp::create(builder, loc, d.is(base, 1), d.is(power, 0));
  return d.round(d.select(isOne, one, result));
}

/// x = k pi/2 + r with |r| up to pi/4. pi/2 is split into parts: the first two have at most 23 bits, so that their
/// products with k, which has up to 30 bits, are exact.
static Angle createAngle(Doubles &d, Value x) {
  static constexpr double kParts[] = {0x1.921fb4p+0, 0x1.4442dp-24, 0x1.8469898cc5170p-48};
  Value isKnown = d.compare(arith::CmpFPredicate::OLE, d.abs(x), d.constant(0x1p30));
  Value sum = d.add(d.mul(x, d.constant(llvm::numbers::inv_pi * 2)), d.constant(kRound));
  Value k = d.sub(sum, d.constant(kRound)), r = x;
  for (double part : kParts)
    r = d.sub(r, d.mul(k, d.constant(part)));
  Value square = d.mul(r, r);
  Value sine = d.mul(r, d.polynomial(square, {-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120,
                                              -1.0 / 6, 1.0}));
  Value cosine = d.polynomial(square, {1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720,
                                       1.0 / 24, -1.0 / 2, 1.0});
  return {sine, cosine, d.toBits(sum), isKnown};
}

/// sin(x + shift pi/2). With x = m pi/2 + r and k = m + shift, this is the sine of r if k is even and the cosine of r
/// if k is odd, negated if k mod 4 is 2 or 3.
static Value createWave(OpBuilder &builder, Location loc, Value x, int64_t shift) {
  Doubles d(builder, loc, x.getType());
  Angle angle = createAngle(d, d.extend(x));
  Value k = d.with<arith::AddIOp>(angle.quadrant, shift);
  auto hasBit = [&](int64_t bit) {
    return Value(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                       d.with<arith::AndIOp>(k, bit), d.integer(0)));
  };
  Value result = d.select(hasBit(1), angle.cosine, angle.sine);
  result = d.select(hasBit(2), arith::NegFOp::create(builder, loc, result), result);
  // The sine of -0 is -0.
  if (shift == 0)
    result = d.select(d.is(d.extend(x), 0), d.extend(x), result);
  return d.round(d.select(angle.isKnown, result, d.constant(kNaN)));
}

Value attn::createSin(OpBuilder &builder, Location loc, Value x) {
  return createWave(builder, loc, x, 0);
}

Value attn::createCos(OpBuilder &builder, Location loc, Value x) {
  return createWave(builder, loc, x, 1);
}

bool attn::isComputedInDouble(Operation *op) {
  return isa<math::LogOp, math::Log2Op, math::Log1pOp, math::ExpM1Op, math::SinOp, math::CosOp,
             math::PowFOp>(op);
}
