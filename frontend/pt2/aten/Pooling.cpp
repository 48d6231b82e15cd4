//===- Pooling.cpp - aten's poolings and interpolations --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Each element of the result is computed from one window in each spatial dimension (the last dimensions). The position
// in the result determines where a window begins, possibly before the first element. A pooling uses only the elements
// of the window that exist; an interpolation reads the nearest element in place of a missing one. An antialiased
// interpolation is a product with a matrix of weights instead.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn::pt2;

static Value constantIndex(TensorBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

/// An operand that only determines the sizes of the last loops of an op of `rank` loops, as in the pooling ops of
/// linalg. Its elements are not read.
static Operand extentOf(TensorBuilder &b, ArrayRef<Size> sizes, int64_t rank, DType as) {
  AffineMap last =
      AffineMap::getMultiDimIdentityMap(rank, b.getContext()).getMinorSubMap(sizes.size());
  return {b.empty(sizes, as), as, last};
}

//===----------------------------------------------------------------------===//
// Poolings
//===----------------------------------------------------------------------===//

namespace {
/// The windows of one dimension of `in` elements.
struct Windows {
  Size in, out, kernel = 1;
  int64_t stride = 1, padding = 0, dilation = 1;
  /// Whether window i begins at floor(i * in / out) and ends at ceil((i + 1) * in / out).
  bool isAdaptive = false;

  Value begin(TensorBuilder &b, Value i) const {
    if (isAdaptive)
      return arith::DivUIOp::create(b, arith::MulIOp::create(b, i, b.indexOf(in)), b.indexOf(out));
    Value begin = arith::MulIOp::create(b, i, constantIndex(b, stride));
    return arith::SubIOp::create(b, begin, constantIndex(b, padding));
  }

  /// The end of window i, which includes at most `width` elements of padding after the last element.
  Value end(TensorBuilder &b, Value i, int64_t width) const {
    if (isAdaptive) {
      Value next = arith::AddIOp::create(b, i, constantIndex(b, 1));
      return arith::CeilDivUIOp::create(b, arith::MulIOp::create(b, next, b.indexOf(in)),
                                        b.indexOf(out));
    }
    Value end = arith::AddIOp::create(b, begin(b, i), b.indexOf(kernel));
    return arith::MinSIOp::create(b, end,
                                  arith::AddIOp::create(b, b.indexOf(in), constantIndex(b, width)));
  }
};

struct Pooling {
  Tensor x;
  SmallVector<Windows> windows;

  int64_t numLeading() const { return x.rank() - int64_t(windows.size()); }
  Sizes outSizes() const {
    Sizes sizes(ArrayRef<Size>(x.sizes).take_front(numLeading()));
    for (const Windows &one : windows)
      sizes.push_back(one.out);
    return sizes;
  }
  /// The domain: the dimensions of the result, then those of the windows.
  Sizes domain() const {
    Sizes sizes = outSizes();
    for (const Windows &one : windows)
      sizes.push_back(one.kernel);
    return sizes;
  }
  SmallVector<int64_t> reduced() const {
    return llvm::to_vector(llvm::seq<int64_t>(x.rank(), x.rank() + int64_t(windows.size())));
  }
};
} // namespace

/// Reads the input, whose last `count` sizes must not be 0.
static FailureOr<Pooling> readInput(Call &call, int64_t count) {
  Pooling pooling;
  pooling.x = call.tensor("self");
  const Tensor &x = pooling.x;
  if (call.failed())
    return failure();
  bool fits = isFloat(x.dtype) && (x.rank() == count + 1 || x.rank() == count + 2);
  for (const Size &size : ArrayRef(x.sizes).take_back(std::min<int64_t>(count, x.rank()))) {
    fits = fits && size.constant().value_or(1) > 0 && size.constant().value_or(1) <= kMaxDim;
    pooling.windows.emplace_back().in = size;
    if (!size.constant())
      call.requireAtMost(Size(1), size);
  }
  if (!fits)
    return call.error() << "expected floats (n, channels, spatial...) of " << count
                        << " spatial sizes that are not 0, got " << str(x.dtype) << str(x.sizes);
  return call.failed() ? FailureOr<Pooling>(failure()) : pooling;
}

static FailureOr<Pooling> readPooling(Call &call, int64_t count) {
  FailureOr<Pooling> pooling = readInput(call, count);
  if (failed(pooling))
    return failure();
  SmallVector<int64_t> kernel = perDim(call, "kernel_size", count, {});
  if (call.failed())
    return failure();
  SmallVector<int64_t> stride = perDim(call, "stride", count, kernel),
                       padding = perDim(call, "padding", count, 0),
                       dilation = perDim(call, "dilation", count, 1);
  bool roundsUp = call.flag("ceil_mode");
  if (call.failed())
    return failure();
  for (auto [i, one] : llvm::enumerate(pooling->windows)) {
    one.kernel = Size(kernel[i]);
    one.stride = stride[i];
    one.padding = padding[i];
    one.dilation = dilation[i];
    bool fits =
        one.stride >= 1 && one.dilation >= 1 && kernel[i] >= 1 && one.padding <= kernel[i] / 2;
    int64_t reach = fits ? one.dilation * (kernel[i] - 1) + 1 : 0;
    std::optional<Size> wide = add(one.in, Size(2 * one.padding));
    if (!fits || !wide || wide->constant().value_or(reach) < reach)
      return call.error() << "expected windows that fit, padded by at most half of their size, got "
                          << kernel[i] << " elements, stride " << one.stride << ", padding "
                          << one.padding << " and dilation " << one.dilation << " over "
                          << one.in.str();
    std::optional<Size> count = windowsIn(call, *wide, reach, one.stride);
    if (!count)
      return failure();
    one.out = *count;
    if (!roundsUp)
      continue;
    if (!wide->constant())
      return call.error() << "expected known sizes to round up, got " << one.in.str();
    int64_t in = *one.in.constant(),
            out = llvm::divideCeil(in + 2 * one.padding - reach, one.stride) + 1;
    // A window must not begin in the padding at the end.
    one.out = Size((out - 1) * one.stride >= in + one.padding ? out - 1 : out);
  }
  return pooling;
}

/// result = start, combined with the existing elements of each window.
static Tensor pool(TensorBuilder &b, const Pooling &pooling, DType as, Value start,
                   TensorBuilder::Combine combine) {
  const Tensor &x = pooling.x;
  Sizes domain = pooling.domain();
  ArrayRef<Size> kernel = ArrayRef<Size>(domain).drop_front(x.rank());
  return b.reduce(
      domain, pooling.reduced(), start, as, extentOf(b, kernel, domain.size(), as),
      [&](ValueRange) -> Value {
        SmallVector<Value> at;
        Value exists;
        for (int64_t dim = 0; dim < pooling.numLeading(); ++dim)
          at.push_back(linalg::IndexOp::create(b, dim));
        for (auto [i, one] : llvm::enumerate(pooling.windows)) {
          Value out = linalg::IndexOp::create(b, pooling.numLeading() + i),
                step = linalg::IndexOp::create(b, x.rank() + i);
          Value position = arith::AddIOp::create(
              b, one.begin(b, out), arith::MulIOp::create(b, step, constantIndex(b, one.dilation)));
          Value last = arith::SubIOp::create(b, b.indexOf(one.in), constantIndex(b, 1));
          Value nearest = arith::MinSIOp::create(b, position, last);
          nearest = arith::MaxSIOp::create(b, nearest, constantIndex(b, 0));
          Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, position, nearest);
          if (one.isAdaptive) {
            Value isBefore =
                arith::CmpIOp::create(b, arith::CmpIPredicate::slt, position, one.end(b, out, 0));
            isInside = arith::AndIOp::create(b, isInside, isBefore);
          }
          exists = exists ? arith::AndIOp::create(b, exists, isInside) : isInside;
          at.push_back(nearest);
        }
        Value element = b.convert(tensor::ExtractOp::create(b, x.value, at), x.dtype, as);
        return arith::SelectOp::create(b, exists, element, start);
      },
      combine);
}

