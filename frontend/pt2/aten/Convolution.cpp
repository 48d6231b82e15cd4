//===- Convolution.cpp - aten's convolutions and im2col --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Models with attention may contain convolutions. A patch embedding, whose stride is the size of the kernel, becomes
// one product. Any other convolution becomes one op that adds products, and reads its image at sums of loops
// (isConvolution() in passes/Product.h); on CPUs, such an op is computed in register blocks like a product.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn::pt2;

namespace {
/// The parameters of a convolution of x (n, c, spatial...) with weight (o, c / groups, kernel...).
struct Window {
  SmallVector<int64_t> stride, padding, dilation;
  int64_t groups;
};
} // namespace

SmallVector<int64_t> attn::pt2::perDim(Call &call, StringRef name, int64_t count,
                                       ArrayRef<int64_t> otherwise) {
  SmallVector<int64_t> numbers = call.constants(name, ArrayRef<int64_t>());
  if (numbers.empty())
    numbers.assign(otherwise.begin(), otherwise.end());
  if (numbers.size() == 1)
    numbers.assign(count, numbers.front());
  if (int64_t(numbers.size()) != count)
    call.error() << "expected " << count << " numbers in '" << name << "', got " << numbers.size();
  for (int64_t number : numbers)
    if (number < 0 || number > kMaxDim)
      call.error() << "expected numbers from 0 to " << kMaxDim << " in '" << name << "', got "
                   << number;
  return numbers;
}

/// `x` with zeros around its last dimensions, the spatial ones.
static FailureOr<Tensor> padded(TensorBuilder &b, const Tensor &x, ArrayRef<int64_t> before,
                                ArrayRef<int64_t> after) {
  int64_t first = x.rank() - int64_t(before.size());
  Sizes sizes = x.sizes, offsets(x.rank(), Size(0));
  for (auto [i, width] : llvm::enumerate(before)) {
    std::optional<Size> size = add(x.sizes[first + i], Size(width + after[i]));
    if (!size)
      return failure();
    offsets[first + i] = width;
    sizes[first + i] = *size;
  }
  return sizes == x.sizes ? x : b.surround(x, b.scalar(x.dtype, int64_t(0)), offsets, sizes);
}

std::optional<Size> attn::pt2::windowsIn(Call &call, const Size &size, int64_t reach, int64_t stride) {
  call.requireAtMost(Size(reach), size);
  std::optional<Size> rest = subtract(size, Size(reach)),
                      steps = rest ? divideDown(*rest, Size(stride)) : std::nullopt;
  return steps && !call.failed() ? add(*steps, Size(1)) : std::nullopt;
}

/// The elements of `x` that each position of the kernel reads along the last dimension: (..., kernel, out) of (...,
/// in).
static Tensor separateLast(TensorBuilder &b, const Tensor &x, int64_t kernel, const Size &out,
                           const Window &window) {
  unsigned last = x.rank() - 1;
  Sizes sizes = x.sizes;
  sizes.pop_back();
  sizes.append({Size(kernel), out});
  SmallVector<AffineExpr> exprs;
  for (unsigned i = 0; i < last; ++i)
    exprs.push_back(b.getAffineDimExpr(i));
  exprs.push_back(b.getAffineDimExpr(last + 1) * window.stride.back() +
                  b.getAffineDimExpr(last) * window.dilation.back());
  AffineMap map = AffineMap::get(last + 2, 0, exprs, b.getContext());
  return b.elementwise(sizes, x.dtype, Operand{x, x.dtype, map},
                       [](ValueRange element) { return element[0]; });
}

