//===- Attention.cpp - aten's fused attention ------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::pt2;

/// Splits dimension `dim` of `tensor`, of size a * b, into two dimensions of sizes a and b.
static FailureOr<Tensor> splitDim(Call &call, const Tensor &tensor, int64_t dim, const Size &a,
                                  const Size &b) {
  Sizes sizes = tensor.sizes;
  sizes[dim] = a;
  sizes.insert(sizes.begin() + dim + 1, b);
  return viewAs(call, tensor, sizes);
}

namespace {
/// The arguments of the op.
struct Inputs {
  Tensor query, key, value;
  std::optional<Tensor> mask;
  DType dtype; ///< type of the result
  bool isCausal, groupsHeads;
  bool hasNoBatch = false; ///< a batch dimension of size 1 was added, which the result drops
  double scale;
};
} // namespace

/// Gives query, key and value the same number of batch dimensions, at least one, and broadcasts the query to the batch
/// sizes of all three. With `groupsHeads`, the last batch dimension, which holds the heads, is not broadcast.
static LogicalResult alignBatches(Call &call, Inputs &in) {
  int64_t numBatch = std::max({in.query.rank(), in.key.rank(), in.value.rank()}) - 2;
  in.hasNoBatch = numBatch == 0;
  numBatch = std::max<int64_t>(numBatch, 1);
  for (Tensor *tensor : {&in.query, &in.key, &in.value}) {
    Sizes sizes(numBatch + 2 - tensor->rank(), Size(1));
    llvm::append_range(sizes, tensor->sizes);
    FailureOr<Tensor> view = viewAs(call, *tensor, sizes);
    if (failed(view))
      return failure();
    *tensor = *view;
  }
  int64_t numShared = numBatch - in.groupsHeads;
  auto batchOf = [&](const Tensor &x) { return Sizes(ArrayRef(x.sizes).take_front(numShared)); };
  std::optional<Sizes> sizes =
      TensorBuilder::broadcast({batchOf(in.query), batchOf(in.key), batchOf(in.value)});
  if (!sizes)
    return call.error() << "expected batch dimensions that broadcast, got " << str(in.query.sizes)
                        << ", " << str(in.key.sizes) << " and " << str(in.value.sizes);
  sizes->append(in.query.sizes.begin() + numShared, in.query.sizes.end());
  if (in.query.sizes != *sizes)
    in.query = call.b.broadcastTo(in.query, *sizes);
  return success();
}

static FailureOr<Inputs> readInputs(Call &call) {
  Inputs in;
  in.query = call.tensor("query");
  in.key = call.tensor("key");
  in.value = call.tensor("value");
  for (StringRef name : {"attn_mask", "attn_bias"})
    if (call.has(name))
      in.mask = call.tensor(name);
  // These flags are about results that only gradients need.
  for (StringRef name : {"compute_log_sumexp", "compute_logsumexp", "return_debug_mask"})
    call.flag(name);
  in.isCausal = call.flag("is_causal");
  in.groupsHeads = call.flag("enable_gqa");
  double dropout = call.number("dropout_p", 0);
  bool hasScale = call.has("scale"), isKnown = !call.isTensor("scale");
  std::optional<Tensor> factor;
  if (!isKnown)
    factor = call.tensor("scale");
  in.scale = hasScale && isKnown ? call.number("scale") : 1;
  if (call.failed())
    return failure();
  if (dropout != 0)
    return call.error() << "expected dropout_p = 0, got " << dropout
                        << "; call eval() on the module before exporting it";
  const Tensor &query = in.query, &key = in.key, &value = in.value;
  if (std::min({query.rank(), key.rank(), value.rank()}) < 2 || !isFloat(query.dtype) ||
      key.dtype != query.dtype || value.dtype != query.dtype ||
      key.sizes.back() != query.sizes.back() ||
      value.sizes[value.rank() - 2] != key.sizes[key.rank() - 2])
    return call.error() << "expected query (batch..., q, d), key (batch..., k, d) and value "
                           "(batch..., k, e) of one "
                           "floating-point type, got "
                        << str(query.dtype) << str(query.sizes) << ", " << str(key.dtype)
                        << str(key.sizes) << " and " << str(value.dtype) << str(value.sizes);
  if (in.mask && in.mask->dtype != DType::Bool && !isFloat(in.mask->dtype))
    return call.error() << "expected a boolean or floating-point mask, got " << str(in.mask->dtype);
  TensorBuilder &b = call.b;
  in.dtype = query.dtype;
  if (failed(alignBatches(call, in)))
    return failure();
  std::optional<int64_t> d = query.sizes.back().constant();
  if (!hasScale && d)
    in.scale = 1 / std::sqrt(double(*d));
  if (!hasScale && !d)
    factor = b.elementwise({}, DType::F64, Operand{b.number(query.sizes.back()), DType::F64},
                           [&](ValueRange e) -> Value {
                             Value root = math::SqrtOp::create(b, e[0]);
                             return arith::DivFOp::create(b, b.scalar(DType::F64, 1.0), root);
                           });
  // A scale that depends on sizes is multiplied into the query.
  DType as = computeType(in.dtype);
  if (factor)
    in.query =
        b.elementwise(query.sizes, as, {{query, as}, {*factor, as}},
                      [&](ValueRange e) -> Value { return arith::MulFOp::create(b, e[0], e[1]); });
  return in;
}

