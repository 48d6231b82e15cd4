//===- Reductions.cpp - aten's normalisations ------------------------------===//
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

/// In float32 for the halves, as torch does; `dtype` converts first.
static LogicalResult softmax(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank());
  DType dtype = call.dtype("dtype", x.dtype);
  if (!call.failed() && (!isFloat(dtype) || !TensorBuilder::converts(x.dtype, dtype)))
    return call.error() << "expected a softmax of floats, got " << str(x.dtype) << " as "
                        << str(dtype);
  if (call.failed())
    return failure();
  Tensor scores = call.b.castTo(call.b.castTo(x, dtype), computeType(dtype));
  Tensor init = call.b.empty(scores.sizes, scores.dtype);
  auto op = linalg::SoftmaxOp::create(call.b, TypeRange(init.value.getType()), scores.value,
                                      init.value, dim);
  scores.value = op.getResult()[0];
  return call.result(call.b.castTo(scores, dtype));
}

/// (x - mean) / sqrt(variance + eps) * weight + bias, over the last dimensions; each statistic in a
/// pass of its own.
static LogicalResult layerNorm(Call &call) {
  Tensor x = call.tensor("input");
  Sizes normalized = call.integers("normalized_shape");
  double eps = call.number("eps", 1e-5);
  SmallVector<Tensor> affine; // weight, then bias
  bool hasWeight = call.has("weight"), hasBias = call.has("bias");
  if (hasWeight)
    affine.push_back(call.tensor("weight"));
  if (hasBias)
    affine.push_back(call.tensor("bias"));
  if (call.failed())
    return failure();

  int64_t numKept = x.rank() - int64_t(normalized.size());
  std::optional<Size> count = Size(1);
  for (const Size &size : normalized)
    if (count)
      count = multiply(*count, size);
  bool fits =
      isFloat(x.dtype) && numKept >= 0 &&
      ArrayRef(x.sizes).drop_front(std::max<int64_t>(numKept, 0)) == ArrayRef<Size>(normalized);
  for (const Tensor &tensor : affine)
    fits &= isFloat(tensor.dtype) && tensor.sizes == normalized;
  if (!fits || !count || !count->constant())
    return call.error() << "expected floats, normalised over last dimensions of known sizes "
                        << str(normalized) << ", got " << str(x.dtype) << str(x.sizes);

  TensorBuilder &b = call.b;
  DType as = computeType(x.dtype);
  Value n = b.scalar(as, double(*count->constant())), epsilon = b.scalar(as, eps);
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
  SmallVector<Operand> operands = {{x, as}, {mean, as, kept}, {inverse, as, kept}};
  for (const Tensor &tensor : affine)
    operands.push_back({tensor, as});
  return call.result(b.elementwise(x.sizes, x.dtype, operands, [&](ValueRange element) {
    Value y = arith::SubFOp::create(b, element[0], element[1]);
    y = arith::MulFOp::create(b, y, element[2]);
    if (hasWeight)
      y = arith::MulFOp::create(b, y, element[3]);
    if (hasBias)
      y = arith::AddFOp::create(b, y, element.back());
    return y;
  }));
}

void attn::pt2::addReductions(AtenOps &ops) {
  ops["torch.ops.aten.softmax.int"] = softmax;
  ops["torch.ops.aten.layer_norm.default"] = layerNorm;
}
