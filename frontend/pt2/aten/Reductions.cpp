//===- Reductions.cpp - aten ops that reduce dimensions --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/CheckedArithmetic.h"

#include <cmath>

using namespace mlir;
using namespace attn::pt2;

namespace {
/// A tensor, and the dimensions that an op reduces.
struct Reduced {
  Tensor x;
  SmallVector<int64_t> dims;
  bool keepsDims = false;
};
} // namespace

/// Reads the arguments. `dimName` is the argument with the dimensions; if `dimName` is empty, all dimensions are
/// reduced.
static FailureOr<Reduced> readReduced(Call &call, StringRef dimName) {
  Reduced read;
  read.x = dimName.empty() ? call.tensor("self") : call.tensorWithDims("self");
  if (dimName.empty())
    read.dims = llvm::to_vector(llvm::seq<int64_t>(0, read.x.rank()));
  else
    read.dims = call.dims(dimName, read.x.rank());
  read.keepsDims = call.flag("keepdim");
  if (call.failed())
    return failure();
  return read;
}

/// The sizes of `x` with 1 for `dims`, or without `dims`.
static Sizes reducedSizes(const Tensor &x, ArrayRef<int64_t> dims, bool keepsDims) {
  Sizes sizes;
  for (auto [i, size] : llvm::enumerate(x.sizes)) {
    if (!llvm::is_contained(dims, int64_t(i)))
      sizes.push_back(size);
    else if (keepsDims)
      sizes.push_back(Size(1));
  }
  return sizes;
}

static LogicalResult resultOf(Call &call, const Reduced &read, const Tensor &value) {
  if (!read.keepsDims)
    return call.result(value);
  FailureOr<Tensor> view = viewAs(call, value, reducedSizes(read.x, read.dims, true));
  return failed(view) ? failure() : call.result(*view);
}

/// An operand that reads `value`, which has the sizes of `x` without `dims`, at each element of `x`.
static Operand along(TensorBuilder &b, const Tensor &value, DType as, const Tensor &x,
                     ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> exprs;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (!llvm::is_contained(dims, i))
      exprs.push_back(b.getAffineDimExpr(i));
  return {value, as, AffineMap::get(x.rank(), 0, exprs, b.getContext())};
}

template <typename FloatOp, typename IntOp>
static Value create(TensorBuilder &b, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return FloatOp::create(b, x, y);
  return IntOp::create(b, x, y);
}

static Tensor sumOf(TensorBuilder &b, const Tensor &x, ArrayRef<int64_t> dims, DType as) {
  return b.sum(x.sizes, dims, as, Operand{x, as}, [](ValueRange element) { return element[0]; });
}

/// The product of the sizes of `x` in `dims`, minus `correction`, but at least 0.
static Value countOf(TensorBuilder &b, const Tensor &x, ArrayRef<int64_t> dims, DType as,
                     double correction = 0) {
  Value product = arith::ConstantIndexOp::create(b, 1);
  std::optional<int64_t> known = 1;
  for (int64_t dim : dims) {
    std::optional<int64_t> size = x.sizes[dim].constant();
    known = known && size ? llvm::checkedMul(*known, *size) : std::nullopt;
  }
  if (known)
    return b.scalar(as, std::max(double(*known) - correction, 0.0));
  for (int64_t dim : dims)
    product = arith::MulIOp::create(b, product, b.indexOf(x.sizes[dim]));
  Value count = b.convert(arith::IndexCastOp::create(b, b.getI64Type(), product), DType::I64, as);
  count = arith::SubFOp::create(b, count, b.scalar(as, correction));
  return arith::MaximumFOp::create(b, count, b.scalar(as, 0.0));
}

static Tensor dividedBy(TensorBuilder &b, const Tensor &x, DType dtype, Value divisor) {
  return b.elementwise(x.sizes, dtype, Operand{x, x.dtype}, [&](ValueRange element) -> Value {
    return arith::DivFOp::create(b, element[0], divisor);
  });
}