static FailureOr<Tensor> convolve(Call &call, const Tensor &x, const Tensor &weight,
                                  const Window &window) {
  TensorBuilder &b = call.b;
  int64_t count = window.stride.size(), groups = window.groups;
  SmallVector<int64_t> kernel;
  Sizes out;
  for (int64_t i = 0; i < count; ++i) {
    std::optional<int64_t> k = weight.sizes[2 + i].constant();
    if (!k || *k < 1 || window.stride[i] < 1 || window.dilation[i] < 1)
      return call.error()
             << "expected a kernel of known size, and strides and dilations of at least 1, got "
             << str(weight.sizes);
    const Size &size = x.sizes[2 + i];
    int64_t reach = window.dilation[i] * (*k - 1) + 1;
    if (size.constant().value_or(reach) < reach)
      return call.error() << "expected a kernel no larger than the padded input, got "
                          << str(weight.sizes) << " over " << str(x.sizes);
    std::optional<Size> windows = windowsIn(call, size, reach, window.stride[i]);
    if (!windows)
      return failure();
    kernel.push_back(*k);
    out.push_back(*windows);
  }
  std::optional<int64_t> channels = x.sizes[1].constant(), outChannels = weight.sizes[0].constant();
  if (!channels || !outChannels || groups < 1 || *channels % groups != 0 ||
      *outChannels % groups != 0 || weight.sizes[1] != Size(*channels / groups))
    return call.error() << "expected numbers of channels that are multiples of " << groups
                        << ", got " << str(x.sizes) << " and " << str(weight.sizes);
  auto dim = [&](unsigned i) { return b.getAffineDimExpr(i); };
  MLIRContext *context = b.getContext();

  bool arePatches = groups == 1 && window.stride == kernel &&
                    llvm::all_of(window.dilation, [](int64_t d) { return d == 1; });
  if (arePatches) {
    // View as (n, c, out, kernel, out, kernel, ...).
    Tensor whole = x;
    Sizes split = {x.sizes[0], x.sizes[1]};
    for (int64_t i = 0; i < count; ++i) {
      std::optional<Size> covered = multiply(out[i], Size(kernel[i]));
      if (!covered)
        return failure();
      whole = b.slice(whole, 2 + i, 0, *covered);
      split.append({out[i], Size(kernel[i])});
    }
    FailureOr<Tensor> patches = viewAs(call, whole, split);
    if (failed(patches))
      return failure();
    // Transpose to (n, out..., c, kernel...) and make each patch a row. Then one product over (n, o, patch, element)
    // computes the convolution.
    SmallVector<int64_t> order = {0};
    std::optional<Size> numPatches = Size(1);
    int64_t patchSize = *channels;
    for (int64_t i = 0; i < count; ++i) {
      order.push_back(2 + 2 * i);
      numPatches = numPatches ? multiply(*numPatches, out[i]) : std::nullopt;
      patchSize *= kernel[i];
    }
    if (!numPatches)
      return failure();
    order.push_back(1);
    for (int64_t i = 0; i < count; ++i)
      order.push_back(3 + 2 * i);
    FailureOr<Tensor> rows = viewAs(call, b.transpose(*patches, order),
                                    {x.sizes[0], *numPatches, Size(patchSize)}),
                      factors = viewAs(call, weight, {weight.sizes[0], Size(patchSize)});
    if (failed(rows) || failed(factors))
      return failure();
    auto map = [&](ArrayRef<AffineExpr> exprs) { return AffineMap::get(4, 0, exprs, context); };
    Tensor result = b.contract({x.sizes[0], weight.sizes[0], *numPatches}, *rows, *factors,
                               map({dim(0), dim(2), dim(3)}), map({dim(1), dim(3)}),
                               map({dim(0), dim(1), dim(2)}));
    Sizes shape = {x.sizes[0], weight.sizes[0]};
    llvm::append_range(shape, out);
    return viewAs(call, result, shape);
  }

  // Reduce over the domain (n, group, o, out..., c, kernel...); without groups, there is no loop over groups.
  bool isGrouped = groups != 1;
  Tensor image = x, kernels = weight;
  Sizes domain = {x.sizes[0], weight.sizes[0]};
  if (isGrouped) {
    domain = {x.sizes[0], Size(groups), Size(*outChannels / groups)};
    Sizes splitX = {x.sizes[0], Size(groups), Size(*channels / groups)},
          splitWeight = {Size(groups), Size(*outChannels / groups), weight.sizes[1]};
    splitX.append(x.sizes.begin() + 2, x.sizes.end());
    splitWeight.append(weight.sizes.begin() + 2, weight.sizes.end());
    FailureOr<Tensor> grouped = viewAs(call, x, splitX),
                      factors = viewAs(call, weight, splitWeight);
    if (failed(grouped) || failed(factors))
      return failure();
    image = *grouped;
    kernels = *factors;
  }
  unsigned y = domain.size(), c = y + count, numDims = c + 1 + count;
  llvm::append_range(domain, out);
  domain.push_back(weight.sizes[1]);
  SmallVector<AffineExpr> ofX = {dim(0)}, ofWeight;
  if (isGrouped)
    ofX.push_back(dim(1));
  for (unsigned loop = 1; loop < y; ++loop)
    ofWeight.push_back(dim(loop));
  SmallVector<int64_t> reduced = {int64_t(c)};
  ofX.push_back(dim(c));
  ofWeight.push_back(dim(c));
  for (int64_t i = 0; i < count; ++i) {
    ofX.push_back(dim(y + i) * window.stride[i] + dim(c + 1 + i) * window.dilation[i]);
    ofWeight.push_back(dim(c + 1 + i));
    domain.push_back(kernel[i]);
    reduced.push_back(c + 1 + i);
  }
  if (window.stride.back() != 1) {
    // Vectors run along the last dimension of the output, so the elements that they read must be adjacent.
    image = separateLast(b, image, kernel.back(), out.back(), window);
    ofX.pop_back();
    ofX.append({dim(c + count), dim(c - 1)});
  }
  Tensor result;
  if (window.stride.back() != 1 && count == 1) {
    // No dimension of the image is read at sums of loops any more, so this is a product over (c, kernel).
    Sizes ofImage(ArrayRef<Size>(image.sizes).drop_back(3)),
        ofKernels(ArrayRef<Size>(kernels.sizes).drop_back(2));
    Size depth(*channels / groups * kernel[0]);
    ofImage.append({depth, out[0]});
    ofKernels.push_back(depth);
    FailureOr<Tensor> columns = viewAs(call, image, ofImage),
                      rows = viewAs(call, kernels, ofKernels);
    if (failed(columns) || failed(rows))
      return failure();
    auto map = [&](ArrayRef<AffineExpr> exprs) { return AffineMap::get(c + 1, 0, exprs, context); };
    SmallVector<AffineExpr> ofResult;
    for (unsigned loop = 0; loop < c; ++loop)
      ofResult.push_back(dim(loop));
    ofX.erase(ofX.end() - 2);
    ofWeight.pop_back();
    domain.truncate(c);
    result = b.contract(domain, *rows, *columns, map(ofWeight), map(ofX), map(ofResult));
  } else {
    DType as = computeType(x.dtype);
    result = b.reduce(
        domain, reduced, b.scalar(as, 0.0), as,
        {{image, as, AffineMap::get(numDims, 0, ofX, context)},
         {kernels, as, AffineMap::get(numDims, 0, ofWeight, context)}},
        [&](ValueRange e) -> Value { return arith::MulFOp::create(b, e[0], e[1]); },
        [&](Value sum, Value e) -> Value { return arith::AddFOp::create(b, sum, e); });
  }
  if (!isGrouped)
    return result;
  Sizes flat = {x.sizes[0], weight.sizes[0]};
  llvm::append_range(flat, out);
  return viewAs(call, result, flat);
}

