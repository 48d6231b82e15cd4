//===- LinearAlgebra.cpp - aten's products ---------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn::pt2;

/// Products are defined on one floating-point type.
static LogicalResult checkTypes(Call &call, ArrayRef<Tensor> tensors) {
  for (const Tensor &tensor : tensors)
    if (!isFloat(tensor.dtype) || tensor.dtype != tensors.front().dtype)
      return call.error() << "expected factors of one floating-point type, got "
                          << str(tensors.front().dtype) << " and " << str(tensor.dtype);
  return success();
}

/// product + bias, the bias along the last dimension; rounded to `dtype` once.
static Tensor addBias(Call &call, const Tensor &product, const Tensor &bias) {
  DType type = product.dtype;
  return call.b.elementwise(
      product.sizes, bias.dtype, {{product, type}, {bias, type}},
      [&](ValueRange x) -> Value { return arith::AddFOp::create(call.b, x[0], x[1]); });
}

/// x (p..., k), W (n, k), b (n) -> x W^T + b (p..., n)
static LogicalResult linear(Call &call) {
  Tensor x = call.tensor("input"), weight = call.tensor("weight"), bias;
  bool hasBias = call.has("bias");
  if (hasBias)
    bias = call.tensor("bias");
  if (call.failed() || failed(checkTypes(call, {x, weight, hasBias ? bias : x})))
    return failure();
  if (x.rank() < 1 || weight.rank() != 2 || x.sizes.back() != weight.sizes[1] ||
      (hasBias && (bias.rank() != 1 || bias.sizes[0] != weight.sizes[0])))
    return call.error() << "expected factors (p..., k) and (n, k) and a bias (n), got "
                        << str(x.sizes) << " and " << str(weight.sizes)
                        << (hasBias ? " and " + str(bias.sizes) : "");
  Sizes sizes = x.sizes;
  sizes.back() = weight.sizes[0];
  // (p..., n, k)
  MLIRContext *context = call.b.getContext();
  int64_t numDims = x.rank() + 1;
  auto map = [&](ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(numDims, dims, context);
  };
  unsigned n = numDims - 2, k = numDims - 1;
  SmallVector<unsigned> ofX = llvm::to_vector(llvm::seq<unsigned>(0, n)), ofResult = ofX;
  ofX.push_back(k);
  ofResult.push_back(n);
  Tensor product = call.b.contract(sizes, x, weight, map(ofX), map({n, k}), map(ofResult));
  return call.result(hasBias ? addBias(call, product, bias) : call.b.castTo(product, x.dtype));
}

/// Without the batch dimensions along which `x` is broadcast to `batch`: a product does not read
/// along those.
static FailureOr<Tensor> dropBroadcast(Call &call, const Tensor &x, ArrayRef<Size> batch,
                                       int64_t numBatch) {
  Sizes kept;
  for (auto [i, size] : llvm::enumerate(x.sizes))
    if (int64_t(i) >= numBatch || !size.isOne() || batch[batch.size() - numBatch + i].isOne())
      kept.push_back(size);
  return viewAs(call, x, kept);
}