/// The mean of each window. Padding counts as elements, unless `skipsPadding`.
static LogicalResult resultMean(Call &call, const Pooling &pooling, bool skipsPadding,
                                std::optional<int64_t> divisor) {
  TensorBuilder &b = call.b;
  const Tensor &x = pooling.x;
  DType as = computeType(x.dtype);
  Tensor sum = pool(b, pooling, as, b.scalar(as, 0.0), [&](Value sum, Value element) -> Value {
    return arith::AddFOp::create(b, sum, element);
  });
  return call.result(
      b.elementwise(sum.sizes, x.dtype, Operand{sum, as}, [&](ValueRange element) -> Value {
        if (divisor)
          return arith::DivFOp::create(b, element[0], b.scalar(as, double(*divisor)));
        Value count = constantIndex(b, 1);
        for (auto [i, one] : llvm::enumerate(pooling.windows)) {
          Value out = linalg::IndexOp::create(b, pooling.numLeading() + i),
                begin = one.begin(b, out);
          if (skipsPadding)
            begin = arith::MaxSIOp::create(b, begin, constantIndex(b, 0));
          Value end = one.end(b, out, skipsPadding ? 0 : one.padding);
          count = arith::MulIOp::create(b, count, arith::SubIOp::create(b, end, begin));
        }
        Value number = arith::IndexCastOp::create(b, b.getI64Type(), count);
        return arith::DivFOp::create(b, element[0], b.convert(number, DType::I64, as));
      }));
}

