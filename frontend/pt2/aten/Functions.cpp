//===- Functions.cpp - elementwise aten ops of one operand -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace attn::pt2;

namespace {
/// Ops on elements of one floating-point type.
struct Floats {
  TensorBuilder &b;
  Type type;

  Value constant(double value) { return arith::ConstantOp::create(b, b.getFloatAttr(type, value)); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value neg(Value x) { return arith::NegFOp::create(b, x); }
  Value exp(Value x) { return math::ExpOp::create(b, x); }
  Value max(Value x, double y) { return arith::MaximumFOp::create(b, x, constant(y)); }
  Value min(Value x, double y) { return arith::MinimumFOp::create(b, x, constant(y)); }
  Value isAbove(Value x, double y) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, constant(y));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  /// 1 / (1 + e^-x)
  Value sigmoid(Value x) { return div(constant(1), add(constant(1), exp(neg(x)))); }
};

using FloatFunction = Value (*)(Floats &, Value);
} // namespace

/// A function that torch computes in floats, also for integers.
static std::function<LogicalResult(Call &)>
ofFloats(std::function<Value(Floats &, Value)> function) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor("self");
    if (call.failed())
      return failure();
    DType dtype = isFloat(x.dtype) ? x.dtype : DType::F32, as = computeType(dtype);
    return call.result(call.b.elementwise(x.sizes, dtype, Operand{x, as}, [&](ValueRange element) {
      Floats floats{call.b, element[0].getType()};
      return function(floats, element[0]);
    }));
  };
}

template <typename OpTy> static std::function<LogicalResult(Call &)> ofFloats() {
  return ofFloats([](Floats &f, Value x) -> Value { return OpTy::create(f.b, x); });
}

/// A function that torch computes in the type of its argument, also for integers.
static std::function<LogicalResult(Call &)>
ofNumbers(std::function<Value(TensorBuilder &, Value)> floats,
          std::function<Value(TensorBuilder &, Value)> integers) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor("self");
    if (!call.failed() && !isSigned(x.dtype))
      return call.error() << "expected signed numbers, got " << str(x.dtype);
    if (call.failed())
      return failure();
    DType as = computeType(x.dtype);
    return call.result(
        call.b.elementwise(x.sizes, x.dtype, Operand{x, as}, [&](ValueRange element) {
          return isFloat(as) ? floats(call.b, element[0]) : integers(call.b, element[0]);
        }));
  };
}

static Value same(TensorBuilder &, Value x) { return x; }

