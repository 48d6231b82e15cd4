//===- Normalisation.cpp - aten's layer norm and similar ops ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn::pt2;

namespace {
/// A tensor that is normalised over its last dimensions, and the parameters.
struct Normalised {
  Tensor x;
  int64_t numKept;
  Size count; // number of elements of the normalised dimensions
  std::optional<Tensor> weight, bias;
  std::optional<double> eps;
};

struct Statistics {
  Tensor mean, inverse; // their sizes are the first numKept dimensions
};
} // namespace

static Value numberOf(TensorBuilder &b, const Size &count, DType as) {
  if (std::optional<int64_t> known = count.constant())
    return b.scalar(as, double(*known));
  Value number = arith::IndexCastOp::create(b, b.getI64Type(), b.indexOf(count));
  return b.convert(number, DType::I64, as);
}

/// The mean, and 1 / sqrt(variance + eps), each computed in its own pass over the elements.
static Statistics statisticsOf(TensorBuilder &b, const Tensor &x, int64_t numKept,
                               const Size &count, double eps) {
  DType as = computeType(x.dtype);
  Value n = numberOf(b, count, as), epsilon = b.scalar(as, eps);
  AffineMap kept =
      AffineMap::getMultiDimIdentityMap(x.rank(), b.getContext()).getSliceMap(0, numKept);
  Tensor sum =
      b.sum(x.sizes, numKept, as, Operand{x, as}, [](ValueRange element) { return element[0]; });
  Tensor mean = b.elementwise(sum.sizes, as, Operand{sum, as}, [&](ValueRange element) -> Value {
    return arith::DivFOp::create(b, element[0], n);
  });
  Tensor squares =
      b.sum(x.sizes, numKept, as, {{x, as}, {mean, as, kept}}, [&](ValueRange element) -> Value {
        Value centred = arith::SubFOp::create(b, element[0], element[1]);
        return arith::MulFOp::create(b, centred, centred);
      });
  Tensor inverse =
      b.elementwise(sum.sizes, as, Operand{squares, as}, [&](ValueRange element) -> Value {
        Value variance = arith::DivFOp::create(b, element[0], n);
        return math::RsqrtOp::create(b, arith::AddFOp::create(b, variance, epsilon));
      });
  return {mean, inverse};
}

/// `tensor` in the type that the file states for result `i`: a statistic of half precision has this precision or f32.
static Tensor castToStated(Call &call, const Tensor &tensor, unsigned i) {
  DType stated = call.expected(i).dtype;
  return isFloat(stated) ? call.b.castTo(tensor, stated) : tensor;
}

/// Reads the arguments of layer_norm and rms_norm.
static FailureOr<Normalised> readNormalised(Call &call) {
  Normalised in;
  in.x = call.tensor("input");
  Sizes normalized = call.integers("normalized_shape");
  if (call.has("weight"))
    in.weight = call.tensor("weight");
  if (call.has("bias"))
    in.bias = call.tensor("bias");
  if (call.has("eps"))
    in.eps = call.number("eps");
  if (call.failed())
    return failure();
  in.numKept = in.x.rank() - int64_t(normalized.size());
  std::optional<Size> count = Size(1);
  for (const Size &size : normalized)
    if (count)
      count = multiply(*count, size);
  bool fits = isFloat(in.x.dtype) && in.numKept >= 0 &&
              ArrayRef(in.x.sizes).drop_front(std::max<int64_t>(in.numKept, 0)) ==
                  ArrayRef<Size>(normalized);
  for (const std::optional<Tensor> &tensor : {in.weight, in.bias})
    fits &= !tensor || (isFloat(tensor->dtype) && tensor->sizes == normalized);
  if (!fits || !count)
    return call.error() << "expected floats, normalised over last dimensions of sizes "
                        << str(normalized) << ", got " << str(in.x.dtype) << str(in.x.sizes);
  in.count = *count;
  return in;
}

