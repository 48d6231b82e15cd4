//===- Arithmetic.cpp - elementwise aten ops of two or three operands ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace attn::pt2;

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

DType attn::pt2::promote(const Tensor &a, const Tensor &b) {
  auto kind = [](DType dtype) { return isFloat(dtype) ? 2 : dtype == DType::Bool ? 0 : 1; };
  if (a.dtype == b.dtype)
    return a.dtype;
  if (kind(a.dtype) != kind(b.dtype) && (a.rank() == 0) == (b.rank() == 0))
    return kind(a.dtype) > kind(b.dtype) ? a.dtype : b.dtype;
  if ((a.rank() == 0) != (b.rank() == 0)) {
    const Tensor &scalar = a.rank() == 0 ? a : b, &tensor = a.rank() == 0 ? b : a;
    return kind(scalar.dtype) > kind(tensor.dtype) ? scalar.dtype : tensor.dtype;
  }
  if (byteSize(a.dtype) != byteSize(b.dtype))
    return byteSize(a.dtype) > byteSize(b.dtype) ? a.dtype : b.dtype;
  return isFloat(a.dtype) ? DType::F32 : DType::I16; // float16 with bfloat16, int8 with uint8
}

namespace {
/// An operand of an elementwise op: a tensor or a number. A number that is known only when the library is called is a
/// tensor of rank 0.
struct Element {
  Tensor tensor;
  Scalar scalar;
  bool isScalar = false, isNumber = false;

  /// The operand for type promotion, where torch treats a floating-point number as float32.
  Tensor forPromotion() const {
    DType dtype = isNumber && isFloat(tensor.dtype) ? DType::F32 : tensor.dtype;
    return {tensor.value, dtype, tensor.sizes};
  }
};

/// The operands of a binary op, and the type of the computation.
struct Pair {
  Element self, other;
  DType dtype;
  Sizes sizes;
};

/// Computes an element of the result from two elements of the same type.
using Function = std::function<Value(TensorBuilder &, Value, Value)>;
} // namespace

static Element readElement(Call &call, StringRef name) {
  Element element;
  element.isNumber = call.isNumber(name);
  element.isScalar = !call.isTensor(name);
  if (element.isScalar) {
    element.scalar = call.scalar(name);
    element.tensor.dtype = element.scalar.isFloat ? DType::F32
                           : call.isFlag(name)    ? DType::Bool
                                                  : DType::I64;
  } else {
    element.tensor = call.tensor(name);
  }
  return element;
}

static FailureOr<Pair> readPair(Call &call, StringRef self = "self", StringRef other = "other") {
  Pair pair;
  pair.self = readElement(call, self);
  pair.other = readElement(call, other);
  SmallVector<Tensor *> tensors;
  for (Element *element : {&pair.self, &pair.other})
    if (!element->isScalar)
      tensors.push_back(&element->tensor);
  std::optional<Sizes> sizes = call.broadcast(tensors);
  Tensor a = pair.self.forPromotion(), b = pair.other.forPromotion();
  if (!call.failed() && !sizes)
    call.error() << "expected sizes that broadcast, got " << str(a.sizes) << " and "
                 << str(b.sizes);
  if (call.failed())
    return failure();
  pair.sizes = *sizes;
  pair.dtype = promote(a, b);
  // A number is promoted like a tensor of rank 0, but never widens a tensor of rank 0.
  auto keeps = [&](const Element &tensor, const Element &number) {
    return number.isNumber && !tensor.isNumber && tensor.tensor.dtype != DType::Bool &&
           isFloat(tensor.tensor.dtype) == isFloat(pair.dtype);
  };
  if (keeps(pair.self, pair.other))
    pair.dtype = a.dtype;
  else if (keeps(pair.other, pair.self))
    pair.dtype = b.dtype;
  return pair;
}

/// Returns both operands, rounded to the promoted type if this is float16 or bfloat16. Importers of sums, products and
/// quotients do not call this function, because torch does not round a number before these ops.
static Pair rounded(TensorBuilder &b, Pair pair) {
  if (computeType(pair.dtype) == pair.dtype)
    return pair;
  for (Element *element : {&pair.self, &pair.other}) {
    if (!element->isScalar) {
      element->tensor = b.castTo(element->tensor, pair.dtype);
      continue;
    }
    APFloat number(element->scalar.number);
    bool losesInfo;
    number.convert(cast<FloatType>(elementType(pair.dtype, b.getContext())).getFloatSemantics(),
                   APFloat::rmNearestTiesToEven, &losesInfo);
    element->scalar = {true, number.convertToDouble(), 0};
  }
  return pair;
}