/// The weight (o * phases, c / groups, kernel / phases...) of the convolution that computes a transposed convolution with
/// `weight` (c, o / groups, kernel...), whose kernels are reversed. A phase has every `phases`th element of a kernel.
static FailureOr<Tensor> reversedKernels(Call &call, const Tensor &weight, int64_t groups,
                                         ArrayRef<int64_t> phases) {
  TensorBuilder &b = call.b;
  int64_t ofGroup = *weight.sizes[0].constant() / groups,
          outChannels = groups * *weight.sizes[1].constant();
  // The domain is (groups, o / groups, phases..., c / groups, kernel / phases...).
  Sizes domain = {Size(groups), weight.sizes[1]};
  for (int64_t count : phases) {
    domain.push_back(Size(count));
    outChannels *= count;
  }
  unsigned c = domain.size();
  domain.push_back(Size(ofGroup));
  Sizes sizes = {Size(outChannels), Size(ofGroup)};
  for (auto [i, count] : llvm::enumerate(phases)) {
    domain.push_back(Size(*weight.sizes[2 + i].constant() / count));
    sizes.push_back(domain.back());
  }
  Tensor kernels = b.elementwise(domain, weight.dtype, {}, [&](ValueRange) -> Value {
    auto index = [&](unsigned loop) -> Value { return linalg::IndexOp::create(b, loop); };
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, value);
    };
    Value first = arith::MulIOp::create(b, index(0), constant(ofGroup));
    SmallVector<Value> indices = {arith::AddIOp::create(b, first, index(c)), index(1)};
    for (auto [i, count] : llvm::enumerate(phases)) {
      unsigned loop = c + 1 + i;
      Value reversed =
          arith::SubIOp::create(b, constant(*domain[loop].constant() - 1), index(loop));
      indices.push_back(arith::AddIOp::create(
          b, arith::MulIOp::create(b, reversed, constant(count)), index(2 + i)));
    }
    return tensor::ExtractOp::create(b, weight.value, indices);
  });
  return viewAs(call, kernels, sizes);
}