/// x / 2 * (1 + erf(x / sqrt(2))), or the approximation of this function by tanh.
static LogicalResult gelu(Call &call) {
  std::string approximate = call.string("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return call.error() << "expected an approximation 'none' or 'tanh', got '" << approximate
                        << "'";
  bool isTanh = approximate == "tanh";
  return ofFloats([=](Floats &f, Value x) -> Value {
    Value half = f.mul(x, f.constant(0.5));
    Value inner = f.mul(x, f.constant(llvm::numbers::sqrt2 / 2));
    if (!isTanh)
      return f.mul(half, f.add(f.constant(1), math::ErfOp::create(f.b, inner)));
    Value cube = f.mul(f.mul(x, x), f.mul(x, f.constant(0.044715)));
    inner =
        f.mul(f.add(x, cube), f.constant(llvm::numbers::sqrt2 * std::sqrt(llvm::numbers::inv_pi)));
    return f.mul(half, f.add(f.constant(1), math::TanhOp::create(f.b, inner)));
  })(call);
}

/// scale * x where x is positive, alpha * scale * (e^(rate * x) - 1) elsewhere.
static LogicalResult elu(Call &call) {
  double alpha = call.number("alpha", 1), scale = call.number("scale", 1),
         rate = call.number("input_scale", 1);
  return ofFloats([=](Floats &f, Value x) -> Value {
    Value small = math::ExpM1Op::create(f.b, f.mul(x, f.constant(rate)));
    return f.select(f.isAbove(x, 0), f.mul(x, f.constant(scale)),
                    f.mul(small, f.constant(alpha * scale)));
  })(call);
}

static LogicalResult leakyRelu(Call &call) {
  double slope = call.number("negative_slope", 0.01);
  return ofFloats([=](Floats &f, Value x) {
    return f.select(f.isAbove(x, 0), x, f.mul(x, f.constant(slope)));
  })(call);
}

/// log(1 + e^(beta x)) / beta, or x where beta x is above the threshold.
static LogicalResult softplus(Call &call) {
  double beta = call.number("beta", 1), threshold = call.number("threshold", 20);
  return ofFloats([=](Floats &f, Value x) -> Value {
    Value scaled = f.mul(x, f.constant(beta));
    Value soft =
        f.div(math::Log1pOp::create(f.b, f.exp(f.min(scaled, threshold))), f.constant(beta));
    return f.select(f.isAbove(scaled, threshold), x, soft);
  })(call);
}

static LogicalResult celu(Call &call) {
  double alpha = call.number("alpha", 1);
  if (!call.failed() && alpha == 0)
    return call.error() << "expected alpha other than 0";
  return ofFloats([=](Floats &f, Value x) -> Value {
    Value small = math::ExpM1Op::create(f.b, f.div(x, f.constant(alpha)));
    return f.select(f.isAbove(x, 0), x, f.mul(small, f.constant(alpha)));
  })(call);
}

static Value selu(Floats &f, Value x) {
  const double alpha = 1.6732632423543772848, scale = 1.0507009873554804934;
  Value small = f.mul(math::ExpM1Op::create(f.b, x), f.constant(alpha * scale));
  return f.select(f.isAbove(x, 0), f.mul(x, f.constant(scale)), small);
}

/// log(1 + e^x), without overflow or cancellation.
static Value logOfOnePlusExp(Floats &f, Value x) {
  Value magnitude = math::AbsFOp::create(f.b, x);
  return f.add(f.max(x, 0), math::Log1pOp::create(f.b, f.exp(f.neg(magnitude))));
}

static Value mish(Floats &f, Value x) {
  return f.mul(x, math::TanhOp::create(f.b, logOfOnePlusExp(f, x)));
}

static Value logSigmoid(Floats &f, Value x) { return f.neg(logOfOnePlusExp(f, f.neg(x))); }

/// x where x is above the threshold, `value` elsewhere.
static LogicalResult threshold(Call &call) {
  double least = call.number("threshold"), value = call.number("value");
  return ofFloats([=](Floats &f, Value x) -> Value {
    // The comparison is false for NaN, so NaN is kept.
    Value isBelow = arith::CmpFOp::create(f.b, arith::CmpFPredicate::OLE, x, f.constant(least));
    return f.select(isBelow, f.constant(value), x);
  })(call);
}

/// x where x is positive, x times the weight of its channel (dimension 1) elsewhere. All channels may share one weight.
static LogicalResult prelu(Call &call) {
  Tensor x = call.tensor("self"), weight = call.tensor("weight");
  if (call.failed())
    return failure();
  bool isOne = llvm::all_of(weight.sizes, [](const Size &size) { return size.isOne(); });
  bool ofChannels = weight.rank() == 1 && x.rank() >= 2 && weight.sizes[0] == x.sizes[1];
  std::optional<Sizes> broadcast = TensorBuilder::broadcast({x.sizes, weight.sizes});
  // _prelu_kernel, the form that prelu decomposes to, broadcasts the weight.
  bool isKernel = call.target().contains("_prelu_kernel");
  if (!isFloat(x.dtype) || weight.dtype != x.dtype ||
      !(isKernel ? broadcast && *broadcast == x.sizes : isOne || ofChannels))
    return call.error() << "expected floats and a weight for each channel, got " << str(x.dtype)
                        << str(x.sizes) << " and " << str(weight.dtype) << str(weight.sizes);
  TensorBuilder &b = call.b;
  DType as = computeType(x.dtype);
  SmallVector<AffineExpr> exprs(weight.rank(), b.getAffineConstantExpr(0));
  if (!isOne)
    exprs = {b.getAffineDimExpr(1)};
  AffineMap map = isKernel ? b.broadcastMap(weight.sizes, x.sizes)
                           : AffineMap::get(x.rank(), 0, exprs, b.getContext());
  return call.result(
      b.elementwise(x.sizes, x.dtype, {{x, as}, {weight, as, map}}, [&](ValueRange element) {
        Floats f{b, element[0].getType()};
        return f.select(f.isAbove(element[0], 0), element[0], f.mul(element[0], element[1]));
      }));
}

/// 0 from -lambda to lambda; elsewhere x, or x moved towards 0 by lambda.
static auto shrink(bool moves) {
  return [=](Call &call) -> LogicalResult {
    double lambda = call.number("lambd", 0.5);
    return ofFloats([=](Floats &f, Value x) -> Value {
      Value isBelow = arith::CmpFOp::create(f.b, arith::CmpFPredicate::OLT, x, f.constant(-lambda));
      Value above = moves ? f.sub(x, f.constant(lambda)) : x,
            below = moves ? f.add(x, f.constant(lambda)) : x;
      // x * 0 is 0, or NaN if x is NaN.
      Value between = f.mul(x, f.constant(0));
      return f.select(f.isAbove(x, lambda), above, f.select(isBelow, below, between));
    })(call);
  };
}

static Value tangent(Floats &f, Value x) {
  return f.div(math::SinOp::create(f.b, x), math::CosOp::create(f.b, x));
}

static Value logToBase10(Floats &f, Value x) {
  return f.div(math::LogOp::create(f.b, x), f.constant(llvm::numbers::ln10));
}

/// x with NaN replaced by `nan` (default: 0), and infinities by `posinf` and `neginf` (default: the greatest and the
/// least finite number of the type).
static LogicalResult nanToNum(Call &call) {
  Tensor x = call.tensor("self");
  if (call.failed())
    return failure();
  bool isReal = isFloat(x.dtype);
  const llvm::fltSemantics &semantics =
      isReal ? cast<FloatType>(attn::graph::elementType(x.dtype, call.b.getContext()))
                   .getFloatSemantics()
             : llvm::APFloat::IEEEsingle();
  llvm::APFloat largest = llvm::APFloat::getLargest(semantics);
  bool losesInfo;
  largest.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  double most = largest.convertToDouble();
  auto numberOr = [&](StringRef name, double otherwise) {
    return call.has(name) ? call.number(name) : otherwise;
  };
  double nan = numberOr("nan", 0), above = numberOr("posinf", most),
         below = numberOr("neginf", -most);
  if (call.failed() || !isReal)
    return call.failed() ? failure() : call.result(x);
  return ofFloats([=](Floats &f, Value x) -> Value {
    auto is = [&](arith::CmpFPredicate predicate, double value) -> Value {
      return arith::CmpFOp::create(f.b, predicate, x, f.constant(value));
    };
    const double infinity = std::numeric_limits<double>::infinity();
    Value y = f.select(is(arith::CmpFPredicate::OEQ, infinity), f.constant(above), x);
    y = f.select(is(arith::CmpFPredicate::OEQ, -infinity), f.constant(below), y);
    return f.select(is(arith::CmpFPredicate::UNO, 0), f.constant(nan), y);
  })(call);
}

/// min(max(x, least), greatest)
static LogicalResult limit(Call &call, double least, double greatest) {
  return ofNumbers(
      [=](TensorBuilder &b, Value x) {
        Floats f{b, x.getType()};
        return f.min(f.max(x, least), greatest);
      },
      [=](TensorBuilder &b, Value x) -> Value {
        auto constant = [&](double value) -> Value {
          return arith::ConstantOp::create(b, b.getIntegerAttr(x.getType(), int64_t(value)));
        };
        Value atLeast = arith::MaxSIOp::create(b, x, constant(least));
        return arith::MinSIOp::create(b, atLeast, constant(greatest));
      })(call);
}

static LogicalResult hardtanh(Call &call) {
  return limit(call, call.number("min_val", -1), call.number("max_val", 1));
}

static LogicalResult relu6(Call &call) { return limit(call, 0, 6); }

/// The first half along `dim` times the sigmoid of the second half.
static LogicalResult glu(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank(), -1);
  if (call.failed())
    return failure();
  std::optional<int64_t> size = x.sizes[dim].constant();
  if (!size || *size % 2 != 0 || !isFloat(x.dtype))
    return call.error() << "expected floats of a known even size in dimension " << dim << ", got "
                        << str(x.dtype) << str(x.sizes);
  Tensor value = call.b.slice(x, dim, 0, *size / 2),
         gate = call.b.slice(x, dim, *size / 2, *size / 2);
  DType as = computeType(x.dtype);
  return call.result(
      call.b.elementwise(value.sizes, x.dtype, {{value, as}, {gate, as}}, [&](ValueRange element) {
        Floats f{call.b, element[0].getType()};
        return f.mul(element[0], f.sigmoid(element[1]));
      }));
}

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