/// result = function(self, other) elementwise, with both operands converted to `as`.
static Tensor apply(Call &call, const Pair &pair, DType as, DType dtype, Function function) {
  SmallVector<Operand> operands;
  SmallVector<Value> constants;
  for (const Element *element : {&pair.self, &pair.other}) {
    constants.push_back(element->isScalar ? element->scalar.in(call.b, as) : Value());
    if (!element->isScalar)
      operands.push_back({element->tensor, as});
  }
  return call.b.elementwise(pair.sizes, dtype, operands, [&](ValueRange x) {
    Value self = constants[0] ? constants[0] : x.front();
    Value other = constants[1] ? constants[1] : x.back();
    return function(call.b, self, other);
  });
}

template <typename FloatOp, typename IntOp>
static Value create(TensorBuilder &b, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return FloatOp::create(b, x, y);
  return IntOp::create(b, x, y);
}

/// An op that is computed in the promoted type. `alpha` scales the second operand of a sum.
static auto arithmetic(Function function, bool ofBooleans = false) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Pair> pair = readPair(call);
    Scalar alpha = call.scalar("alpha", 1);
    if (call.failed())
      return failure();
    DType dtype = pair->dtype, as = computeType(dtype);
    if ((dtype == DType::Bool && !ofBooleans) || (alpha.isFloat && !isFloat(dtype)))
      return call.error() << "expected numbers, got " << str(dtype);
    Value factor;
    if (alpha.number != 1)
      factor = alpha.in(call.b, as);
    return call.result(apply(call, *pair, as, dtype, [&](TensorBuilder &b, Value x, Value y) {
      return function(b, x, factor ? create<arith::MulFOp, arith::MulIOp>(b, y, factor) : y);
    }));
  };
}

/// other - self
static LogicalResult subtractFrom(Call &call) {
  if (call.scalar("alpha", 1).number != 1)
    return call.error() << "expected alpha = 1";
  return arithmetic([](TensorBuilder &b, Value x, Value y) {
    return create<arith::SubFOp, arith::SubIOp>(b, y, x);
  })(call);
}

/// An op on signed numbers that is computed in the promoted type.
static auto ofSigned(Function function) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Pair> pair = readPair(call);
    if (call.failed())
      return failure();
    if (!isSigned(pair->dtype))
      return call.error() << "expected signed numbers, got " << str(pair->dtype);
    return call.result(apply(call, *pair, computeType(pair->dtype), pair->dtype, function));
  };
}

/// Allows integers to be divided only by constants other than 0 and by sizes of at least 1. In torch, a division by 0
/// is an error; compiled code would trap.
static LogicalResult checkDivision(Call &call, const Pair &pair) {
  if (isFloat(pair.dtype))
    return success();
  if (isSigned(pair.dtype) && pair.other.isNumber && !pair.other.isScalar) {
    call.requireAtMost(Size(1), call.integer("other"));
    return failure(call.failed());
  }
  if (!isSigned(pair.dtype) || !pair.other.isScalar || pair.other.scalar.integer == 0)
    return call.error() << "expected signed integers to be divided by a number other than 0";
  return success();
}

/// The floor of x / y. If the quotient is rounded up to an integer, floor() gives this integer, which is 1 too large.
/// For example, 1 / 0.1f is 9.99... but rounds to 10. In such a case, the remainder x - 10 * y and y have opposite
/// signs. For x and y in float32, the remainder is exact in float64.
static Value floorOfQuotient(TensorBuilder &b, Value x, Value y) {
  Value floor = math::FloorOp::create(b, arith::DivFOp::create(b, x, y));
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(x.getType()));
  auto constant = [&](double number) -> Value {
    return arith::ConstantOp::create(b, b.getFloatAttr(x.getType(), number));
  };
  Value one = constant(1), infinity = constant(std::numeric_limits<double>::infinity());
  Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, floor, zero);
  auto widen = [&](Value value) -> Value {
    return value.getType().isF64() ? value : arith::ExtFOp::create(b, b.getF64Type(), value);
  };
  Value divisor = widen(y), whole = widen(x);
  Value rest = arith::SubFOp::create(b, whole, arith::MulFOp::create(b, widen(floor), divisor));
  // If the floor is 0, the remainder is x: 0 times an infinite y would give NaN.
  rest = arith::SelectOp::create(b, isZero, whole, rest);
  // If x is infinite and y is not 0, the result is NaN.
  Value isInfinite = arith::AndIOp::create(
      b, arith::CmpFOp::create(b, arith::CmpFPredicate::ONE, y, zero),
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, math::AbsFOp::create(b, x), infinity));
  floor = arith::SelectOp::create(b, isInfinite, arith::SubFOp::create(b, x, x), floor);
  Value isBeyond = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT,
                                         arith::MulFOp::create(b, rest, divisor), widen(zero));
  return arith::SelectOp::create(b, isBeyond, arith::SubFOp::create(b, floor, one), floor);
}