/// (x - mean) / sqrt(variance + eps) * weight + bias, over the last dimensions. The native form also returns the mean
/// and the inverse standard deviation.
static std::function<LogicalResult(Call &)> layerNorm(bool returnsStatistics) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Normalised> in = readNormalised(call);
    if (failed(in))
      return failure();
    TensorBuilder &b = call.b;
    const Tensor &x = in->x;
    DType as = computeType(x.dtype);
    Statistics statistics = statisticsOf(b, x, in->numKept, in->count, in->eps.value_or(1e-5));
    AffineMap kept =
        AffineMap::getMultiDimIdentityMap(x.rank(), b.getContext()).getSliceMap(0, in->numKept);
    SmallVector<Operand> operands = {
        {x, as}, {statistics.mean, as, kept}, {statistics.inverse, as, kept}};
    for (const std::optional<Tensor> &tensor : {in->weight, in->bias})
      if (tensor)
        operands.push_back({*tensor, as});
    if (failed(call.result(b.elementwise(x.sizes, x.dtype, operands, [&](ValueRange element) {
          Value y = arith::SubFOp::create(b, element[0], element[1]);
          y = arith::MulFOp::create(b, y, element[2]);
          if (in->weight)
            y = arith::MulFOp::create(b, y, element[3]);
          if (in->bias)
            y = arith::AddFOp::create(b, y, element.back());
          return y;
        }))))
      return failure();
    if (!returnsStatistics)
      return success();
    Sizes sizes = x.sizes;
    std::fill(sizes.begin() + in->numKept, sizes.end(), Size(1));
    for (const auto &[i, tensor] :
         llvm::enumerate(std::array{statistics.mean, statistics.inverse})) {
      FailureOr<Tensor> view = viewAs(call, castToStated(call, tensor, i + 1), sizes);
      if (failed(view) || failed(call.result(*view)))
        return failure();
    }
    return success();
  };
}

/// x / sqrt(mean of x^2 + eps) * weight. The default of eps is the machine epsilon of the type in which torch computes.
static LogicalResult rmsNorm(Call &call) {
  FailureOr<Normalised> in = readNormalised(call);
  if (failed(in))
    return failure();
  TensorBuilder &b = call.b;
  const Tensor &x = in->x;
  DType as = computeType(x.dtype);
  double eps = in->eps.value_or(as == DType::F64 ? 0x1p-52 : 0x1p-23);
  AffineMap kept =
      AffineMap::getMultiDimIdentityMap(x.rank(), b.getContext()).getSliceMap(0, in->numKept);
  Tensor squares =
      b.sum(x.sizes, in->numKept, as, Operand{x, as}, [&](ValueRange element) -> Value {
        return arith::MulFOp::create(b, element[0], element[0]);
      });
  Value n = numberOf(b, in->count, as), epsilon = b.scalar(as, eps);
  Tensor inverse =
      b.elementwise(squares.sizes, as, Operand{squares, as}, [&](ValueRange element) -> Value {
        Value mean = arith::DivFOp::create(b, element[0], n);
        return math::RsqrtOp::create(b, arith::AddFOp::create(b, mean, epsilon));
      });
  SmallVector<Operand> operands = {{x, as}, {inverse, as, kept}};
  if (in->weight)
    operands.push_back({*in->weight, as});
  return call.result(b.elementwise(x.sizes, x.dtype, operands, [&](ValueRange element) -> Value {
    Value y = arith::MulFOp::create(b, element[0], element[1]);
    return in->weight ? Value(arith::MulFOp::create(b, y, element[2])) : y;
  }));
}

/// Normalises over groups of channels (dimension 1), or over each channel if `groupsName` is empty, and over all
/// dimensions that follow. The native form also returns the mean and the inverse standard deviation.
static std::function<LogicalResult(Call &)> groupNorm(StringRef groupsName) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor("input");
    bool isNative = groupsName == "group";
    std::optional<Tensor> weight, bias;
    if (call.has("weight"))
      weight = call.tensor("weight");
    if (call.has("bias"))
      bias = call.tensor("bias");
    double eps = call.number("eps", 1e-5);
    // These sizes follow from the input.
    if (isNative)
      for (StringRef name : {"N", "C", "HxW"})
        call.integer(name);
    // This is instance_norm, which in training mode would update its running statistics.
    if (groupsName.empty()) {
      for (StringRef name : {"running_mean", "running_var"})
        if (call.has(name))
          return call.error() << "expected instance normalisation '" << call.module()
                              << "' in evaluation mode, got training mode; call eval() on the "
                                 "module before exporting it";
      call.number("momentum", 0.1);
    }
    std::optional<int64_t> channels = x.rank() >= 2 ? x.sizes[1].constant() : std::nullopt;
    int64_t groups = groupsName.empty() ? channels.value_or(0) : call.constant(groupsName);
    if (call.failed())
      return failure();
    bool fits = channels && groups > 0 && *channels % groups == 0 && isFloat(x.dtype);
    std::optional<Size> count = fits ? std::optional(Size(*channels / groups)) : std::nullopt;
    for (const Size &size : ArrayRef(x.sizes).drop_front(std::min<int64_t>(x.rank(), 2)))
      count = count ? multiply(*count, size) : std::nullopt;
    for (const std::optional<Tensor> &tensor : {weight, bias})
      fits = fits && (!tensor || (tensor->rank() == 1 && tensor->sizes[0] == x.sizes[1]));
    if (!fits || !count)
      return call.error() << "expected floats (n, channels, ...) of a known number of channels, in "
                             "groups that divide it, got "
                          << str(x.dtype) << str(x.sizes) << " and " << groups;
    Sizes grouped = x.sizes;
    grouped[1] = groups;
    grouped.insert(grouped.begin() + 2, Size(*channels / groups));
    FailureOr<Tensor> view = viewAs(call, x, grouped);
    if (failed(view))
      return failure();
    TensorBuilder &b = call.b;
    DType as = computeType(x.dtype);
    Statistics statistics = statisticsOf(b, *view, 2, *count, eps);
    auto mapTo = [&](ArrayRef<unsigned> dims) {
      return AffineMap::getMultiDimMapWithTargets(grouped.size(), dims, b.getContext());
    };
    SmallVector<Operand> operands = {
        {*view, as}, {statistics.mean, as, mapTo({0, 1})}, {statistics.inverse, as, mapTo({0, 1})}};
    for (const std::optional<Tensor> &tensor : {weight, bias}) {
      if (!tensor)
        continue;
      FailureOr<Tensor> split = viewAs(call, *tensor, {Size(groups), Size(*channels / groups)});
      if (failed(split))
        return failure();
      operands.push_back({*split, as, mapTo({1, 2})});
    }
    Tensor result = b.elementwise(grouped, x.dtype, operands, [&](ValueRange element) {
      Value y = arith::SubFOp::create(b, element[0], element[1]);
      y = arith::MulFOp::create(b, y, element[2]);
      if (weight)
        y = arith::MulFOp::create(b, y, element[3]);
      if (bias)
        y = arith::AddFOp::create(b, y, element.back());
      return y;
    });
    FailureOr<Tensor> flat = viewAs(call, result, x.sizes);
    if (failed(flat) || failed(call.result(*flat)))
      return failure();
    if (!isNative)
      return success();
    for (const auto &[i, tensor] : llvm::enumerate(std::array{statistics.mean, statistics.inverse}))
      if (failed(call.result(castToStated(call, tensor, i + 1))))
        return failure();
    return success();
  };
}