static std::function<LogicalResult(Call &)> meanPooling(int64_t count) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Pooling> pooling = readPooling(call, count);
    if (failed(pooling))
      return failure();
    bool countsPadding = call.flag("count_include_pad", true);
    std::optional<int64_t> divisor;
    if (call.has("divisor_override"))
      divisor = call.constant("divisor_override");
    if (call.failed())
      return failure();
    if (divisor == 0)
      return call.error() << "expected a divisor other than 0";
    return resultMean(call, *pooling, !countsPadding, divisor);
  };
}

/// Reads windows that divide each dimension into as many parts as `output_size` says.
static FailureOr<Pooling> readAdaptivePooling(Call &call, int64_t count) {
  FailureOr<Pooling> pooling = readInput(call, count);
  SmallVector<int64_t> sizes = perDim(call, "output_size", count, {});
  if (failed(pooling) || call.failed())
    return failure();
  for (auto [one, size] : llvm::zip(pooling->windows, sizes)) {
    if (size < 1)
      return call.error() << "expected sizes of at least 1, got " << size;
    one.out = Size(size);
    std::optional<Size> rest = remainder(one.in, one.out), whole = divideDown(one.in, one.out);
    if (!rest || !whole)
      return failure();
    one.isAdaptive = *rest != Size(0) || !whole->constant();
    one.stride = whole->constant().value_or(1);
    // The greatest number of elements of an adaptive window: in / out, rounded down, and one more element at each end,
    // which the window may cover in part.
    one.kernel = one.isAdaptive ? *add(*whole, Size(2)) : *whole;
  }
  return pooling;
}

static std::function<LogicalResult(Call &)> adaptiveMeanPooling(int64_t count) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Pooling> pooling = readAdaptivePooling(call, count);
    return failed(pooling)
               ? failure()
               : resultMean(call, *pooling, /*skipsPadding=*/true, /*divisor=*/std::nullopt);
  };
}