/// The quotient. It is a float or, with a rounding mode, has the promoted type.
static LogicalResult divide(Call &call) {
  FailureOr<Pair> pair = readPair(call);
  std::string mode = call.string("rounding_mode");
  if (call.failed())
    return failure();
  if (mode.empty()) {
    DType dtype = isFloat(pair->dtype) ? pair->dtype : DType::F32;
    return call.result(
        apply(call, *pair, computeType(dtype), dtype,
              [](TensorBuilder &b, Value x, Value y) { return arith::DivFOp::create(b, x, y); }));
  }
  if (mode != "floor" && mode != "trunc")
    return call.error() << "expected rounding mode 'floor' or 'trunc', got '" << mode << "'";
  if (failed(checkDivision(call, *pair)))
    return failure();
  bool isFloor = mode == "floor", isReal = isFloat(pair->dtype);
  return call.result(apply(call, *pair, computeType(pair->dtype), pair->dtype,
                           [&](TensorBuilder &b, Value x, Value y) -> Value {
                             if (!isReal)
                               return isFloor ? Value(arith::FloorDivSIOp::create(b, x, y))
                                              : Value(arith::DivSIOp::create(b, x, y));
                             if (isFloor)
                               return floorOfQuotient(b, x, y);
                             return math::TruncOp::create(b, arith::DivFOp::create(b, x, y));
                           }));
}

static LogicalResult floorDivide(Call &call) {
  FailureOr<Pair> pair = readPair(call);
  if (call.failed())
    return failure();
  if (failed(checkDivision(call, *pair)))
    return failure();
  bool isReal = isFloat(pair->dtype);
  return call.result(apply(call, *pair, computeType(pair->dtype), pair->dtype,
                           [&](TensorBuilder &b, Value x, Value y) -> Value {
                             if (isReal)
                               return floorOfQuotient(b, x, y);
                             return arith::FloorDivSIOp::create(b, x, y);
                           }));
}

/// x - y * trunc(x / y), which has the sign of x. The result is exact. For each divisor 2^252 * y, 2^224 * y, ..., y in
/// turn, the greatest possible multiple of the divisor is subtracted. The quotient of the rest and the divisor is less
/// than 2^28, so float64 can hold the product of this quotient and the 24 significant bits of y.
static Value restOfQuotient(TensorBuilder &b, Value x, Value y) {
  Type type = x.getType(), wide = b.getF64Type();
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getFloatAttr(wide, value));
  };
  auto compare = [&](arith::CmpFPredicate predicate, Value x, Value y) -> Value {
    return arith::CmpFOp::create(b, predicate, x, y);
  };
  if (type != wide) {
    x = arith::ExtFOp::create(b, wide, x);
    y = arith::ExtFOp::create(b, wide, y);
  }
  Value magnitude = math::AbsFOp::create(b, x), divisor = math::AbsFOp::create(b, y);
  Value rest = magnitude;
  for (int exponent = 252; exponent >= 0; exponent -= 28) {
    Value multiple = arith::MulFOp::create(b, divisor, constant(std::ldexp(1.0, exponent)));
    Value count = math::FloorOp::create(b, arith::DivFOp::create(b, rest, multiple));
    Value less = arith::SubFOp::create(b, rest, arith::MulFOp::create(b, count, multiple));
    // If the quotient was rounded up to an integer, one multiple too many was subtracted.
    Value isNegative = compare(arith::CmpFPredicate::OLT, less, constant(0));
    less = arith::SelectOp::create(b, isNegative, arith::AddFOp::create(b, less, multiple), less);
    // If the multiple is infinite, the rest stays as it is, because 0 times infinity would give NaN.
    Value isLess = compare(arith::CmpFPredicate::OLT, rest, multiple);
    rest = arith::SelectOp::create(b, isLess, rest, less);
  }
  rest = math::CopySignOp::create(b, rest, x);
  return type == wide ? rest : Value(arith::TruncFOp::create(b, type, rest));
}