/// An elementwise test, whose result is a boolean.
static std::function<LogicalResult(Call &)>
test(std::function<Value(TensorBuilder &, Value)> function) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor("self");
    if (call.failed())
      return failure();
    return call.result(
        call.b.elementwise(x.sizes, DType::Bool, Operand{x, computeType(x.dtype)},
                           [&](ValueRange element) { return function(call.b, element[0]); }));
  };
}

static Value isZero(TensorBuilder &b, Value x) {
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(true));
  return arith::XOrIOp::create(b, b.isNonzero(x), no);
}

static Value isNaN(TensorBuilder &b, Value x) {
  if (!isa<FloatType>(x.getType()))
    return arith::ConstantOp::create(b, b.getBoolAttr(false));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
}

static Value isInf(TensorBuilder &b, Value x) {
  if (!isa<FloatType>(x.getType()))
    return arith::ConstantOp::create(b, b.getBoolAttr(false));
  Value infinity = arith::ConstantOp::create(
      b, b.getFloatAttr(x.getType(), std::numeric_limits<double>::infinity()));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, math::AbsFOp::create(b, x), infinity);
}

static Value isFinite(TensorBuilder &b, Value x) {
  if (!isa<FloatType>(x.getType()))
    return arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value infinity = arith::ConstantOp::create(
      b, b.getFloatAttr(x.getType(), std::numeric_limits<double>::infinity()));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, x), infinity);
}