/// The greatest element of each window.
static LogicalResult resultMaximum(Call &call, const Pooling &pooling) {
  TensorBuilder &b = call.b;
  DType dtype = pooling.x.dtype;
  Value least = b.scalar(dtype, -std::numeric_limits<double>::infinity());
  Tensor best = pool(b, pooling, dtype, least, [&](Value best, Value element) -> Value {
    return arith::MaximumFOp::create(b, best, element);
  });
  return failed(call.result(best)) ? failure() : call.skipResults();
}

static std::function<LogicalResult(Call &)> maxPooling(int64_t count) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Pooling> pooling = readPooling(call, count);
    return failed(pooling) ? failure() : resultMaximum(call, *pooling);
  };
}

static std::function<LogicalResult(Call &)> adaptiveMaxPooling(int64_t count) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Pooling> pooling = readAdaptivePooling(call, count);
    return failed(pooling) ? failure() : resultMaximum(call, *pooling);
  };
}

//===----------------------------------------------------------------------===//
// Interpolations
//===----------------------------------------------------------------------===//

namespace {
/// The weight of an element at a distance of `distance` elements from the position of an element of the result.
using Kernel = Value (*)(TensorBuilder &b, Value distance);

struct Interpolation {
  int64_t taps;
  Kernel kernel;
};
} // namespace

static Value nearest(TensorBuilder &b, Value) { return b.scalar(DType::F32, 1.0); }

static Value linear(TensorBuilder &b, Value distance) {
  return arith::SubFOp::create(b, b.scalar(DType::F32, 1.0), distance);
}

/// The kernel of Keys' cubic convolution with a = -0.75.
static Value cubic(TensorBuilder &b, Value x) {
  auto constant = [&](double value) { return b.scalar(DType::F32, value); };
  auto add = [&](Value x, double y) -> Value { return arith::AddFOp::create(b, x, constant(y)); };
  auto mul = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, x, y); };
  const double a = -0.75;
  Value inner = add(mul(mul(add(mul(constant(a + 2), x), -(a + 3)), x), x), 1);
  Value outer = add(mul(add(mul(add(mul(constant(a), x), -5 * a), x), 8 * a), x), -4 * a);
  Value isInner = arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, x, constant(1));
  return arith::SelectOp::create(b, isInner, inner, outer);
}

static Tensor resampleBy(TensorBuilder &b, const Tensor &x, int64_t dim, const Size &size,
                         Value scale, bool alignsCorners, const Interpolation &by) {
  Sizes domain = x.sizes;
  domain[dim] = size;
  domain.push_back(by.taps);
  DType as = computeType(x.dtype);
  auto constant = [&](double value) { return b.scalar(DType::F32, value); };
  Tensor result = b.reduce(
      domain, x.rank(), b.scalar(as, 0.0), as, extentOf(b, Size(by.taps), domain.size(), as),
      [&](ValueRange) -> Value {
        auto toFloat = [&](Value index) {
          Value number = arith::IndexCastOp::create(b, b.getI64Type(), index);
          return b.convert(number, DType::I64, DType::F32);
        };
        Value i = toFloat(linalg::IndexOp::create(b, dim)),
              tap = linalg::IndexOp::create(b, x.rank());
        // As in torch, the position is computed in float32, because it decides which elements are used.
        Value position;
        bool atCentres = !alignsCorners && by.taps > 1;
        if (atCentres) {
          position =
              arith::MulFOp::create(b, scale, arith::AddFOp::create(b, i, constant(0.5)));
          position = arith::SubFOp::create(b, position, constant(0.5));
        } else {
          position = arith::MulFOp::create(b, scale, i);
        }
        if (by.taps == 2)
          position = arith::MaximumFOp::create(b, position, constant(0));
        Value floor = math::FloorOp::create(b, position);
        Value first = arith::IndexCastOp::create(b, b.getIndexType(),
                                                 arith::FPToSIOp::create(b, b.getI64Type(), floor));
        // The offsets of the elements from the floor of the position are 0 for one tap, 0 and 1 for two, and -1 to 2
        // for four.
        Value offset = arith::SubIOp::create(b, tap, constantIndex(b, (by.taps - 1) / 2));
        Value at = arith::AddIOp::create(b, first, offset);
        Value last = arith::SubIOp::create(b, b.indexOf(x.sizes[dim]), constantIndex(b, 1));
        at = arith::MaxSIOp::create(b, arith::MinSIOp::create(b, at, last), constantIndex(b, 0));
        Value fraction = arith::SubFOp::create(b, position, floor);
        Value distance =
            math::AbsFOp::create(b, arith::SubFOp::create(b, fraction, toFloat(offset)));
        SmallVector<Value> indices;
        for (int64_t d = 0; d < x.rank(); ++d)
          indices.push_back(d == dim ? at : Value(linalg::IndexOp::create(b, d)));
        Value element = b.convert(tensor::ExtractOp::create(b, x.value, indices), x.dtype, as);
        Value weight = b.convert(by.kernel(b, distance), DType::F32, as);
        return arith::MulFOp::create(b, element, weight);
      },
      [&](Value sum, Value term) -> Value { return arith::AddFOp::create(b, sum, term); });
  return result;
}