/// The sum. By default, integers and booleans are summed as int64.
static std::function<LogicalResult(Call &)> sum(StringRef dimName) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Reduced> read = readReduced(call, dimName);
    if (failed(read))
      return failure();
    DType dtype = call.dtype("dtype", isFloat(read->x.dtype) ? read->x.dtype : DType::I64);
    if (call.failed())
      return failure();
    if (!TensorBuilder::converts(read->x.dtype, dtype))
      return call.error() << "expected a sum in a type to which " << str(read->x.dtype)
                          << " converts, got " << str(dtype);
    // Sum booleans as int64 even if the result is a boolean, because additions of i1 would wrap around.
    DType as = dtype == DType::Bool ? DType::I64 : computeType(dtype);
    Tensor total = sumOf(call.b, read->x, read->dims, as);
    return resultOf(call, *read, call.b.castTo(total, dtype));
  };
}

static std::function<LogicalResult(Call &)> mean(StringRef dimName) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Reduced> read = readReduced(call, dimName);
    if (failed(read))
      return failure();
    DType dtype = call.dtype("dtype", read->x.dtype), as = computeType(dtype);
    if (!call.failed() && !isFloat(dtype))
      return call.error() << "expected a mean of floats, got " << str(dtype);
    if (call.failed())
      return failure();
    Tensor total = sumOf(call.b, read->x, read->dims, as);
    return resultOf(call, *read,
                    dividedBy(call.b, total, dtype, countOf(call.b, read->x, read->dims, as)));
  };
}

/// The sum of the squared differences from the mean, divided by n - correction for n elements.
static Tensor varianceOf(TensorBuilder &b, const Tensor &x, ArrayRef<int64_t> dims,
                         double correction) {
  DType as = computeType(x.dtype);
  Tensor mean = dividedBy(b, sumOf(b, x, dims, as), as, countOf(b, x, dims, as));
  Tensor squares = b.sum(x.sizes, dims, as, {{x, as}, along(b, mean, as, x, dims)},
                         [&](ValueRange element) -> Value {
                           Value centred = arith::SubFOp::create(b, element[0], element[1]);
                           return arith::MulFOp::create(b, centred, centred);
                         });
  return dividedBy(b, squares, as, countOf(b, x, dims, as, correction));
}

/// var and std, with the argument `correction` or `unbiased`, where true stands for a correction of 1, and false for 0.
/// var_mean and std_mean also return the mean.
static std::function<LogicalResult(Call &)> variance(StringRef dimName, bool isDeviation,
                                                     bool returnsMean = false) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Reduced> read = readReduced(call, dimName);
    double correction = call.has("correction")        ? call.number("correction")
                        : call.flag("unbiased", true) ? 1
                                                      : 0;
    if (failed(read) || call.failed())
      return failure();
    if (!isFloat(read->x.dtype))
      return call.error() << "expected floats, got " << str(read->x.dtype);
    TensorBuilder &b = call.b;
    Tensor value = varianceOf(b, read->x, read->dims, correction);
    if (isDeviation)
      value = b.elementwise(value.sizes, value.dtype, Operand{value, value.dtype},
                            [&](ValueRange x) -> Value { return math::SqrtOp::create(b, x[0]); });
    if (failed(resultOf(call, *read, b.castTo(value, read->x.dtype))))
      return failure();
    if (!returnsMean)
      return success();
    DType as = computeType(read->x.dtype);
    Tensor total = sumOf(b, read->x, read->dims, as);
    return resultOf(call, *read,
                    dividedBy(b, total, read->x.dtype, countOf(b, read->x, read->dims, as)));
  };
}

static Value lowest(TensorBuilder &b, DType dtype, bool isMax) {
  if (isFloat(dtype))
    return b.scalar(dtype, isMax ? -std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::infinity());
  unsigned bits = 8 * byteSize(dtype);
  APInt limit = isMax ? APInt::getSignedMinValue(bits) : APInt::getSignedMaxValue(bits);
  return b.scalar(dtype, limit.getSExtValue());
}