/// In evaluation mode, dropout does nothing: the result is the argument itself.
static LogicalResult dropout(Call &call) {
  StringRef name = call.has("input") ? "input" : "self"; // dropout_ has `self`
  Tensor x = call.tensor(name);
  double p = call.number("p");
  bool train = call.flag("train");
  if (call.failed())
    return failure();
  if (train && p != 0 && StringRef(call.module()).empty())
    return call.error() << "expected dropout in evaluation mode, got training mode; pass "
                           "training=self.training, and call eval() on the module before exporting it";
  if (train && p != 0)
    return call.error() << "expected dropout '" << call.module()
                        << "' in evaluation mode, got training mode; call eval() on the module "
                           "before exporting it";
  return call.resultSame(name, x);
}

void attn::pt2::addFunctions(AtenOps &ops) {
  auto add = [&](StringRef name, std::function<LogicalResult(Call &)> import,
                 StringRef limits = "") {
    ops.add((name + ".default").str(), std::move(import), limits);
  };
  add("exp", ofFloats<math::ExpOp>());
  add("exp2", ofFloats<math::Exp2Op>());
  add("expm1", ofFloats<math::ExpM1Op>());
  add("log", ofFloats<math::LogOp>());
  add("log2", ofFloats<math::Log2Op>());
  add("log1p", ofFloats<math::Log1pOp>());
  add("sqrt", ofFloats<math::SqrtOp>());
  add("rsqrt", ofFloats<math::RsqrtOp>());
  add("sin", ofFloats<math::SinOp>());
  add("cos", ofFloats<math::CosOp>());
  add("tan", ofFloats(tangent));
  add("log10", ofFloats(logToBase10));
  add("deg2rad",
      ofFloats([](Floats &f, Value x) { return f.mul(x, f.constant(llvm::numbers::pi / 180)); }));
  add("rad2deg", ofFloats([](Floats &f, Value x) {
        return f.mul(x, f.constant(180 * llvm::numbers::inv_pi));
      }));
  add("hardshrink", shrink(/*moves=*/false));
  add("softshrink", shrink(/*moves=*/true));
  add("tanh", ofFloats<math::TanhOp>());
  add("erf", ofFloats<math::ErfOp>());
  add("reciprocal", ofFloats([](Floats &f, Value x) { return f.div(f.constant(1), x); }));
  add("sigmoid", ofFloats([](Floats &f, Value x) { return f.sigmoid(x); }));
  add("silu",
      ofFloats([](Floats &f, Value x) { return f.div(x, f.add(f.exp(f.neg(x)), f.constant(1))); }));
  add("hardsigmoid", ofFloats([](Floats &f, Value x) {
        return f.div(f.min(f.max(f.add(x, f.constant(3)), 0), 6), f.constant(6));
      }));
  add("hardswish", ofFloats([](Floats &f, Value x) {
        return f.div(f.mul(x, f.min(f.max(f.add(x, f.constant(3)), 0), 6)), f.constant(6));
      }));
  add("frac", ofFloats([](Floats &f, Value x) { return f.sub(x, math::TruncOp::create(f.b, x)); }));
  add("gelu", gelu);
  add("elu", elu);
  add("celu", celu);
  add("selu", ofFloats(selu));
  add("mish", ofFloats(mish));
  add("log_sigmoid", ofFloats(logSigmoid));
  add("threshold", threshold);
  add("prelu", prelu);
  add("_prelu_kernel", prelu);
  add("nan_to_num", nanToNum);
  add("square",
      ofNumbers([](TensorBuilder &b, Value x) -> Value { return arith::MulFOp::create(b, x, x); },
                [](TensorBuilder &b, Value x) -> Value { return arith::MulIOp::create(b, x, x); }),
      "booleans and unsigned integers");
  add("leaky_relu", leakyRelu);
  add("softplus", softplus);
  add("glu", glu, "dimensions of unknown size");
  StringRef unsignedNumbers = "booleans and unsigned integers";
  add("relu6", relu6, unsignedNumbers);
  add("hardtanh", hardtanh, unsignedNumbers);
  add("neg",
      ofNumbers([](TensorBuilder &b, Value x) -> Value { return arith::NegFOp::create(b, x); },
                [](TensorBuilder &b, Value x) -> Value {
                  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(x.getType()));
                  return arith::SubIOp::create(b, zero, x);
                }),
      unsignedNumbers);
  add("abs",
      ofNumbers([](TensorBuilder &b, Value x) -> Value { return math::AbsFOp::create(b, x); },
                [](TensorBuilder &b, Value x) -> Value { return math::AbsIOp::create(b, x); }),
      unsignedNumbers);
  add("relu",
      ofNumbers(
          [](TensorBuilder &b, Value x) -> Value {
            Value zero = arith::ConstantOp::create(b, b.getZeroAttr(x.getType()));
            return arith::MaximumFOp::create(b, x, zero);
          },
          [](TensorBuilder &b, Value x) -> Value {
            Value zero = arith::ConstantOp::create(b, b.getZeroAttr(x.getType()));
            return arith::MaxSIOp::create(b, x, zero);
          }),
      unsignedNumbers);
  add("floor",
      ofNumbers([](TensorBuilder &b, Value x) -> Value { return math::FloorOp::create(b, x); },
                same),
      unsignedNumbers);
  add("ceil",
      ofNumbers([](TensorBuilder &b, Value x) -> Value { return math::CeilOp::create(b, x); },
                same),
      unsignedNumbers);
  add("trunc",
      ofNumbers([](TensorBuilder &b, Value x) -> Value { return math::TruncOp::create(b, x); },
                same),
      unsignedNumbers);
  add("round",
      ofNumbers([](TensorBuilder &b, Value x) -> Value { return math::RoundEvenOp::create(b, x); },
                same),
      unsignedNumbers);
  add("sign",
      ofNumbers(
          [](TensorBuilder &b, Value x) -> Value {
            Floats f{b, x.getType()};
            // The sign of NaN is 0, as in torch.
            Value hasSign = arith::CmpFOp::create(b, arith::CmpFPredicate::ONE, x, f.constant(0));
            Value sign = math::CopySignOp::create(b, f.constant(1), x);
            return f.select(hasSign, sign, f.constant(0));
          },
          [](TensorBuilder &b, Value x) -> Value {
            Value one = arith::ConstantOp::create(b, b.getIntegerAttr(x.getType(), 1));
            Value minusOne = arith::ConstantOp::create(b, b.getIntegerAttr(x.getType(), -1));
            return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, x, minusOne), one);
          }),
      unsignedNumbers);
  add("bitwise_not", bitwiseNot);
  add("logical_not", test(isZero));
  add("isnan", test(isNaN));
  add("isinf", test(isInf));
  add("isfinite", test(isFinite));
  add("dropout", dropout, "training mode");
  ops.add(
      "native_dropout.default",
      [](Call &call) -> LogicalResult {
        return call.error()
               << "expected a model in evaluation mode, got 'native_dropout'; call eval() on "
                  "the module before exporting it";
      },
      "all uses: torch writes it only in training mode");
  add("feature_dropout", dropout, "training mode");
  add("alpha_dropout", dropout, "training mode");
}