/// Resamples dimension `dim` of `x` to `size` elements. Neighbouring elements of the result are `scale` elements apart.
using Resample = std::function<Tensor(TensorBuilder &b, const Tensor &x, int64_t dim,
                                      const Size &size, Value scale, bool alignsCorners)>;

/// The distance between neighbouring elements of the result, in elements of the input. It is float32, as in torch. With
/// `ignoresFactor`, the factor is ignored if the result has as many elements as the input, or twice as many.
static Value distanceOf(TensorBuilder &b, const Size &in, const Size &out,
                        std::optional<double> factor, bool alignsCorners, bool ignoresFactor) {
  bool hasFactor = !alignsCorners && factor && *factor > 0;
  std::optional<Size> twice = multiply(in, Size(2));
  if (hasFactor && !(ignoresFactor && (in == out || twice == out))) {
    Value distance = b.scalar(DType::F32, double(float(1 / *factor)));
    if (!ignoresFactor || (in.constant() && out.constant()))
      return distance;
    for (auto [size, ratio] : {std::pair(in, 1.0), {twice.value_or(in), 0.5}}) {
      Value isSize = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.indexOf(size), b.indexOf(out));
      distance = arith::SelectOp::create(b, isSize, b.scalar(DType::F32, ratio), distance);
    }
    return distance;
  }
  if (in.constant() && out.constant()) {
    double x = *in.constant(), y = *out.constant();
    if (alignsCorners)
      return b.scalar(DType::F32, y > 1 ? double(float(x - 1) / float(y - 1)) : 0);
    return b.scalar(DType::F32, double(float(x) / float(y)));
  }
  auto toFloat = [&](const Size &size, int64_t less) {
    Value index = arith::SubIOp::create(b, b.indexOf(size), constantIndex(b, less));
    Value number = arith::IndexCastOp::create(b, b.getI64Type(), index);
    return b.convert(number, DType::I64, DType::F32);
  };
  Value above = toFloat(in, alignsCorners), below = toFloat(out, alignsCorners);
  Value zero = b.scalar(DType::F32, 0.0), quotient = arith::DivFOp::create(b, above, below);
  Value isOne = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, below, zero);
  return arith::SelectOp::create(b, isOne, zero, quotient);
}