/// The remainder of a division. It has the sign of the dividend or, with `floors`, the sign of the divisor.
static std::function<LogicalResult(Call &)> modulo(bool floors) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Pair> pair = readPair(call);
    if (call.failed())
      return failure();
    if (pair->dtype == DType::F64)
      return call.error() << "expected integers or floats of at most 32 bits, got float64";
    if (failed(checkDivision(call, *pair)))
      return failure();
    DType as = computeType(pair->dtype);
    return call.result(
        apply(call, rounded(call.b, *pair), as, pair->dtype,
              [&](TensorBuilder &b, Value x, Value y) -> Value {
                if (!isFloat(as) && !floors)
                  return arith::RemSIOp::create(b, x, y);
                if (!isFloat(as)) {
                  Value quotient = arith::FloorDivSIOp::create(b, x, y);
                  return arith::SubIOp::create(b, x, arith::MulIOp::create(b, quotient, y));
                }
                Value rest = restOfQuotient(b, x, y);
                if (!floors)
                  return rest;
                Value zero = b.scalar(as, 0.0);
                Value isBelow = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, rest, zero),
                      isNegative = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, y, zero);
                Value isOther = arith::XOrIOp::create(b, isBelow, isNegative);
                Value isSome = arith::CmpFOp::create(b, arith::CmpFPredicate::ONE, rest, zero);
                return arith::SelectOp::create(b, arith::AndIOp::create(b, isOther, isSome),
                                               arith::AddFOp::create(b, rest, y), rest);
              }));
  };
}

/// Bit shifts. In torch, a shift is undefined if the count is negative, or at least the number of bits.
static std::function<LogicalResult(Call &)> shift(bool isLeft) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Pair> pair = readPair(call);
    if (call.failed())
      return failure();
    if (!isSigned(pair->dtype) || isFloat(pair->dtype))
      return call.error() << "expected signed integers, got " << str(pair->dtype);
    int64_t bits = 8 * byteSize(pair->dtype);
    return call.result(apply(
        call, *pair, pair->dtype, pair->dtype, [&](TensorBuilder &b, Value x, Value y) -> Value {
          // A left shift by too many bits gives 0; a right shift gives copies of the sign bit.
          Value last = b.scalar(pair->dtype, bits - 1), zero = b.scalar(pair->dtype, int64_t(0));
          Value isBeyond = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, y, last);
          Value some = arith::SelectOp::create(b, isBeyond, last, y);
          if (!isLeft)
            return arith::ShRSIOp::create(b, x, some);
          return arith::SelectOp::create(b, isBeyond, zero, arith::ShLIOp::create(b, x, some));
        }));
  };
}

/// self + weight * (end - self), computed from `self` or `end`, whichever is nearer to the result.
static LogicalResult interpolate(Call &call) {
  Tensor self = call.tensor("self"), end = call.tensor("end");
  Element weight = readElement(call, "weight");
  std::optional<Sizes> sizes =
      TensorBuilder::broadcast({self.sizes, end.sizes, weight.tensor.sizes});
  if (call.failed())
    return failure();
  if (!sizes || !isFloat(self.dtype) || end.dtype != self.dtype ||
      (!weight.isScalar && weight.tensor.dtype != self.dtype))
    return call.error() << "expected tensors of one floating-point type whose sizes broadcast, got "
                        << str(self.dtype) << str(self.sizes) << " and " << str(end.dtype)
                        << str(end.sizes);
  TensorBuilder &b = call.b;
  DType as = computeType(self.dtype);
  SmallVector<Operand> operands = {{self, as}, {end, as}};
  Value number;
  if (!weight.isScalar)
    operands.push_back({weight.tensor, as});
  else
    number = weight.scalar.in(b, as);
  return call.result(b.elementwise(*sizes, self.dtype, operands, [&](ValueRange x) -> Value {
    Value w = number ? number : x[2], one = b.scalar(as, 1.0);
    Value difference = arith::SubFOp::create(b, x[1], x[0]);
    Value up = arith::AddFOp::create(b, x[0], arith::MulFOp::create(b, w, difference));
    Value rest = arith::SubFOp::create(b, one, w);
    Value down = arith::SubFOp::create(b, x[1], arith::MulFOp::create(b, rest, difference));
    Value isFirst = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, w),
                                          b.scalar(as, 0.5));
    return arith::SelectOp::create(b, isFirst, up, down);
  }));
}