static Tensor extremeOf(TensorBuilder &b, const Tensor &x, ArrayRef<int64_t> dims, bool isMax) {
  return b.reduce(
      x.sizes, dims, lowest(b, x.dtype, isMax), x.dtype, Operand{x, x.dtype},
      [](ValueRange element) { return element[0]; },
      [&](Value best, Value y) {
        return isMax ? create<arith::MaximumFOp, arith::MaxSIOp>(b, best, y)
                     : create<arith::MinimumFOp, arith::MinSIOp>(b, best, y);
      });
}

/// The position along `dim` of the first element that is `best` or NaN.
static Tensor positionOf(Call &call, const Tensor &x, int64_t dim, const Tensor &best) {
  TensorBuilder &b = call.b;
  Value none = b.scalar(DType::I64, std::numeric_limits<int64_t>::max());
  Tensor found = b.reduce(
      x.sizes, dim, none, DType::I64, {{x, x.dtype}, along(b, best, x.dtype, x, dim)},
      [&](ValueRange element) -> Value {
        Value isBest;
        if (isFloat(x.dtype)) {
          isBest = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, element[0], element[1]);
          Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, element[0], element[0]);
          isBest = arith::OrIOp::create(b, isBest, isNaN);
        } else {
          isBest = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, element[0], element[1]);
        }
        Value i = arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, dim));
        return arith::SelectOp::create(b, isBest, i, none);
      },
      [&](Value first, Value i) -> Value { return arith::MinSIOp::create(b, first, i); });
  call.state().positions.try_emplace(found.value, x.sizes[dim]);
  return found;
}

/// Rejects unsigned numbers, and a maximum or minimum over no elements.
static LogicalResult checkExtreme(Call &call, const Reduced &read) {
  if (!isSigned(read.x.dtype))
    return call.error() << "expected signed numbers, got " << str(read.x.dtype);
  for (int64_t dim : read.dims)
    call.requireElement(read.x.sizes[dim], 0);
  return failure(call.failed());
}

static std::function<LogicalResult(Call &)> extreme(StringRef dimName, bool isMax) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Reduced> read = readReduced(call, dimName);
    if (failed(read) || failed(checkExtreme(call, *read)))
      return failure();
    return resultOf(call, *read, extremeOf(call.b, read->x, read->dims, isMax));
  };
}

/// The greatest or least element along one dimension, and its position.
static std::function<LogicalResult(Call &)> extremeAndPosition(bool isMax) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Reduced> read = readReduced(call, "dim");
    if (failed(read) || failed(checkExtreme(call, *read)))
      return failure();
    if (read->dims.size() != 1)
      return call.error() << "expected one dimension, got " << read->dims.size();
    Tensor best = extremeOf(call.b, read->x, read->dims, isMax);
    if (failed(resultOf(call, *read, best)))
      return failure();
    return resultOf(call, *read, positionOf(call, read->x, read->dims[0], best));
  };
}

/// The position of the greatest or least element along dimension `dim` or, if `dim` is missing, in the flattened
/// tensor.
static std::function<LogicalResult(Call &)> position(bool isMax) {
  return [=](Call &call) -> LogicalResult {
    bool hasDim = call.has("dim"), keepsDims = call.flag("keepdim");
    Tensor x = hasDim ? call.tensorWithDims("self") : call.tensor("self");
    Reduced read{x, {}, hasDim && keepsDims};
    if (hasDim)
      read.dims = {call.dim("dim", x.rank())};
    if (call.failed())
      return failure();
    if (!hasDim) {
      std::optional<Size> all = Size(1);
      for (const Size &size : x.sizes)
        if (all)
          all = multiply(*all, size);
      FailureOr<Tensor> flat = all ? viewAs(call, x, *all) : FailureOr<Tensor>(failure());
      if (failed(flat))
        return failure();
      read.x = *flat;
      read.dims = {0};
    }
    if (failed(checkExtreme(call, read)))
      return failure();
    Tensor best = extremeOf(call.b, read.x, read.dims, isMax),
           found = positionOf(call, read.x, read.dims[0], best);
    if (hasDim || !keepsDims)
      return resultOf(call, read, found);
    FailureOr<Tensor> view = viewAs(call, found, Sizes(x.rank(), Size(1)));
    return failed(view) ? failure() : call.result(*view);
  };
}