/// The mean and the variance of each channel of (n, channels, ...). Fails if a channel has 2^63 elements or more.
static FailureOr<std::pair<Tensor, Tensor>> statisticsOfChannels(TensorBuilder &b, const Tensor &x) {
  DType as = computeType(x.dtype);
  AffineMap channel = AffineMap::get(x.rank(), 0, b.getAffineDimExpr(1));
  std::optional<Size> count = Size(1);
  SmallVector<int64_t> others = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
  others.erase(others.begin() + 1);
  for (int64_t dim : others)
    count = count ? multiply(*count, x.sizes[dim]) : std::nullopt;
  if (!count)
    return failure();
  Value n = numberOf(b, *count, as);
  auto mean = [&](const Tensor &sum) {
    return b.elementwise(sum.sizes, as, Operand{sum, as}, [&](ValueRange e) -> Value {
      return arith::DivFOp::create(b, e[0], n);
    });
  };
  Tensor first =
      mean(b.sum(x.sizes, others, as, Operand{x, as}, [](ValueRange e) { return e[0]; }));
  Tensor second = mean(b.sum(x.sizes, others, as, {{x, as}, {first, as, channel}},
                             [&](ValueRange e) -> Value {
                               Value centred = arith::SubFOp::create(b, e[0], e[1]);
                               return arith::MulFOp::create(b, centred, centred);
                             }));
  return std::pair(first, second);
}