/// a (batch..., m, k) b (batch..., k, n) -> (batch..., m, n), as torch.matmul: a vector lacks m or
/// n.
static FailureOr<Tensor> multiply(Call &call, Tensor a, Tensor b) {
  if (failed(checkTypes(call, {a, b})))
    return failure();
  auto mismatch = [&]() -> LogicalResult {
    return call.error() << "expected factors (batch..., m, k) and (batch..., k, n), got "
                        << str(a.sizes) << " and " << str(b.sizes);
  };
  if (a.rank() < 1 || b.rank() < 1)
    return mismatch();
  bool hasM = a.rank() > 1, hasN = b.rank() > 1;
  int64_t batchOfA = hasM ? a.rank() - 2 : 0, batchOfB = hasN ? b.rank() - 2 : 0;
  const Size &k = a.sizes.back();
  std::optional<Sizes> batch =
      TensorBuilder::broadcast({Sizes(ArrayRef(a.sizes).take_front(batchOfA)),
                                Sizes(ArrayRef(b.sizes).take_front(batchOfB))});
  if (!batch || k != b.sizes[batchOfB])
    return mismatch();
  Sizes sizes = *batch;
  if (hasM)
    sizes.push_back(a.sizes[batchOfA]);
  if (hasN)
    sizes.push_back(b.sizes.back());

  // (batch..., m, n, k)
  unsigned numBatch = batch->size(), numDims = sizes.size() + 1;
  unsigned dimM = numBatch, dimN = numBatch + hasM, dimK = numDims - 1;
  auto mapOf = [&](const Tensor &x, int64_t batchOfX, ArrayRef<unsigned> matrix) {
    SmallVector<unsigned> dims;
    for (unsigned dim = numBatch - batchOfX; dim < numBatch; ++dim)
      if (!x.sizes[dim - (numBatch - batchOfX)].isOne() || (*batch)[dim].isOne())
        dims.push_back(dim);
    dims.append(matrix.begin(), matrix.end());
    return AffineMap::getMultiDimMapWithTargets(numDims, dims, call.b.getContext());
  };
  SmallVector<unsigned> matrixOfA = {dimK}, matrixOfB = {dimK};
  if (hasM)
    matrixOfA.insert(matrixOfA.begin(), dimM);
  if (hasN)
    matrixOfB.push_back(dimN);
  AffineMap ofA = mapOf(a, batchOfA, matrixOfA), ofB = mapOf(b, batchOfB, matrixOfB);
  AffineMap ofResult =
      AffineMap::getMultiDimIdentityMap(numDims, call.b.getContext()).getSliceMap(0, dimK);
  FailureOr<Tensor> left = dropBroadcast(call, a, *batch, batchOfA),
                    right = dropBroadcast(call, b, *batch, batchOfB);
  if (failed(left) || failed(right))
    return failure();
  return call.b.contract(sizes, *left, *right, ofA, ofB, ofResult);
}

static LogicalResult product(Call &call, StringRef left, StringRef right,
                             std::optional<int64_t> rank) {
  Tensor a = call.tensor(left), b = call.tensor(right);
  if (call.failed())
    return failure();
  if (rank && (a.rank() != *rank || b.rank() != *rank))
    return call.error() << "expected factors of rank " << *rank << ", got " << str(a.sizes)
                        << " and " << str(b.sizes);
  FailureOr<Tensor> result = multiply(call, a, b);
  return failed(result) ? failure() : call.result(call.b.castTo(*result, a.dtype));
}

static LogicalResult matmul(Call &call) { return product(call, "self", "other", std::nullopt); }
static LogicalResult mm(Call &call) { return product(call, "self", "mat2", 2); }
static LogicalResult bmm(Call &call) { return product(call, "self", "mat2", 3); }

/// bias (n) + a (m, k) b (k, n)
static LogicalResult addmm(Call &call) {
  Tensor bias = call.tensor("self"), a = call.tensor("mat1"), b = call.tensor("mat2");
  double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  if (call.failed() || failed(checkTypes(call, {a, b, bias})))
    return failure();
  if (alpha != 1 || beta != 1 || a.rank() != 2 || b.rank() != 2 || bias.rank() != 1 ||
      bias.sizes[0] != b.sizes[1])
    return call.error()
           << "expected factors (m, k) and (k, n), a bias (n), alpha = 1 and beta = 1, got "
           << str(a.sizes) << ", " << str(b.sizes) << ", " << str(bias.sizes) << ", " << alpha
           << " and " << beta;
  FailureOr<Tensor> result = multiply(call, a, b);
  return failed(result) ? failure() : call.result(addBias(call, *result, bias));
}

void attn::pt2::addLinearAlgebra(AtenOps &ops) {
  ops["torch.ops.aten.linear.default"] = linear;
  ops["torch.ops.aten.matmul.default"] = matmul;
  ops["torch.ops.aten.mm.default"] = mm;
  ops["torch.ops.aten.bmm.default"] = bmm;
  ops["torch.ops.aten.addmm.default"] = addmm;
}