/// The product. By default, integers and booleans are multiplied as int64.
static std::function<LogicalResult(Call &)> product(StringRef dimName) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Reduced> read = readReduced(call, dimName);
    if (failed(read))
      return failure();
    const Tensor &x = read->x;
    DType dtype = call.dtype("dtype", isFloat(x.dtype) ? x.dtype : DType::I64);
    if (call.failed())
      return failure();
    if (!TensorBuilder::converts(x.dtype, dtype) || dtype == DType::Bool)
      return call.error() << "expected a product in a type to which " << str(x.dtype)
                          << " converts, other than bool, got " << str(dtype);
    TensorBuilder &b = call.b;
    DType as = computeType(dtype);
    Tensor total = b.reduce(
        x.sizes, read->dims, b.scalar(as, int64_t(1)), as, Operand{x, as},
        [](ValueRange element) { return element[0]; },
        [&](Value product, Value y) {
          return create<arith::MulFOp, arith::MulIOp>(b, product, y);
        });
    return resultOf(call, *read, b.castTo(total, dtype));
  };
}

/// log(sum of e^x), computed relative to the maximum if the maximum is finite.
static LogicalResult logSumExp(Call &call) {
  FailureOr<Reduced> read = readReduced(call, "dim");
  if (failed(read))
    return failure();
  const Tensor &x = read->x;
  TensorBuilder &b = call.b;
  DType dtype = isFloat(x.dtype) ? x.dtype : DType::F32, as = computeType(dtype);
  Tensor numbers = b.castTo(x, as);
  Tensor max = extremeOf(b, numbers, read->dims, /*isMax=*/true);
  Value zero = b.scalar(as, 0.0), infinity = b.scalar(as, std::numeric_limits<double>::infinity());
  auto finite = [&](Value max) -> Value {
    Value isFinite =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, math::AbsFOp::create(b, max), infinity);
    return arith::SelectOp::create(b, isFinite, max, zero);
  };
  Tensor total = b.reduce(
      x.sizes, read->dims, zero, as, {{numbers, as}, along(b, max, as, x, read->dims)},
      [&](ValueRange e) -> Value {
        return math::ExpOp::create(b, arith::SubFOp::create(b, e[0], finite(e[1])));
      },
      [&](Value sum, Value e) -> Value { return arith::AddFOp::create(b, sum, e); });
  Tensor result =
      b.elementwise(total.sizes, dtype, {{total, as}, {max, as}}, [&](ValueRange e) -> Value {
        return arith::AddFOp::create(b, math::LogOp::create(b, e[0]), finite(e[1]));
      });
  return resultOf(call, *read, result);
}

/// Whether any element, or every element, is not 0.
template <typename OpTy>
static std::function<LogicalResult(Call &)> quantifier(StringRef dimName, bool start) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Reduced> read = readReduced(call, dimName);
    if (failed(read))
      return failure();
    TensorBuilder &b = call.b;
    // Unlike in other ops, an empty list means no dimension.
    if (!dimName.empty() && call.has(dimName) && call.constants(dimName).empty())
      return call.result(b.castTo(read->x, DType::Bool));
    return resultOf(call, *read,
                    b.reduce(
                        read->x.sizes, read->dims, b.scalar(DType::Bool, int64_t(start)),
                        DType::Bool, Operand{read->x, computeType(read->x.dtype)},
                        [&](ValueRange element) { return b.isNonzero(element[0]); },
                        [&](Value sofar, Value x) -> Value { return OpTy::create(b, sofar, x); }));
  };
}