/// Resamples the last `count` dimensions of (n, channels, spatial...).
static std::function<LogicalResult(Call &)> upsample(int64_t count, Resample resample,
                                                     bool isNearest = false) {
  return [=](Call &call) -> LogicalResult {
    bool isVector = call.target().ends_with(".vec");
    Tensor x = call.tensor(isVector ? "input" : "self");
    bool alignsCorners = call.flag("align_corners");
    SmallVector<std::optional<double>> scales(count);
    if (isVector && call.has("scale_factors")) {
      SmallVector<double> numbers = call.numbers("scale_factors");
      if (int64_t(numbers.size()) == count)
        scales.assign(numbers.begin(), numbers.end());
    } else if (!isVector) {
      SmallVector<StringRef> names = {"scales_d", "scales_h", "scales_w"};
      names.erase(names.begin(), names.end() - count);
      if (count == 1)
        names = {"scales"};
      for (auto [scale, name] : llvm::zip_equal(scales, names))
        if (call.has(name))
          scale = call.number(name);
    }
    if (call.has("output_size"))
      call.integers("output_size");
    const TensorMeta &meta = call.expected();
    if (call.failed())
      return failure();
    int64_t rank = count + 2;
    // float64 is not supported, because torch then computes the positions in float64 too.
    bool fits = x.rank() == rank && isFloat(x.dtype) && x.dtype != DType::F64 &&
                int64_t(meta.sizes.size()) == rank;
    for (int64_t dim = 2; fits && dim < rank; ++dim)
      fits = x.sizes[dim].constant().value_or(1) > 0 && meta.sizes[dim].constant().value_or(1) > 0;
    if (!fits)
      return call.error() << "expected floats of at most 32 bits, (n, channels, spatial...) of "
                          << count << " spatial sizes, got " << str(x.dtype) << str(x.sizes)
                          << " as " << str(meta.sizes);
    Tensor result = x;
    for (int64_t dim = rank - 1; dim >= 2; --dim) {
      const Size &in = x.sizes[dim], &out = meta.sizes[dim];
      call.requireAtMost(Size(1), in);
      call.requireAtMost(Size(1), out);
      if (call.failed())
        return failure();
      Value distance = distanceOf(call.b, in, out, scales[dim - 2], alignsCorners, isNearest);
      result = resample(call.b, result, dim, out, distance, alignsCorners);
    }
    return call.result(call.b.castTo(result, x.dtype));
  };
}

/// The weight of an element in an antialiased interpolation. `a` is the parameter of a cubic convolution; none for a
/// linear interpolation.
static Value smoothWeight(TensorBuilder &b, Value distance, std::optional<double> a) {
  auto constant = [&](double value) { return b.scalar(DType::F32, value); };
  auto add = [&](Value x, double y) -> Value { return arith::AddFOp::create(b, x, constant(y)); };
  auto mul = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, x, y); };
  auto isBelow = [&](double bound) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, distance, constant(bound));
  };
  Value x = distance, zero = constant(0);
  if (!a)
    return arith::SelectOp::create(b, isBelow(1), arith::SubFOp::create(b, constant(1), x), zero);
  Value inner = add(mul(mul(add(mul(constant(*a + 2), x), -(*a + 3)), x), x), 1);
  Value outer = mul(add(mul(add(mul(add(x, -5), x), 8), x), -4), constant(*a));
  outer = arith::SelectOp::create(b, isBelow(2), outer, zero);
  return arith::SelectOp::create(b, isBelow(1), inner, outer);
}