/// The number of query heads for each head of key and value.
static FailureOr<Size> groupOf(Call &call, const Inputs &in) {
  int64_t heads = in.query.rank() - 3;
  const Size &ofQuery = in.query.sizes[heads], &ofKey = in.key.sizes[heads];
  if (!in.groupsHeads || ofQuery == ofKey)
    return Size(1);
  int64_t all = ofQuery.constant().value_or(0), some = ofKey.constant().value_or(0);
  if (some < 1 || all % some != 0 || in.value.sizes[heads] != ofKey)
    return call.error()
           << "expected a number of query heads that the number of key heads divides, got "
           << ofQuery.str() << " and " << ofKey.str();
  return Size(all / some);
}

/// softmax(scale * Q K^T + mask) V.
///
/// With `enable_gqa`, the last batch dimension of the query, which holds its heads, is viewed as two dimensions: (key
/// heads, group). Key and value have no dimension for the group.
static LogicalResult scaledDotProductAttention(Call &call) {
  FailureOr<Inputs> in = readInputs(call);
  if (failed(in))
    return failure();
  FailureOr<Size> group = groupOf(call, *in);
  if (failed(group))
    return failure();
  TensorBuilder &b = call.b;
  bool isGrouped = !group->isOne();
  int64_t heads = in->query.rank() - 3;
  Sizes flat = in->query.sizes; // sizes of the result in torch
  flat.back() = in->value.sizes.back();
  if (isGrouped) {
    const Size &keyHeads = in->key.sizes[heads];
    FailureOr<Tensor> query = splitDim(call, in->query, heads, keyHeads, *group), mask = query;
    if (int64_t dim = in->mask ? in->mask->rank() - 3 : -1; dim >= 0) {
      bool isShared = in->mask->sizes[dim].isOne();
      mask = splitDim(call, *in->mask, dim, isShared ? Size(1) : keyHeads,
                      isShared ? Size(1) : *group);
      if (failed(mask))
        return failure();
      in->mask = *mask;
    }
    if (failed(query))
      return failure();
    in->query = *query;
  }

  // The iteration space is (batch..., q, k, d, e). A dimension of size 1 of an operand is read at index 0 if the
  // iteration space is larger there.
  unsigned numBatch = in->query.rank() - 2, q = numBatch, k = q + 1, d = q + 2, e = q + 3;
  Sizes space(ArrayRef<Size>(in->query.sizes).take_front(q + 1));
  space.append({in->key.sizes.end()[-2], in->query.sizes.back(), in->value.sizes.back()});
  auto mapOf = [&](const Tensor &tensor, unsigned numBatch,
                   ArrayRef<unsigned> matrix) -> FailureOr<AffineMap> {
    SmallVector<unsigned> dims = llvm::to_vector(llvm::seq<unsigned>(0, numBatch));
    dims.append(matrix.begin(), matrix.end());
    SmallVector<AffineExpr> exprs;
    for (auto [dim, size] : llvm::zip(ArrayRef(dims).take_back(tensor.rank()), tensor.sizes)) {
      if (!size.isOne() && size != space[dim])
        return call.error() << "expected key, value and mask that broadcast to " << str(space)
                            << ", got " << str(tensor.sizes);
      exprs.push_back(size == space[dim] ? b.getAffineDimExpr(dim) : b.getAffineConstantExpr(0));
    }
    return AffineMap::get(space.size(), 0, exprs, b.getContext());
  };
  Sizes sizes(ArrayRef<Size>(space).take_front(q + 1));
  sizes.push_back(space[e]);
  Tensor init = b.empty(sizes, in->dtype);
  SmallVector<FailureOr<AffineMap>> maps = {mapOf(in->query, numBatch, {q, d}),
                                            mapOf(in->key, numBatch - isGrouped, {k, d}),
                                            mapOf(in->value, numBatch - isGrouped, {k, e})};
  if (in->mask && in->mask->rank() > int64_t(k) + 1)
    return call.error() << "expected a mask of rank " << k + 1 << " at most, got "
                        << str(in->mask->sizes);
  if (in->mask)
    maps.push_back(mapOf(*in->mask, numBatch, {q, k}));
  maps.push_back(mapOf(init, numBatch, {q, e}));
  if (llvm::any_of(maps, [](FailureOr<AffineMap> map) { return failed(map); }))
    return failure();

  SmallVector<Attribute> masks;
  if (in->isCausal)
    masks.push_back(CausalAttr::get(b.getContext(), /*offset=*/0));
  bool isBias = in->mask && isFloat(in->mask->dtype);
  if (in->mask && !isBias)
    masks.push_back(DenseAttr::get(b.getContext(), /*capture=*/0, Polarity::Nonzero));
  MaskInterface kept;
  if (masks.size() == 1)
    kept = cast<MaskInterface>(masks.front());
  else if (!masks.empty())
    kept = AndAttr::get(b.getContext(), masks);

  DType accumulator = computeType(in->dtype);
  Type score = elementType(accumulator, b.getContext());
  SmallVector<Value> captures;
  if (in->mask)
    captures.push_back(in->mask->value);
  auto op = AttentionOp::create(b, init.value.getType(), in->query.value, in->key.value,
                                in->value.value, captures, /*sink=*/Value(), init.value,
                                /*origin=*/ValueRange(), kept, /*plan=*/PlanAttr(),
                                b.getAffineMapArrayAttr(llvm::map_to_vector(
                                    maps, [](FailureOr<AffineMap> map) { return *map; })),
                                b.getF32FloatAttr(in->scale),
                                EmptyRowAttr::get(b.getContext(), EmptyRow::Zero),
                                accumulator == DType::F32 ? TypeAttr() : TypeAttr::get(score),
                                /*state=*/nullptr, /*fill=*/nullptr, /*added=*/nullptr,
                                /*bounded=*/nullptr);
  if (isBias) {
    SmallVector<Type> types(k + 1, b.getIndexType());
    types.append({score, elementType(in->mask->dtype, b.getContext())});
    OpBuilder::InsertionGuard guard(b);
    Block *block =
        b.createBlock(&op.getScore(), {}, types, SmallVector<Location>(types.size(), b.getLoc()));
    Value bias = b.convert(block->getArguments().back(), in->mask->dtype, accumulator);
    YieldOp::create(b, arith::AddFOp::create(b, block->getArgument(k + 1), bias));
  }
  if (in->hasNoBatch)
    flat.erase(flat.begin());
  FailureOr<Tensor> result = viewAs(call, Tensor{op.getResult(0), init.dtype, sizes}, flat);
  if (failed(result) || failed(call.result(*result)))
    return failure();
  return call.skipResults();
}

void attn::pt2::addAttention(AtenOps &ops) {
  ops.add("scaled_dot_product_attention.default", scaledDotProductAttention, "dropout");
  // torch has a form of the op for each backend, with more results, which only gradients need.
  for (StringRef name : {"flash_attention", "flash_attention_for_cpu", "efficient_attention",
                         "cudnn_attention", "fused_attention_overrideable", "attention_math"})
    ops.add(("_scaled_dot_product_" + name + ".default").str(), scaledDotProductAttention,
            "dropout; uses of the other results");
}