static LogicalResult countNonzero(Call &call) {
  FailureOr<Reduced> read = readReduced(call, "dim");
  if (failed(read))
    return failure();
  Tensor isSome = call.b.castTo(read->x, DType::Bool);
  return resultOf(call, *read, sumOf(call.b, isSome, read->dims, DType::I64));
}

/// The sum, or the product, of each element and the elements before it.
static std::function<LogicalResult(Call &)> cumulative(bool multiplies) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensorWithDims("self");
    int64_t dim = call.dim("dim", x.rank());
    DType dtype = call.dtype("dtype", isFloat(x.dtype) ? x.dtype : DType::I64);
    if (call.failed())
      return failure();
    // torch converts the elements before it adds or multiplies them.
    if (isFloat(x.dtype) && !isFloat(dtype))
      x = call.b.castTo(x, dtype);
    if (!TensorBuilder::converts(x.dtype, dtype))
      return call.error() << "expected a result of a type to which " << str(x.dtype)
                          << " converts, got " << str(dtype);
    TensorBuilder &b = call.b;
    DType as = computeType(dtype);
    // The domain is (i..., j), where j replaces dimension `dim` in the operand.
    Sizes domain = x.sizes;
    domain.push_back(x.sizes[dim]);
    SmallVector<AffineExpr> exprs;
    for (int64_t i = 0; i < x.rank(); ++i)
      exprs.push_back(b.getAffineDimExpr(i == dim ? x.rank() : i));
    AffineMap map = AffineMap::get(x.rank() + 1, 0, exprs, b.getContext());
    Value neutral = b.scalar(as, int64_t(multiplies));
    Tensor total = b.reduce(
        domain, x.rank(), neutral, as, Operand{x, as, map},
        [&](ValueRange element) -> Value {
          Value i = linalg::IndexOp::create(b, dim), j = linalg::IndexOp::create(b, x.rank());
          Value counts = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, j, i);
          return arith::SelectOp::create(b, counts, element[0], neutral);
        },
        [&](Value sofar, Value y) {
          return multiplies ? create<arith::MulFOp, arith::MulIOp>(b, sofar, y)
                            : create<arith::AddFOp, arith::AddIOp>(b, sofar, y);
        });
    return call.result(b.castTo(total, dtype));
  };
}

/// (sum |x|^order)^(1/order). For an infinite order, this is the greatest or the least |x|; for order 0, the number of
/// elements that are not 0.
static LogicalResult normOf(Call &call, const Reduced &read, double order) {
  DType dtype = call.dtype("dtype", read.x.dtype), as = computeType(dtype);
  if (call.failed())
    return failure();
  bool isMax = std::isinf(order) && order > 0, isMin = std::isinf(order) && order < 0;
  if (!isFloat(dtype) || std::isnan(order))
    return call.error() << "expected a norm of floats whose order is a number, got " << str(dtype)
                        << " and " << order;
  if (isMax || isMin)
    for (int64_t dim : read.dims)
      call.requireElement(read.x.sizes[dim], 0);
  if (call.failed())
    return failure();
  TensorBuilder &b = call.b;
  double start = isMin ? std::numeric_limits<double>::infinity() : 0;
  Tensor total = b.reduce(
      read.x.sizes, read.dims, b.scalar(as, start), as, Operand{b.castTo(read.x, dtype), as},
      [&](ValueRange x) -> Value {
        if (order == 0)
          return b.convert(b.isNonzero(x[0]), DType::Bool, as);
        if (order == 2)
          return arith::MulFOp::create(b, x[0], x[0]);
        Value magnitude = math::AbsFOp::create(b, x[0]);
        return order == 1 || isMax || isMin
                   ? magnitude
                   : Value(math::PowFOp::create(b, magnitude, b.scalar(as, order)));
      },
      [&](Value sofar, Value x) -> Value {
        return isMax   ? Value(arith::MaximumFOp::create(b, sofar, x))
               : isMin ? Value(arith::MinimumFOp::create(b, sofar, x))
                       : Value(arith::AddFOp::create(b, sofar, x));
      });
  if (order != 0 && order != 1 && !isMax && !isMin)
    total = b.elementwise(total.sizes, as, Operand{total, as}, [&](ValueRange x) -> Value {
      if (order == 2)
        return math::SqrtOp::create(b, x[0]);
      return math::PowFOp::create(b, x[0], b.scalar(as, 1 / order));
    });
  return resultOf(call, read, b.castTo(total, dtype));
}