/// A power whose exponent is a small integer is a product; other powers are computed on floats.
static LogicalResult power(Call &call) {
  FailureOr<Pair> pair = readPair(call, "self", "exponent");
  if (call.failed())
    return failure();
  DType as = computeType(pair->dtype);
  const Element &exponent = pair->other;
  double number = exponent.scalar.number;
  // A longer product in float32 would round too often, so math.powf is used, which CPU code computes in float64.
  double longest = as == DType::F32 ? 4 : 64;
  bool isWhole = exponent.isScalar && number == std::floor(number) && std::abs(number) <= longest;
  if (!isFloat(as) && !(isWhole && number >= 0))
    return call.error()
           << "expected a power of floats, or of integers to a number from 0 to 64, got "
           << str(pair->dtype);
  return call.result(
      apply(call, *pair, as, pair->dtype, [&](TensorBuilder &b, Value x, Value y) -> Value {
        auto one = [&] { return b.scalar(as, int64_t(1)); };
        if (exponent.isScalar && number == 0.5)
          return math::SqrtOp::create(b, x);
        if (exponent.isScalar && number == -0.5)
          return math::RsqrtOp::create(b, x);
        if (!isWhole)
          return math::PowFOp::create(b, x, y);
        Value result, square = x;
        for (int64_t rest = std::abs(int64_t(number)); rest != 0; rest >>= 1) {
          if (rest & 1)
            result = result ? create<arith::MulFOp, arith::MulIOp>(b, result, square) : square;
          if (rest > 1)
            square = create<arith::MulFOp, arith::MulIOp>(b, square, square);
        }
        if (!result)
          return one();
        return number < 0 ? Value(arith::DivFOp::create(b, one(), result)) : result;
      }));
}

static auto compare(arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofInts) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Pair> pair = readPair(call);
    if (call.failed())
      return failure();
    // int64 is wider than any unsigned type, so a signed comparison is right for all types.
    DType as = isFloat(pair->dtype) ? computeType(pair->dtype) : DType::I64;
    return call.result(apply(call, rounded(call.b, *pair), as, DType::Bool,
                             [&](TensorBuilder &b, Value x, Value y) -> Value {
                               if (isFloat(as))
                                 return arith::CmpFOp::create(b, ofFloats, x, y);
                               return arith::CmpIOp::create(b, ofInts, x, y);
                             }));
  };
}

/// An op on bits. With `ofNumbers`, each operand first becomes a boolean that is true if the operand is not 0.
template <typename OpTy> static auto logic(bool ofNumbers) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Pair> pair = readPair(call);
    if (call.failed())
      return failure();
    DType dtype = ofNumbers ? DType::Bool : pair->dtype;
    if (!ofNumbers && isFloat(dtype))
      return call.error() << "expected integers or booleans, got " << str(dtype);
    DType as = ofNumbers ? computeType(pair->dtype) : dtype;
    return call.result(
        apply(call, *pair, as, dtype, [&](TensorBuilder &b, Value x, Value y) -> Value {
          if (ofNumbers) {
            x = b.isNonzero(x);
            y = b.isNonzero(y);
          }
          return OpTy::create(b, x, y);
        }));
  };
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

static LogicalResult maskedFill(Call &call) {
  Tensor x = call.tensor("self"), mask = call.tensor("mask");
  Element value = readElement(call, "value");
  std::optional<Sizes> sizes = call.broadcast({&x, &mask});
  if (call.failed())
    return failure();
  bool fits = value.isScalar ? value.scalar.fits(x.dtype)
                             : !isFloat(value.tensor.dtype) || isFloat(x.dtype);
  if (mask.dtype != DType::Bool || !sizes || !fits || value.tensor.rank() != 0)
    return call.error() << "expected a boolean mask that broadcasts to " << str(x.sizes)
                        << " and a value that " << str(x.dtype) << " can hold, got "
                        << str(mask.dtype) << str(mask.sizes);
  SmallVector<Operand> operands = {{x, x.dtype}, {mask, DType::Bool}};
  Value fill;
  if (!value.isScalar)
    operands.push_back({value.tensor, x.dtype});
  else
    fill = value.scalar.in(call.b, x.dtype);
  return call.result(call.b.elementwise(*sizes, x.dtype, operands, [&](ValueRange x) -> Value {
    return arith::SelectOp::create(call.b, x[1], fill ? fill : x[2], x[0]);
  }));
}

/// where(condition, self, other)
static LogicalResult where(Call &call) {
  Tensor condition = call.tensor("condition");
  FailureOr<Pair> pair = readPair(call);
  if (call.failed())
    return failure();
  std::optional<Sizes> sizes = TensorBuilder::broadcast({pair->sizes, condition.sizes});
  if (condition.dtype != DType::Bool || !sizes)
    return call.error() << "expected a boolean condition that broadcasts to " << str(pair->sizes)
                        << ", got " << str(condition.dtype) << str(condition.sizes);
  TensorBuilder &b = call.b;
  DType dtype = pair->dtype;
  SmallVector<Operand> operands = {{condition, DType::Bool}};
  SmallVector<Value> constants;
  for (const Element *element : {&pair->self, &pair->other}) {
    constants.push_back(element->isScalar ? element->scalar.in(b, dtype) : Value());
    if (!element->isScalar)
      operands.push_back({element->tensor, dtype});
  }
  return call.result(b.elementwise(*sizes, dtype, operands, [&](ValueRange x) -> Value {
    Value ifTrue = constants[0] ? constants[0] : x[1];
    Value ifFalse = constants[1] ? constants[1] : x.back();
    return arith::SelectOp::create(b, x[0], ifTrue, ifFalse);
  }));
}

