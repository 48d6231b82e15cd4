//===- Sizes.cpp - arithmetic on sizes -------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Integers stay formulas (Size), because proofs about sizes need them. Floats that are computed from integers
// become float64 values, as in Python.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace attn::pt2;

static LogicalResult symSize(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank());
  return call.failed() ? failure() : call.result(x.sizes[dim]);
}

using Combine = std::optional<Size> (*)(const Size &, const Size &);
using CombineFloats = Value (*)(TensorBuilder &b, Value x, Value y);

template <typename OpTy> static Value create(TensorBuilder &b, Value x, Value y) {
  return OpTy::create(b, x, y);
}

/// A function of two floats.
static std::function<LogicalResult(Call &)> ofFloats(CombineFloats function) {
  return [=](Call &call) -> LogicalResult {
    Value a = call.computed("a"), b = call.computed("b");
    return call.failed() ? failure() : call.resultNumber(function(call.b, a, b));
  };
}

/// A function of two sizes or, if an operand is a float, of two floats. A computed size must equal the size in the
/// file.
static std::function<LogicalResult(Call &)> arithmetic(Combine function,
                                                       CombineFloats floats = nullptr) {
  return [=](Call &call) -> LogicalResult {
    if (floats && (call.isFloat("a") || call.isFloat("b")))
      return ofFloats(floats)(call);
    Size a = call.integer("a"), b = call.integer("b");
    if (call.failed())
      return failure();
    std::optional<Size> result = function(a, b);
    if (!result)
      return call.error() << "expected sizes that fit into 64 bits, got " << a.str() << " and "
                          << b.str();
    return call.result(*result);
  };
}

/// With a larger exponent, only powers of 0, 1 and -1 fit into 64 bits.
static constexpr int64_t kMaxExponent = 64;

/// Computes powers of floats by square roots and products, so exponents must be multiples of 0.5.
static LogicalResult powerOfFloats(Call &call) {
  TensorBuilder &b = call.b;
  Value base = call.computed("a"), one = b.scalar(DType::F64, 1.0), result = one;
  double halves = 2 * call.number("b");
  if (call.failed())
    return failure();
  if (std::abs(halves) > 32 || halves != std::trunc(halves))
    return call.error() << "expected an exponent from -16 to 16 that is a multiple of 0.5, got "
                        << halves / 2;
  for (int64_t i = 0; i < int64_t(std::abs(halves)) / 2; ++i)
    result = arith::MulFOp::create(b, result, base);
  if (int64_t(halves) % 2 != 0)
    result = arith::MulFOp::create(b, result, math::SqrtOp::create(b, base));
  return call.resultNumber(halves < 0 ? Value(arith::DivFOp::create(b, one, result)) : result);
}

/// A function of one float.
template <typename OpTy> static LogicalResult function(Call &call) {
  Value a = call.computed("a");
  return call.failed() ? failure() : call.resultNumber(OpTy::create(call.b, a));
}

static LogicalResult toFloat(Call &call) {
  Value a = call.computed("a");
  return call.failed() ? failure() : call.resultNumber(a);
}

static LogicalResult power(Call &call) {
  if (call.isFloat("a") || call.isFloat("b"))
    return powerOfFloats(call);
  Size a = call.integer("a");
  int64_t exponent = call.constant("b");
  if (call.failed())
    return failure();
  std::optional<Size> result = Size(1);
  for (int64_t i = 0; i < exponent && result; ++i)
    result = i < kMaxExponent ? multiply(*result, a) : std::nullopt;
  if (exponent < 0 || !result)
    return call.error() << "expected an integer power that fits into 64 bits, got " << a.str()
                        << " to the power of " << exponent;
  return call.result(*result);
}

static LogicalResult negate(Call &call) {
  if (call.isFloat("a"))
    return function<arith::NegFOp>(call);
  Size a = call.integer("a");
  std::optional<Size> result = multiply(a, Size(-1));
  if (call.failed())
    return failure();
  if (!result)
    return call.error() << "expected sizes that fit into 64 bits, got " << a.str();
  return call.result(*result);
}

void attn::pt2::addSizes(AtenOps &ops) {
  ops.add("sym_size.int", symSize);
  ops.add("_operator.add", arithmetic(add, create<arith::AddFOp>));
  ops.add("_operator.mul", arithmetic(multiply, create<arith::MulFOp>));
  ops.add("_operator.sub", arithmetic(subtract, create<arith::SubFOp>));
  ops.add("_operator.truediv", ofFloats(create<arith::DivFOp>));
  ops.add("torch.sym_float", toFloat);
  ops.add("torch._sym_sqrt", function<math::SqrtOp>);
  ops.add("_operator.floordiv", arithmetic(divideDown));
  ops.add("_operator.mod", arithmetic(remainder));
  ops.add("_operator.pow", power);
  ops.add("_operator.neg", negate);
  ops.add("torch.sym_max", arithmetic(maximum));
  ops.add("torch.sym_min", arithmetic(minimum));
}
