//===- Elementwise.cpp - aten's scalar functions ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn::pt2;

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

DType attn::pt2::promote(const Tensor &a, const Tensor &b) {
  auto kind = [](DType dtype) { return isFloat(dtype) ? 2 : dtype == DType::Bool ? 0 : 1; };
  if (a.dtype == b.dtype)
    return a.dtype;
  if (kind(a.dtype) != kind(b.dtype))
    return kind(a.dtype) > kind(b.dtype) ? a.dtype : b.dtype;
  if ((a.rank() == 0) != (b.rank() == 0))
    return a.rank() == 0 ? b.dtype : a.dtype;
  if (byteSize(a.dtype) != byteSize(b.dtype))
    return byteSize(a.dtype) > byteSize(b.dtype) ? a.dtype : b.dtype;
  return isFloat(a.dtype) ? DType::F32 : DType::I16; // float16 with bfloat16, int8 with uint8
}

namespace {
/// The operands of a binary op, the second a tensor or a number, and what they compute in.
struct Pair {
  Tensor self, other;
  Scalar scalar;
  bool isScalar;
  DType dtype;
  Sizes sizes;
};
} // namespace

static FailureOr<Pair> readPair(Call &call) {
  Pair pair;
  pair.self = call.tensor("self");
  pair.isScalar = !call.isTensor("other");
  if (pair.isScalar) {
    pair.scalar = call.scalar("other");
    pair.other.dtype = pair.scalar.isFloat ? DType::F32 : DType::I64;
  } else {
    pair.other = call.tensor("other");
  }
  std::optional<Sizes> sizes = TensorBuilder::broadcast({pair.self.sizes, pair.other.sizes});
  if (!call.failed() && !sizes)
    call.error() << "expected sizes that broadcast, got " << str(pair.self.sizes) << " and "
                 << str(pair.other.sizes);
  if (call.failed())
    return failure();
  pair.sizes = *sizes;
  // A number counts as a tensor of rank 0, but never widens one of rank 0.
  pair.dtype = promote(pair.self, pair.other);
  if (pair.isScalar && isFloat(pair.self.dtype) == isFloat(pair.dtype) &&
      pair.self.dtype != DType::Bool)
    pair.dtype = pair.self.dtype;
  return pair;
}

/// result = function(self, other) elementwise, both read as `as`.
static Tensor apply(Call &call, const Pair &pair, DType as, DType dtype,
                    function_ref<Value(Value, Value)> function) {
  SmallVector<Operand> operands = {{pair.self, as}};
  Value constant;
  if (!pair.isScalar)
    operands.push_back({pair.other, as});
  else if (pair.scalar.isFloat)
    constant = call.b.scalar(as, pair.scalar.number);
  else
    constant = call.b.scalar(as, pair.scalar.integer);
  return call.b.elementwise(pair.sizes, dtype, operands, [&](ValueRange x) {
    return function(x[0], constant ? constant : x[1]);
  });
}

template <typename FloatOp, typename IntOp> static Value create(Call &call, Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return FloatOp::create(call.b, a, b);
  return IntOp::create(call.b, a, b);
}

/// add, sub, mul: in the promoted type; `alpha` scales the second operand of a sum.
template <typename FloatOp, typename IntOp> static LogicalResult arithmetic(Call &call) {
  FailureOr<Pair> pair = readPair(call);
  Scalar alpha = call.scalar("alpha", 1);
  if (call.failed())
    return failure();
  DType dtype = pair->dtype, as = computeType(dtype);
  bool isProduct = std::is_same_v<IntOp, arith::MulIOp>;
  if ((dtype == DType::Bool && !isProduct) || (alpha.isFloat && !isFloat(dtype)))
    return call.error() << "expected a sum of numbers, got " << str(dtype);
  Value factor;
  if (alpha.number != 1)
    factor = alpha.isFloat ? call.b.scalar(as, alpha.number) : call.b.scalar(as, alpha.integer);
  return call.result(apply(call, *pair, as, dtype, [&](Value a, Value b) {
    return create<FloatOp, IntOp>(
        call, a, factor ? create<arith::MulFOp, arith::MulIOp>(call, b, factor) : b);
  }));
}