/// (x - mean) / sqrt(variance + eps) * weight + bias for each channel. The mean and the variance are the running
/// statistics from training. If there are none, they are computed from x. The native forms have additional results,
/// for gradients.
static LogicalResult batchNorm(Call &call) {
  if (call.flag("use_input_stats"))
    return groupNorm("")(call);
  Tensor x = call.tensor("input");
  bool isOfInput = !call.has("running_mean") && !call.has("running_var");
  std::optional<Tensor> mean, variance, weight, bias;
  if (!isOfInput) {
    mean = call.tensor("running_mean");
    variance = call.tensor("running_var");
  }
  if (call.has("weight"))
    weight = call.tensor("weight");
  if (call.has("bias"))
    bias = call.tensor("bias");
  bool isTraining = call.flag("training");
  call.number("momentum", 0.1);
  double eps = call.number("eps", 1e-5);
  if (call.failed())
    return failure();
  if (isTraining && !isOfInput)
    return call.error() << "expected batch normalisation '" << call.module()
                        << "' in evaluation mode, got training mode; call eval() on the module "
                           "before exporting it";
  bool fits = x.rank() >= 2 && isFloat(x.dtype);
  for (const std::optional<Tensor> &tensor : {mean, variance, weight, bias})
    fits = fits && (!tensor || (tensor->rank() == 1 && tensor->sizes[0] == x.sizes[1]));
  if (!fits)
    return call.error() << "expected floats (n, channels, ...) and statistics of the channels, got "
                        << str(x.dtype) << str(x.sizes);
  TensorBuilder &b = call.b;
  if (isOfInput) {
    FailureOr<std::pair<Tensor, Tensor>> statistics = statisticsOfChannels(b, x);
    if (failed(statistics))
      return call.error() << "expected channels of fewer than 2^63 elements, got " << str(x.sizes);
    std::tie(mean, variance) = *statistics;
  }
  DType as = computeType(x.dtype);
  AffineMap channel = AffineMap::get(x.rank(), 0, b.getAffineDimExpr(1));
  SmallVector<Operand> operands = {{x, as}, {*mean, as, channel}, {*variance, as, channel}};
  for (const std::optional<Tensor> &tensor : {weight, bias})
    if (tensor)
      operands.push_back({*tensor, as, channel});
  Value epsilon = b.scalar(as, eps);
  Tensor result = b.elementwise(x.sizes, x.dtype, operands, [&](ValueRange element) {
    Value y = arith::SubFOp::create(b, element[0], element[1]);
    Value inverse = math::RsqrtOp::create(b, arith::AddFOp::create(b, element[2], epsilon));
    y = arith::MulFOp::create(b, y, inverse);
    if (weight)
      y = arith::MulFOp::create(b, y, element[3]);
    if (bias)
      y = arith::AddFOp::create(b, y, element.back());
    return y;
  });
  return failed(call.result(result)) ? failure() : call.skipResults();
}

/// v / |v| * g, where the norm is over all dimensions except `dim`. _weight_norm_interface also returns the norm.
static std::function<LogicalResult(Call &)> weightNorm(bool returnsNorm) {
  return [=](Call &call) -> LogicalResult {
    Tensor v = call.tensor("v"), g = call.tensor("g");
    int64_t dim = call.dim("dim", v.rank(), 0);
    if (call.failed())
      return failure();
    Sizes sizes(v.rank(), Size(1));
    sizes[dim] = v.sizes[dim];
    if (!isFloat(v.dtype) || g.dtype != v.dtype || g.sizes != sizes)
      return call.error() << "expected floats and a factor " << str(v.dtype) << str(sizes)
                          << ", got " << str(v.dtype) << str(v.sizes) << " and " << str(g.dtype)
                          << str(g.sizes);
    TensorBuilder &b = call.b;
    DType as = computeType(v.dtype);
    SmallVector<int64_t> others = llvm::to_vector(llvm::seq<int64_t>(0, v.rank()));
    others.erase(others.begin() + dim);
    Tensor squares = b.sum(
        v.sizes, others, as, Operand{v, as},
        [&](ValueRange x) -> Value { return arith::MulFOp::create(b, x[0], x[0]); });
    Tensor norm =
        b.elementwise(squares.sizes, as, Operand{squares, as},
                      [&](ValueRange x) -> Value { return math::SqrtOp::create(b, x[0]); });
    AffineMap along = AffineMap::get(v.rank(), 0, b.getAffineDimExpr(dim));
    Tensor result = b.elementwise(
        v.sizes, v.dtype, {{v, as}, {g, as}, {norm, as, along}}, [&](ValueRange x) -> Value {
          return arith::MulFOp::create(b, x[0], arith::DivFOp::create(b, x[1], x[2]));
        });
    if (failed(call.result(result)) || !returnsNorm)
      return failure(call.failed());
    FailureOr<Tensor> wide = viewAs(call, norm, sizes);
    return failed(wide) ? failure() : call.result(castToStated(call, *wide, 1));
  };
}

void attn::pt2::addNormalisation(AtenOps &ops) {
  ops.add("layer_norm.default", layerNorm(false));
  ops.add("native_layer_norm.default", layerNorm(true));
  ops.add("rms_norm.default", rmsNorm);
  StringRef known = "a number of channels that is not known at compile time";
  ops.add("group_norm.default", groupNorm("num_groups"), known);
  ops.add("native_group_norm.default", groupNorm("group"), known);
  StringRef training = "training mode";
  ops.add("instance_norm.default", batchNorm, (known + "; training mode").str());
  ops.add("batch_norm.default", batchNorm, training);
  ops.add("native_batch_norm.default", batchNorm, "training mode; uses of the other results");
  ops.add("_native_batch_norm_legit_no_training.default", batchNorm, "uses of the other results");
  ops.add("_native_batch_norm_legit.no_stats", batchNorm, "uses of the other results");
  ops.add("_weight_norm.default", weightNorm(/*returnsNorm=*/false));
  ops.add("_weight_norm_interface.default", weightNorm(/*returnsNorm=*/true));
}