static Value clampTo(TensorBuilder &b, Value x, Value least, Value greatest) {
  if (least)
    x = create<arith::MaximumFOp, arith::MaxSIOp>(b, x, least);
  return greatest ? create<arith::MinimumFOp, arith::MinSIOp>(b, x, greatest) : x;
}

/// Clamps between two numbers; one of them may be missing.
static auto clamp(StringRef least, StringRef greatest) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor("self");
    std::optional<Element> min, max;
    if (!least.empty() && call.has(least))
      min = readElement(call, least);
    if (!greatest.empty() && call.has(greatest))
      max = readElement(call, greatest);
    if (call.failed())
      return failure();
    if (!isSigned(x.dtype))
      return call.error() << "expected signed numbers, got " << str(x.dtype);
    // If a bound is a float, integers become floats.
    auto isReal = [](const std::optional<Element> &bound) {
      return bound && isFloat(bound->tensor.dtype);
    };
    DType dtype = isReal(min) || isReal(max) ? promote(x, Tensor{{}, DType::F32, {}}) : x.dtype,
          as = computeType(dtype);
    SmallVector<Operand> operands = {{x, as}};
    // The bound as a value, or its index among the operands.
    auto place = [&](const std::optional<Element> &bound) -> std::pair<Value, unsigned> {
      if (!bound || !bound->isScalar) {
        if (bound)
          operands.push_back({bound->tensor, as});
        return {Value(), bound ? operands.size() - 1 : 0};
      }
      return {bound->scalar.in(call.b, as), 0};
    };
    auto low = place(min), high = place(max);
    return call.result(call.b.elementwise(x.sizes, dtype, operands, [&](ValueRange x) {
      auto bound = [&](std::pair<Value, unsigned> at) {
        return at.second ? x[at.second] : at.first;
      };
      return clampTo(call.b, x[0], bound(low), bound(high));
    }));
  };
}

/// Clamps between two tensors; one of them may be missing.
static LogicalResult clampToTensors(Call &call) {
  Tensor x = call.tensor("self");
  SmallVector<Tensor> tensors = {x};
  bool hasLeast = call.has("min"), hasGreatest = call.has("max");
  if (hasLeast)
    tensors.push_back(call.tensor("min"));
  if (hasGreatest)
    tensors.push_back(call.tensor("max"));
  if (call.failed())
    return failure();
  DType dtype = x.dtype;
  for (const Tensor &tensor : ArrayRef(tensors).drop_front())
    dtype = promote(Tensor{{}, dtype, x.sizes}, tensor);
  std::optional<Sizes> sizes = TensorBuilder::broadcast(
      llvm::map_to_vector(tensors, [](const Tensor &tensor) { return tensor.sizes; }));
  if (!sizes || !isSigned(dtype))
    return call.error() << "expected signed numbers of sizes that broadcast to " << str(x.sizes)
                        << ", got " << str(dtype);
  DType as = computeType(dtype);
  auto operands =
      llvm::map_to_vector(tensors, [&](const Tensor &tensor) { return Operand{tensor, as}; });
  return call.result(call.b.elementwise(*sizes, dtype, operands, [&](ValueRange x) {
    return clampTo(call.b, x[0], hasLeast ? x[1] : Value(), hasGreatest ? x.back() : Value());
  }));
}

/// self with a number on the diagonal. `wrap`, which is not supported, would repeat the diagonal in the rows below the
/// first square.
static LogicalResult fillDiagonal(Call &call) {
  Tensor x = call.tensor("self");
  Scalar number = call.scalar("fill_value");
  bool wraps = call.flag("wrap");
  if (call.failed())
    return failure();
  bool isSquare = x.rank() >= 2 && llvm::all_equal(x.sizes);
  if ((!isSquare && x.rank() != 2) || wraps || !number.fits(x.dtype))
    return call.error() << "expected a matrix, or equal sizes, and a number that " << str(x.dtype)
                        << " can hold, got " << str(x.sizes);
  TensorBuilder &b = call.b;
  Value value = b.convert(number.in(b, x.dtype), x.dtype, computeType(x.dtype));
  return call.result(b.elementwise(
      x.sizes, x.dtype, Operand{x, computeType(x.dtype)}, [&](ValueRange element) -> Value {
        Value first = linalg::IndexOp::create(b, 0), isDiagonal;
        for (int64_t dim = 1; dim < x.rank(); ++dim) {
          Value isSame = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, first,
                                               linalg::IndexOp::create(b, dim));
          isDiagonal = isDiagonal ? Value(arith::AndIOp::create(b, isDiagonal, isSame)) : isSame;
        }
        return arith::SelectOp::create(b, isDiagonal, value, element[0]);
      }));
}