/// The image (n, o, sizes * phases...) of `x` (n, o * phases, sizes...): the phases of an element become neighbours.
static FailureOr<Tensor> interleave(Call &call, const Tensor &x, const Size &channels,
                                    ArrayRef<int64_t> phases) {
  if (llvm::all_of(phases, [](int64_t count) { return count == 1; }))
    return x;
  int64_t count = phases.size();
  Sizes apart = {x.sizes[0], channels}, joined = apart;
  SmallVector<int64_t> order = {0, 1};
  for (auto [i, phase] : llvm::enumerate(phases)) {
    std::optional<Size> size = multiply(x.sizes[2 + i], Size(phase));
    if (!size)
      return failure();
    apart.push_back(Size(phase));
    joined.push_back(*size);
    order.append({2 + count + int64_t(i), 2 + int64_t(i)});
  }
  apart.append(x.sizes.begin() + 2, x.sizes.end());
  FailureOr<Tensor> split = viewAs(call, x, apart);
  if (failed(split))
    return failure();
  return viewAs(call, call.b.transpose(*split, order), joined);
}

/// A transposed convolution as a convolution of stride 1 with reversed kernels.
///
/// If the stride divides the size of the kernel, the elements of the result with the same remainder by the stride read
/// the same part of the kernel, a phase. The convolution computes all phases as channels, and interleave() puts them in
/// order. Otherwise `stride - 1` zeros are put between two elements of `x`.
///
/// Zeros are also put around `x`. The padding removes elements at both ends of the result: first it leaves out such zeros,
/// and then elements of the result are cut off. A weight that is infinite or NaN gives NaN where it meets a zero, unlike in torch.
static FailureOr<Tensor> convolveTransposed(Call &call, const Tensor &x, const Tensor &weight,
                                            Window window, ArrayRef<int64_t> more) {
  TensorBuilder &b = call.b;
  std::optional<int64_t> channels = weight.sizes[0].constant();
  if (!channels || !weight.sizes[1].constant() || window.groups < 1 ||
      *channels % window.groups != 0 ||
      llvm::any_of(
          ArrayRef<Size>(weight.sizes).drop_front(2),
          [](const Size &size) { return size.constant().value_or(0) < 1; }))
    return call.error()
           << "expected a weight of known size, and a number of channels that is a multiple of "
           << window.groups << ", got " << str(weight.sizes);
  Sizes sizes = x.sizes, offsets(x.rank(), Size(0)), lengths;
  SmallVector<int64_t> steps(x.rank(), 1), phases, firsts;
  for (auto [i, stride, padding, dilation, added] :
       llvm::enumerate(window.stride, window.padding, window.dilation, more)) {
    int64_t kernel = *weight.sizes[2 + i].constant(), reach = dilation * (kernel - 1);
    if (stride < 1 || dilation < 1 || added >= std::max(stride, dilation))
      return call.error() << "expected strides and dilations of at least 1, and an output padding "
                             "below the stride or the dilation, got "
                          << stride << ", " << dilation << " and " << added;
    call.requireAtMost(Size(1), x.sizes[2 + i]);
    bool hasPhases = stride > 1 && dilation == 1 && kernel % stride == 0;
    // A zero on each side stands for `step` elements of the result.
    int64_t step = hasPhases ? stride : 1, most = reach / step;
    int64_t before = std::max<int64_t>(0, most - padding / step),
            behind = std::max<int64_t>(0, most + llvm::divideCeilSigned(added - padding, step));
    phases.push_back(step);
    firsts.push_back(padding - (most - before) * step);
    steps[2 + i] = stride / step;
    offsets[2 + i] = before;
    std::optional<Size> covered = multiply(x.sizes[2 + i], Size(stride)),
                        apart = multiply(x.sizes[2 + i], Size(steps[2 + i])),
                        whole = apart ? add(*apart, Size(1 - steps[2 + i] + before + behind))
                                      : std::nullopt,
                        all = covered ? add(*covered, Size(1 - stride + reach + added))
                                      : std::nullopt;
    if (!whole || !all)
      return failure();
    call.requireAtMost(Size(2 * padding + 1), *all);
    std::optional<Size> length = subtract(*all, Size(2 * padding));
    if (!length || call.failed())
      return failure();
    sizes[2 + i] = *whole;
    lengths.push_back(*length);
  }
  FailureOr<Tensor> kernels = reversedKernels(call, weight, window.groups, phases);
  if (failed(kernels))
    return failure();
  Tensor apart = x;
  if (sizes != x.sizes)
    apart = b.surround(x, b.scalar(x.dtype, int64_t(0)), offsets, sizes, steps);
  window.stride.assign(window.stride.size(), 1);
  FailureOr<Tensor> whole = convolve(call, apart, *kernels, window);
  if (failed(whole))
    return failure();
  whole = interleave(call, *whole, Size(window.groups * *weight.sizes[1].constant()), phases);
  for (auto [i, first] : llvm::enumerate(firsts))
    if (succeeded(whole) && (first > 0 || whole->sizes[2 + i] != lengths[i]))
      whole = b.slice(*whole, 2 + i, first, lengths[i]);
  return whole;
}