/// Resamples dimension `dim` of `x` to `size` elements by a product with a matrix of weights. The weights of each
/// element of the result add up to 1.
static Tensor resampleSmoothly(TensorBuilder &b, const Tensor &x, int64_t dim, const Size &size,
                               Value scale, std::optional<double> a) {
  Sizes sizes = {size, x.sizes[dim]};
  auto constant = [&](double value) { return b.scalar(DType::F32, value); };
  Tensor raw = b.elementwise(sizes, DType::F32, {}, [&](ValueRange) -> Value {
    auto centre = [&](int64_t loop) -> Value {
      Value number =
          arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, loop));
      return arith::AddFOp::create(b, b.convert(number, DType::I64, DType::F32), constant(0.5));
    };
    Value position = arith::MulFOp::create(b, scale, centre(0));
    Value distance = math::AbsFOp::create(b, arith::SubFOp::create(b, centre(1), position));
    // If the result is smaller than the input, widen the kernel, so that each element of the result averages all
    // elements of the input that it represents.
    Value isSmaller = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, scale, constant(1));
    Value density = arith::SelectOp::create(b, isSmaller,
                                            arith::DivFOp::create(b, constant(1), scale), constant(1));
    distance = arith::MulFOp::create(b, distance, density);
    return smoothWeight(b, distance, a);
  });
  Tensor total =
      b.sum(sizes, 1, DType::F32, Operand{raw, DType::F32}, [](ValueRange e) { return e[0]; });
  AffineMap ofRows = AffineMap::get(2, 0, b.getAffineDimExpr(0));
  Tensor weights =
      b.elementwise(sizes, x.dtype, {{raw, DType::F32}, {total, DType::F32, ofRows}},
                    [&](ValueRange e) -> Value { return arith::DivFOp::create(b, e[0], e[1]); });
  // The domain has the dimensions of the result, then the elements that are summed.
  int64_t rank = x.rank();
  Sizes result = x.sizes;
  result[dim] = size;
  SmallVector<AffineExpr> ofX;
  for (int64_t i = 0; i < rank; ++i)
    ofX.push_back(b.getAffineDimExpr(i == dim ? rank : i));
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(rank + 1, 0, exprs, b.getContext());
  };
  return b.castTo(
      b.contract(result, x, weights, map(ofX),
                 map({b.getAffineDimExpr(dim), b.getAffineDimExpr(rank)}),
                 AffineMap::getMultiDimIdentityMap(rank + 1, b.getContext()).getSliceMap(0, rank)),
      x.dtype);
}

void attn::pt2::addPooling(AtenOps &ops) {
  std::string known = "ceil_mode with unknown spatial sizes";
  for (int64_t count : {1, 2, 3}) {
    std::string end = "pool" + std::to_string(count) + "d";
    ops.add("avg_" + end + ".default", meanPooling(count), known);
    ops.add("adaptive_avg_" + end + ".default", adaptiveMeanPooling(count));
    ops.add("max_" + end + ".default", maxPooling(count), known);
    ops.add("max_" + end + "_with_indices.default", maxPooling(count),
            known + "; uses of the positions");
    ops.add("adaptive_max_" + end + ".default", adaptiveMaxPooling(count), "uses of the positions");
  }
  for (int64_t count : {2, 3})
    ops.add("_adaptive_avg_pool" + std::to_string(count) + "d.default", adaptiveMeanPooling(count));
  auto by = [](int64_t taps, Kernel kernel) -> Resample {
    return [=](TensorBuilder &b, const Tensor &x, int64_t dim, const Size &size, Value scale,
               bool alignsCorners) {
      return resampleBy(b, x, dim, size, scale, alignsCorners, {taps, kernel});
    };
  };
  auto smoothly = [](std::optional<double> a) -> Resample {
    return [=](TensorBuilder &b, const Tensor &x, int64_t dim, const Size &size, Value scale, bool) {
      return resampleSmoothly(b, x, dim, size, scale, a);
    };
  };
  for (StringRef overload : {".default", ".vec"}) {
    std::string limits = "float64";
    for (int64_t count : {1, 2, 3})
      ops.add(("upsample_nearest" + Twine(count) + "d" + overload).str(),
              upsample(count, by(1, nearest), /*isNearest=*/true), limits);
    for (auto [name, count] : {std::pair("linear1d", 1), {"bilinear2d", 2}, {"trilinear3d", 3}})
      ops.add(("upsample_" + Twine(name) + overload).str(), upsample(count, by(2, linear)), limits);
    ops.add(("upsample_bicubic2d" + overload).str(), upsample(2, by(4, cubic)), limits);
    ops.add(("_upsample_bilinear2d_aa" + overload).str(), upsample(2, smoothly(std::nullopt)), limits);
    ops.add(("_upsample_bicubic2d_aa" + overload).str(), upsample(2, smoothly(-0.5)), limits);
  }
}