/// log(e^x + e^y), computed as max(x, y) + log(1 + e^-|x - y|), which does not overflow.
static Value logOfSum(TensorBuilder &b, Value x, Value y) {
  Value greater = arith::MaximumFOp::create(b, x, y), less = arith::MinimumFOp::create(b, x, y);
  Value difference = arith::SubFOp::create(b, less, greater);
  Value sum = arith::AddFOp::create(b, greater,
                                    math::Log1pOp::create(b, math::ExpOp::create(b, difference)));
  // If both operands are the same infinity, their difference would be NaN.
  Value isSame = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, y);
  Value infinity = arith::ConstantOp::create(
      b, b.getFloatAttr(x.getType(), std::numeric_limits<double>::infinity()));
  Value isInfinite =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, math::AbsFOp::create(b, x), infinity);
  return arith::SelectOp::create(b, arith::AndIOp::create(b, isSame, isInfinite), x, sum);
}

static LogicalResult logAddExp(Call &call) {
  FailureOr<Pair> pair = readPair(call);
  if (call.failed())
    return failure();
  if (!isFloat(pair->dtype))
    return call.error() << "expected floats, got " << str(pair->dtype);
  return call.result(apply(call, *pair, computeType(pair->dtype), pair->dtype, logOfSum));
}

/// Keeps the elements (..., q, k) for which the comparison `keeps` of k - q with `diagonal` is true; all others become
/// 0.
static auto triangle(arith::CmpIPredicate keeps) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor("self");
    Size diagonal = call.has("diagonal") ? call.integer("diagonal") : Size(0);
    if (!call.failed() && x.rank() < 2)
      return call.error() << "expected a tensor of rank 2 or more, got " << str(x.sizes);
    if (call.failed())
      return failure();
    Value zero = call.b.scalar(x.dtype, int64_t(0));
    SmallVector<Operand> operands = {{x, x.dtype}};
    if (!diagonal.constant())
      operands.push_back({call.b.number(diagonal), DType::I64});
    return call.result(
        call.b.elementwise(x.sizes, x.dtype, operands, [&](ValueRange element) -> Value {
          Value offset =
              diagonal.constant()
                  ? call.b.indexOf(diagonal)
                  : Value(arith::IndexCastOp::create(call.b, call.b.getIndexType(), element[1]));
          Value q = linalg::IndexOp::create(call.b, x.rank() - 2),
                k = linalg::IndexOp::create(call.b, x.rank() - 1);
          Value distance = arith::SubIOp::create(call.b, k, q);
          Value keep = arith::CmpIOp::create(call.b, keeps, distance, offset);
          return arith::SelectOp::create(call.b, keep, element[0], zero);
        }));
  };
}

/// self + value * tensor1 * tensor2, or self + value * tensor1 / tensor2.
template <typename OpTy> static LogicalResult addOf(Call &call) {
  Tensor self = call.tensor("self"), first = call.tensor("tensor1"),
         second = call.tensor("tensor2");
  Scalar value = call.scalar("value", 1);
  std::optional<Sizes> sizes = TensorBuilder::broadcast({self.sizes, first.sizes, second.sizes});
  if (call.failed())
    return failure();
  if (!sizes || !isFloat(self.dtype) || first.dtype != self.dtype || second.dtype != self.dtype)
    return call.error() << "expected tensors of one floating-point type whose sizes broadcast, got "
                        << str(self.dtype) << str(self.sizes) << ", " << str(first.dtype)
                        << str(first.sizes) << " and " << str(second.dtype) << str(second.sizes);
  TensorBuilder &b = call.b;
  DType as = computeType(self.dtype);
  Value factor = value.in(b, as);
  return call.result(b.elementwise(
      *sizes, self.dtype, {{self, as}, {first, as}, {second, as}}, [&](ValueRange x) -> Value {
        Value term = arith::MulFOp::create(b, factor, OpTy::create(b, x[1], x[2]));
        return arith::AddFOp::create(b, x[0], term);
      }));
}