/// conv1d, conv2d, conv3d, their transposed forms, and the op `convolution`, to which torch decomposes them. A single
/// image may lack the batch dimension.
static LogicalResult convolution(Call &call, bool isTransposed) {
  Tensor x = call.tensor("input"), weight = call.tensor("weight");
  std::optional<Tensor> bias;
  if (call.has("bias"))
    bias = call.tensor("bias");
  if (call.failed())
    return failure();
  int64_t count = weight.rank() - 2;
  bool isSingle = x.rank() + 1 == weight.rank();
  if (isSingle) {
    Sizes batch = x.sizes;
    batch.insert(batch.begin(), Size(1));
    FailureOr<Tensor> view = viewAs(call, x, batch);
    if (failed(view))
      return failure();
    x = *view;
  }
  auto isTooLarge = [](const Size &size) { return size.constant().value_or(0) > kMaxDim; };
  if (count < 1 || count > 3 || x.rank() != weight.rank() || !isFloat(x.dtype) ||
      llvm::any_of(weight.sizes, isTooLarge) || weight.dtype != x.dtype ||
      (bias && (bias->rank() != 1 || (!isTransposed && bias->sizes[0] != weight.sizes[0]))))
    return call.error()
           << "expected floats (n, c, spatial...), weights (o, c, kernel...) and a bias "
              "(o), got "
           << str(x.dtype) << str(x.sizes) << " and " << str(weight.dtype) << str(weight.sizes);
  Window window;
  window.stride = perDim(call, "stride", count, 1);
  window.dilation = perDim(call, "dilation", count, 1);
  window.groups = call.constant("groups", 1);
  SmallVector<int64_t> more;
  if (isTransposed || call.has("output_padding"))
    more = perDim(call, "output_padding", count, 0);
  SmallVector<int64_t> before, after;
  if (call.isString("padding")) {
    std::string mode = call.string("padding");
    if (mode != "valid" && mode != "same")
      return call.error() << "expected padding 'valid' or 'same', got '" << mode << "'";
    for (int64_t i = 0; i < count && !call.failed(); ++i) {
      int64_t width = mode == "same"
                          ? window.dilation[i] * (weight.sizes[2 + i].constant().value_or(1) - 1)
                          : 0;
      before.push_back(width / 2);
      after.push_back(width - width / 2);
    }
  } else {
    before = after = perDim(call, "padding", count, 0);
  }
  if (call.failed())
    return failure();
  FailureOr<Tensor> product = failure();
  if (isTransposed) {
    window.padding = before;
    product = convolveTransposed(call, x, weight, window, more);
  } else if (FailureOr<Tensor> wide = padded(call.b, x, before, after); succeeded(wide)) {
    product = convolve(call, *wide, weight, window);
  }
  if (failed(product))
    return failure();
  if (bias && bias->sizes[0] != product->sizes[1])
    return call.error() << "expected a bias for each of " << product->sizes[1].str()
                        << " channels, got " << str(bias->sizes);
  DType as = product->dtype;
  AffineMap channel = AffineMap::get(x.rank(), 0, call.b.getAffineDimExpr(1));
  Tensor result =
      bias ? call.b.elementwise(
                 product->sizes, x.dtype, {{*product, as}, {*bias, as, channel}},
                 [&](ValueRange e) -> Value { return arith::AddFOp::create(call.b, e[0], e[1]); })
           : call.b.castTo(*product, x.dtype);
  if (!isSingle)
    return call.result(result);
  FailureOr<Tensor> only = viewAs(call, result, ArrayRef<Size>(result.sizes).drop_front());
  return failed(only) ? failure() : call.result(*only);
}