static LogicalResult vectorNorm(Call &call) {
  FailureOr<Reduced> read = readReduced(call, "dim");
  double order = call.number("ord", 2);
  return failed(read) || call.failed() ? failure() : normOf(call, *read, order);
}

/// The norm of all elements, or along dimensions. An order is rejected unless there is one dimension, because with two
/// dimensions torch computes a matrix norm.
static LogicalResult norm(Call &call) {
  FailureOr<Reduced> read = readReduced(call, "dim");
  bool hasOrder = call.has("ord");
  double order = call.number("ord", 2);
  if (failed(read) || call.failed())
    return failure();
  if (hasOrder && read->dims.size() != 1)
    return call.error() << "expected a norm of vectors, got order " << order << " and "
                        << read->dims.size() << " dimensions";
  return normOf(call, *read, order);
}

/// sum x y / (max(|x|, eps) max(|y|, eps)) along a dimension
static LogicalResult cosineSimilarity(Call &call) {
  Tensor x = call.tensor("x1"), y = call.tensor("x2");
  double eps = call.number("eps", 1e-8);
  if (call.failed())
    return failure();
  std::optional<Sizes> sizes = TensorBuilder::broadcast({x.sizes, y.sizes});
  int64_t dim = call.dim("dim", sizes ? int64_t(sizes->size()) : 0, 1);
  if (call.failed())
    return failure();
  if (!sizes || x.dtype != y.dtype || !isFloat(x.dtype))
    return call.error() << "expected tensors of one floating-point type whose sizes broadcast, got "
                        << str(x.dtype) << str(x.sizes) << " and " << str(y.dtype) << str(y.sizes);
  TensorBuilder &b = call.b;
  DType as = computeType(x.dtype);
  auto sumOfProducts = [&](const Tensor &left, const Tensor &right) {
    return b.reduce(
        *sizes, dim, b.scalar(as, 0.0), as,
        {{left, as, b.broadcastMap(left.sizes, *sizes)},
         {right, as, b.broadcastMap(right.sizes, *sizes)}},
        [&](ValueRange e) -> Value { return arith::MulFOp::create(b, e[0], e[1]); },
        [&](Value sofar, Value e) -> Value { return arith::AddFOp::create(b, sofar, e); });
  };
  Tensor products = sumOfProducts(x, y), ofX = sumOfProducts(x, x), ofY = sumOfProducts(y, y);
  Value least = b.scalar(as, eps);
  auto norm = [&](Value squares) -> Value {
    return arith::MaximumFOp::create(b, math::SqrtOp::create(b, squares), least);
  };
  return call.result(b.elementwise(products.sizes, x.dtype, {{products, as}, {ofX, as}, {ofY, as}},
                                   [&](ValueRange e) -> Value {
                                     Value left = arith::DivFOp::create(b, e[0], norm(e[1]));
                                     return arith::DivFOp::create(b, left, norm(e[2]));
                                   }));
}