/// A quotient of integers is a float.
static LogicalResult divide(Call &call) {
  FailureOr<Pair> pair = readPair(call);
  if (call.failed())
    return failure();
  DType dtype = isFloat(pair->dtype) ? pair->dtype : DType::F32;
  return call.result(apply(call, *pair, computeType(dtype), dtype, [&](Value a, Value b) -> Value {
    return arith::DivFOp::create(call.b, a, b);
  }));
}

template <arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofInts>
static LogicalResult compare(Call &call) {
  FailureOr<Pair> pair = readPair(call);
  if (call.failed())
    return failure();
  // Wider than any operand, so that signs need no care.
  DType as = isFloat(pair->dtype) ? computeType(pair->dtype) : DType::I64;
  return call.result(apply(call, *pair, as, DType::Bool, [&](Value a, Value b) -> Value {
    if (isFloat(as))
      return arith::CmpFOp::create(call.b, ofFloats, a, b);
    return arith::CmpIOp::create(call.b, ofInts, a, b);
  }));
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

static LogicalResult maskedFill(Call &call) {
  Tensor x = call.tensor("self"), mask = call.tensor("mask");
  Scalar number = call.scalar("value");
  std::optional<Sizes> sizes = TensorBuilder::broadcast({x.sizes, mask.sizes});
  if (call.failed())
    return failure();
  if (mask.dtype != DType::Bool || !sizes || (number.isFloat && !isFloat(x.dtype)))
    return call.error() << "expected a boolean mask that broadcasts to " << str(x.sizes)
                        << " and a value that " << str(x.dtype) << " holds, got " << str(mask.dtype)
                        << str(mask.sizes) << " and " << number.number;
  Value fill = isFloat(x.dtype) ? call.b.scalar(x.dtype, number.number)
                                : call.b.scalar(x.dtype, number.integer);
  return call.result(call.b.elementwise(
      *sizes, x.dtype, {{x, x.dtype}, {mask, DType::Bool}}, [&](ValueRange element) -> Value {
        return arith::SelectOp::create(call.b, element[1], fill, element[0]);
      }));
}

/// Keeps the elements (..., q, k) whose k - q compares with `diagonal`, 0 elsewhere.
template <arith::CmpIPredicate keeps> static LogicalResult triangle(Call &call) {
  Tensor x = call.tensor("self");
  int64_t diagonal = call.constant("diagonal", 0);
  if (!call.failed() && x.rank() < 2)
    return call.error() << "expected a tensor of rank 2 or more, got " << str(x.sizes);
  if (call.failed())
    return failure();
  Value zero = call.b.scalar(x.dtype, int64_t(0)),
        offset = arith::ConstantIndexOp::create(call.b, diagonal);
  return call.result(
      call.b.elementwise(x.sizes, x.dtype, Operand{x, x.dtype}, [&](ValueRange element) -> Value {
        Value q = linalg::IndexOp::create(call.b, x.rank() - 2),
              k = linalg::IndexOp::create(call.b, x.rank() - 1);
        Value distance = arith::SubIOp::create(call.b, k, q);
        Value keep = arith::CmpIOp::create(call.b, keeps, distance, offset);
        return arith::SelectOp::create(call.b, keep, element[0], zero);
      }));
}

//===----------------------------------------------------------------------===//
// One operand, or none
//===----------------------------------------------------------------------===//

static LogicalResult bitwiseNot(Call &call) {
  Tensor x = call.tensor("self");
  if (!call.failed() && isFloat(x.dtype))
    return call.error() << "expected integers or booleans, got " << str(x.dtype);
  if (call.failed())
    return failure();
  Value ones = call.b.scalar(x.dtype, int64_t(-1));
  return call.result(
      call.b.elementwise(x.sizes, x.dtype, Operand{x, x.dtype}, [&](ValueRange element) -> Value {
        return arith::XOrIOp::create(call.b, element[0], ones);
      }));
}

/// A function of an element and one constant.
using FloatFunction = Value (*)(TensorBuilder &, Value, Value);

template <FloatFunction function, int64_t number> static LogicalResult floatUnary(Call &call) {
  Tensor x = call.tensor("self");
  if (!call.failed() && !isFloat(x.dtype))
    return call.error() << "expected floats, got " << str(x.dtype);
  if (call.failed())
    return failure();
  DType as = computeType(x.dtype);
  Value constant = call.b.scalar(as, number);
  return call.result(call.b.elementwise(x.sizes, x.dtype, Operand{x, as}, [&](ValueRange element) {
    return function(call.b, element[0], constant);
  }));
}

/// x / (1 + exp(-x))
static Value silu(TensorBuilder &b, Value x, Value one) {
  Value decay = math::ExpOp::create(b, arith::NegFOp::create(b, x));
  return arith::DivFOp::create(b, x, arith::AddFOp::create(b, decay, one));
}

static Value relu(TensorBuilder &b, Value x, Value zero) {
  return arith::MaximumFOp::create(b, x, zero);
}

/// A model in evaluation mode drops nothing.
static LogicalResult dropout(Call &call) {
  Tensor x = call.tensor("input");
  double p = call.number("p");
  bool train = call.flag("train");
  if (call.failed())
    return failure();
  if (train && p != 0)
    return call.error() << "expected dropout '" << call.module()
                        << "' in evaluation mode, got training mode; call eval() on the module "
                           "before exporting it";
  return call.result(x);
}

template <int64_t number> static LogicalResult fill(Call &call) {
  Sizes sizes = call.integers("size");
  DType dtype = call.dtype("dtype", DType::F32);
  for (const Size &size : sizes)
    if (size.constant().value_or(0) < 0)
      return call.error() << "expected sizes of at least 0, got " << str(sizes);
  return call.failed() ? failure() : call.result(call.b.fill(sizes, dtype, number));
}

void attn::pt2::addElementwise(AtenOps &ops) {
  using CmpF = arith::CmpFPredicate;
  using CmpI = arith::CmpIPredicate;
  for (StringRef second : {"Tensor", "Scalar"}) {
    auto add = [&](StringRef name, AtenOp op) {
      ops[("torch.ops.aten." + name + "." + second).str()] = op;
    };
    add("add", arithmetic<arith::AddFOp, arith::AddIOp>);
    add("sub", arithmetic<arith::SubFOp, arith::SubIOp>);
    add("mul", arithmetic<arith::MulFOp, arith::MulIOp>);
    add("div", divide);
    add("eq", compare<CmpF::OEQ, CmpI::eq>);
    add("ne", compare<CmpF::UNE, CmpI::ne>);
    add("lt", compare<CmpF::OLT, CmpI::slt>);
    add("le", compare<CmpF::OLE, CmpI::sle>);
    add("gt", compare<CmpF::OGT, CmpI::sgt>);
    add("ge", compare<CmpF::OGE, CmpI::sge>);
  }
  ops["torch.ops.aten.masked_fill.Scalar"] = maskedFill;
  ops["torch.ops.aten.tril.default"] = triangle<CmpI::sle>;
  ops["torch.ops.aten.triu.default"] = triangle<CmpI::sge>;
  ops["torch.ops.aten.bitwise_not.default"] = bitwiseNot;
  ops["torch.ops.aten.silu.default"] = floatUnary<silu, 1>;
  ops["torch.ops.aten.relu.default"] = floatUnary<relu, 0>;
  ops["torch.ops.aten.dropout.default"] = dropout;
  ops["torch.ops.aten.ones.default"] = fill<1>;
  ops["torch.ops.aten.zeros.default"] = fill<0>;
}