/// The windows of an image (n, c, h, w), each as a column: (n, c * kernel, windows).
static LogicalResult imageToColumns(Call &call) {
  Tensor x = call.tensor("self");
  SmallVector<int64_t> kernel = perDim(call, "kernel_size", 2, 1),
                       dilation = perDim(call, "dilation", 2, 1),
                       padding = perDim(call, "padding", 2, 0),
                       stride = perDim(call, "stride", 2, 1);
  if (call.failed())
    return failure();
  bool isSingle = x.rank() == 3;
  if (isSingle) {
    Sizes batch = x.sizes;
    batch.insert(batch.begin(), Size(1));
    FailureOr<Tensor> view = viewAs(call, x, batch);
    if (failed(view))
      return failure();
    x = *view;
  }
  bool fits = x.rank() == 4;
  Sizes out;
  for (int64_t i = 0; fits && i < 2; ++i) {
    std::optional<Size> size = add(x.sizes[2 + i], Size(2 * padding[i]));
    int64_t reach = dilation[i] * (kernel[i] - 1) + 1;
    fits = size && kernel[i] >= 1 && dilation[i] >= 1 && stride[i] >= 1 &&
           size->constant().value_or(reach) >= reach;
    std::optional<Size> windows = fits ? windowsIn(call, *size, reach, stride[i]) : std::nullopt;
    if (call.failed())
      return failure();
    out.push_back(windows.value_or(Size()));
    fits = windows.has_value();
  }
  if (!fits)
    return call.error() << "expected an image (n, c, height, width) that contains a window, got "
                        << str(x.sizes);
  TensorBuilder &b = call.b;
  auto dim = [&](unsigned i) { return b.getAffineDimExpr(i); };
  // The domain is (n, c, kernel..., windows...).
  Sizes sizes = {x.sizes[0], x.sizes[1], Size(kernel[0]), Size(kernel[1]), out[0], out[1]};
  AffineMap map = AffineMap::get(6, 0,
                                 {dim(0), dim(1), dim(4) * stride[0] + dim(2) * dilation[0],
                                  dim(5) * stride[1] + dim(3) * dilation[1]},
                                 b.getContext());
  FailureOr<Tensor> wide = padded(b, x, padding, padding);
  std::optional<Size> window = multiply(sizes[2], sizes[3]), count = multiply(out[0], out[1]),
                      rows = window ? multiply(x.sizes[1], *window) : std::nullopt;
  if (failed(wide) || !rows || !count)
    return failure();
  Tensor columns = b.elementwise(sizes, x.dtype, Operand{*wide, x.dtype, map},
                                 [](ValueRange element) { return element[0]; });
  Sizes flat = {x.sizes[0], *rows, *count};
  if (isSingle)
    flat.erase(flat.begin());
  FailureOr<Tensor> result = viewAs(call, columns, flat);
  return failed(result) ? failure() : call.result(*result);
}

void attn::pt2::addConvolution(AtenOps &ops) {
  auto plain = [](Call &call) { return convolution(call, /*isTransposed=*/false); };
  auto transposed = [](Call &call) { return convolution(call, /*isTransposed=*/true); };
  for (StringRef name : {"conv1d", "conv2d", "conv3d"}) {
    ops.add((name + ".default").str(), plain);
    ops.add((name + ".padding").str(), plain);
  }
  ops.add("conv_transpose1d.default", transposed);
  ops.add("conv_transpose2d.input", transposed);
  ops.add("conv_transpose3d.input", transposed);
  ops.add("convolution.default",
          [](Call &call) { return convolution(call, call.flag("transposed")); });
  ops.add("im2col.default", imageToColumns);
}