void attn::pt2::addArithmetic(AtenOps &ops) {
  using CmpF = arith::CmpFPredicate;
  using CmpI = arith::CmpIPredicate;
  auto addBoth = [&](StringRef name, std::function<LogicalResult(Call &)> import,
                     StringRef limits = "") {
    for (StringRef overload : {".Tensor", ".Scalar"})
      ops.add((name + overload).str(), import, limits);
  };
  addBoth("add", arithmetic(create<arith::AddFOp, arith::AddIOp>), "sums of booleans");
  addBoth("sub", arithmetic(create<arith::SubFOp, arith::SubIOp>));
  addBoth("rsub", subtractFrom, "alpha other than 1");
  addBoth("mul", arithmetic(create<arith::MulFOp, arith::MulIOp>, /*ofBooleans=*/true));
  addBoth("div", divide);
  StringRef byTensor = "integers divided by a tensor";
  for (StringRef overload : {"div.Tensor_mode", "div.Scalar_mode"})
    ops.add(overload, divide, byTensor);
  // The overload Tensor exists only in place, as floor_divide_.Tensor.
  for (StringRef overload : {"floor_divide.default", "floor_divide.Tensor", "floor_divide.Scalar"})
    ops.add(overload, floorDivide, byTensor);
  StringRef ofModulo = "integers divided by a tensor; float64";
  addBoth("remainder", modulo(/*floors=*/true), ofModulo);
  addBoth("fmod", modulo(/*floors=*/false), ofModulo);
  StringRef ofShift = "booleans and unsigned integers";
  for (StringRef overload : {"Tensor", "Tensor_Scalar"}) {
    ops.add(("bitwise_left_shift." + overload).str(), shift(/*isLeft=*/true), ofShift);
    ops.add(("bitwise_right_shift." + overload).str(), shift(/*isLeft=*/false), ofShift);
  }
  addBoth("__lshift__", shift(/*isLeft=*/true), ofShift);
  addBoth("__rshift__", shift(/*isLeft=*/false), ofShift);
  addBoth("lerp", interpolate);
  ops.add("pow.Tensor_Scalar", power, "integers, unless the exponent is a number from 0 to 64");
  ops.add("pow.Tensor_Tensor", power, "integers");
  ops.add("pow.Scalar", power, "integers");
  auto maximum = ofSigned(create<arith::MaximumFOp, arith::MaxSIOp>);
  auto minimum = ofSigned(create<arith::MinimumFOp, arith::MinSIOp>);
  StringRef noSign = "booleans and unsigned integers";
  ops.add("maximum.default", maximum, noSign);
  ops.add("minimum.default", minimum, noSign);
  // fmax and fmin ignore NaN.
  ops.add("fmax.default", ofSigned(create<arith::MaxNumFOp, arith::MaxSIOp>), noSign);
  ops.add("fmin.default", ofSigned(create<arith::MinNumFOp, arith::MinSIOp>), noSign);
  ops.add("max.other", maximum, noSign);
  ops.add("min.other", minimum, noSign);
  addBoth("eq", compare(CmpF::OEQ, CmpI::eq));
  addBoth("ne", compare(CmpF::UNE, CmpI::ne));
  addBoth("lt", compare(CmpF::OLT, CmpI::slt));
  addBoth("le", compare(CmpF::OLE, CmpI::sle));
  addBoth("gt", compare(CmpF::OGT, CmpI::sgt));
  addBoth("ge", compare(CmpF::OGE, CmpI::sge));
  addBoth("bitwise_and", logic<arith::AndIOp>(false));
  addBoth("bitwise_or", logic<arith::OrIOp>(false));
  addBoth("bitwise_xor", logic<arith::XOrIOp>(false));
  addBoth("__and__", logic<arith::AndIOp>(false));
  addBoth("__or__", logic<arith::OrIOp>(false));
  addBoth("__xor__", logic<arith::XOrIOp>(false));
  ops.add("logical_and.default", logic<arith::AndIOp>(true));
  ops.add("logical_or.default", logic<arith::OrIOp>(true));
  ops.add("logical_xor.default", logic<arith::XOrIOp>(true));
  for (StringRef overload : {"masked_fill.Scalar", "masked_fill.Tensor"})
    ops.add(overload, maskedFill);
  for (StringRef overload : {"where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar"})
    ops.add(overload, where);
  ops.add("clamp.default", clamp("min", "max"), noSign);
  ops.add("clamp_min.default", clamp("min", ""), noSign);
  ops.add("clamp_max.default", clamp("", "max"), noSign);
  for (StringRef name : {"clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor"})
    ops.add(name, clampToTensors, noSign);
  ops.add("fill_diagonal.default", fillDiagonal, "wrap");
  ops.add("logaddexp.default", logAddExp, "integers");
  ops.add("tril.default", triangle(CmpI::sle));
  ops.add("triu.default", triangle(CmpI::sge));
  ops.add("addcmul.default", addOf<arith::MulFOp>);
  ops.add("addcdiv.default", addOf<arith::DivFOp>);
}