/// The softmax, in float32 for float16 and bfloat16 as in torch. The argument is first converted to `dtype`.
static std::function<LogicalResult(Call &)> softmax(bool isLog) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensorWithDims("self");
    int64_t dim = call.dim("dim", x.rank());
    DType dtype = call.dtype("dtype", x.dtype);
    bool widens = call.target().contains("aten._") && call.flag("half_to_float");
    if (!call.failed() && (!isFloat(dtype) || !TensorBuilder::converts(x.dtype, dtype) || widens))
      return call.error() << "expected a softmax of floats, got " << str(x.dtype) << " as "
                          << str(dtype);
    if (call.failed())
      return failure();
    TensorBuilder &b = call.b;
    Tensor scores = b.castTo(b.castTo(x, dtype), computeType(dtype));
    DType as = scores.dtype;
    if (!isLog) {
      Tensor init = b.empty(scores.sizes, as);
      auto op = linalg::SoftmaxOp::create(b, TypeRange(init.value.getType()), scores.value,
                                          init.value, dim);
      scores.value = op.getResult()[0];
      return call.result(b.castTo(scores, dtype));
    }
    // x - max - log(sum of e^(x - max))
    Tensor max = extremeOf(b, scores, dim, /*isMax=*/true);
    auto difference = [&](ValueRange x) -> Value { return arith::SubFOp::create(b, x[0], x[1]); };
    Tensor less =
        b.elementwise(scores.sizes, as, {{scores, as}, along(b, max, as, scores, dim)}, difference);
    Tensor total = b.reduce(
        scores.sizes, dim, b.scalar(as, 0.0), as, Operand{less, as},
        [&](ValueRange x) -> Value { return math::ExpOp::create(b, x[0]); },
        [&](Value sum, Value x) -> Value { return arith::AddFOp::create(b, sum, x); });
    Tensor log = b.elementwise(total.sizes, as, Operand{total, as},
                               [&](ValueRange x) -> Value { return math::LogOp::create(b, x[0]); });
    return call.result(b.castTo(
        b.elementwise(scores.sizes, as, {{less, as}, along(b, log, as, scores, dim)}, difference),
        dtype));
  };
}

void attn::pt2::addReductions(AtenOps &ops) {
  ops.add("sum.default", sum(""));
  ops.add("sum.dim_IntList", sum("dim"));
  ops.add("mean.default", mean(""));
  ops.add("mean.dim", mean("dim"));
  ops.add("var.default", variance("", false));
  ops.add("std.default", variance("", true));
  for (StringRef overload : {".dim", ".correction"}) {
    ops.add(("var" + overload).str(), variance("dim", false));
    ops.add(("std" + overload).str(), variance("dim", true));
    ops.add(("var_mean" + overload).str(), variance("dim", false, /*returnsMean=*/true));
    ops.add(("std_mean" + overload).str(), variance("dim", true, /*returnsMean=*/true));
  }
  StringRef noSign = "booleans and unsigned integers";
  ops.add("amax.default", extreme("dim", true), noSign);
  ops.add("amin.default", extreme("dim", false), noSign);
  ops.add("max.default", extreme("", true), noSign);
  ops.add("min.default", extreme("", false), noSign);
  ops.add("max.dim", extremeAndPosition(true), noSign);
  ops.add("min.dim", extremeAndPosition(false), noSign);
  ops.add("argmax.default", position(true), noSign);
  ops.add("argmin.default", position(false), noSign);
  for (StringRef overload : {".default", ".dim", ".dims"}) {
    StringRef dim = overload == ".default" ? "" : "dim";
    ops.add(("any" + overload).str(), quantifier<arith::OrIOp>(dim, false));
    ops.add(("all" + overload).str(), quantifier<arith::AndIOp>(dim, true));
  }
  ops.add("count_nonzero.default", countNonzero);
  ops.add("count_nonzero.dim_IntList", countNonzero);
  ops.add("cumsum.default", cumulative(/*multiplies=*/false));
  ops.add("cumprod.default", cumulative(/*multiplies=*/true));
  ops.add("prod.default", product(""));
  ops.add("prod.dim_int", product("dim"));
  ops.add("logsumexp.default", logSumExp);
  ops.add("cosine_similarity.default", cosineSimilarity);
  ops.add("linalg_norm.default", norm, "an order with several dimensions");
  ops.add("linalg_vector_norm.default", vectorNorm);
  ops.add("softmax.int", softmax(false));
  ops.add("_softmax.default", softmax(false), "half_to_float");
  ops.add("log_softmax.int", softmax(true));
  ops.add("_log_softmax.default", softmax(true), "half_to_float");
}
