//===- Attention.cpp - aten's fused attention ------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::pt2;

/// `tensor` with its dimension `dim` of size a * b as two dimensions a, b.
static FailureOr<Tensor> splitDim(Call &call, const Tensor &tensor, int64_t dim, const Size &a, const Size &b) {
  Sizes sizes = tensor.sizes;
  sizes[dim] = a;
  sizes.insert(sizes.begin() + dim + 1, b);
  return viewAs(call, tensor, sizes);
}

/// softmax(scale * Q K^T + mask) V with query (batch..., q, d), key (batch..., k, d) and value (batch..., k, e).
///
/// With `enable_gqa` the heads of the query, the last batch dimension, are viewed as (key heads, group), and the
/// group is a batch dimension that key and value lack.
static LogicalResult scaledDotProductAttention(Call &call) {
  Tensor query = call.tensor("query"), key = call.tensor("key"), value = call.tensor("value"), mask;
  bool hasMask = call.has("attn_mask");
  if (hasMask)
    mask = call.tensor("attn_mask");
  double dropout = call.number("dropout_p", 0);
  bool isCausal = call.flag("is_causal"), groupsHeads = call.flag("enable_gqa");
  bool hasScale = call.has("scale");
  double scale = hasScale ? call.number("scale") : 0;
  if (call.failed())
    return failure();
  if (dropout != 0)
    return call.error() << "expected dropout_p = 0, got " << dropout
                        << "; call eval() on the module before exporting it";
  int64_t rank = query.rank();
  if (rank < 3 || key.rank() != rank || value.rank() != rank || !isFloat(query.dtype) ||
      key.dtype != query.dtype || value.dtype != query.dtype)
    return call.error() << "expected query, key and value (batch..., rows, columns) of one floating-point type, got "
                        << str(query.dtype) << str(query.sizes) << ", " << str(key.dtype) << str(key.sizes) << " and "
                        << str(value.dtype) << str(value.sizes);
  int64_t heads = rank - 3, numBatch = rank - 2;
  Size numQueries = query.sizes[rank - 2], numKeys = key.sizes[rank - 2], d = query.sizes.back();
  if (key.sizes.back() != d || value.sizes[rank - 2] != numKeys)
    return call.error() << "expected query (q, d), key (k, d) and value (k, e), got " << str(query.sizes) << ", "
                        << str(key.sizes) << " and " << str(value.sizes);
  if (!hasScale) {
    if (!d.constant())
      return call.error() << "expected a scale, or a head size known from the file, got " << d.str();
    scale = 1 / std::sqrt(double(*d.constant()));
  }

  // The batch of the result as torch has it, then with grouped heads apart.
  Size keyHeads = key.sizes[heads], group = 1;
  bool isGrouped = groupsHeads && query.sizes[heads] != keyHeads;
  if (isGrouped) {
    int64_t all = query.sizes[heads].constant().value_or(0), some = keyHeads.constant().value_or(0);
    if (some < 1 || all % some != 0 || value.sizes[heads] != keyHeads)
      return call.error() << "expected a number of query heads that the number of key heads divides, got "
                          << str(query.sizes) << ", " << str(key.sizes) << " and " << str(value.sizes);
    group = all / some;
  }
  auto batchOf = [&](const Tensor &tensor) { return Sizes(ArrayRef(tensor.sizes).take_front(numBatch)); };
  Sizes ofKey = batchOf(key), ofValue = batchOf(value);
  if (isGrouped)
    ofKey[heads] = ofValue[heads] = query.sizes[heads];
  std::optional<Sizes> batch = TensorBuilder::broadcast({batchOf(query), ofKey, ofValue});
  std::optional<Sizes> scores = batch;
  if (batch) {
    scores->append({numQueries, numKeys});
    if (hasMask)
      scores = TensorBuilder::broadcast({*scores, mask.sizes});
  }
  if (!batch || batch != batchOf(query) || int64_t(scores ? scores->size() : 0) != rank ||
      ArrayRef(*scores).take_front(numBatch) != ArrayRef(*batch) || (*scores)[rank - 2] != numQueries ||
      (*scores)[rank - 1] != numKeys)
    return call.error() << "expected key, value and mask that broadcast to the batch of the query, got "
                        << str(query.sizes) << ", " << str(key.sizes) << ", " << str(value.sizes)
                        << (hasMask ? " and " + str(mask.sizes) : "");
  Sizes flat = *batch, sizes = *batch; // of the result, without and with its heads grouped
  flat.append({numQueries, value.sizes.back()});
  if (isGrouped) {
    sizes[heads] = keyHeads;
    sizes.push_back(group);
    FailureOr<Tensor> grouped = splitDim(call, query, heads, keyHeads, group);
    if (failed(grouped))
      return failure();
    query = *grouped;
    int64_t headsOfMask = hasMask ? mask.rank() - 3 : -1;
    if (headsOfMask >= 0) {
      bool isShared = mask.sizes[headsOfMask].isOne();
      FailureOr<Tensor> split =
          splitDim(call, mask, headsOfMask, isShared ? Size(1) : keyHeads, isShared ? Size(1) : group);
      if (failed(split))
        return failure();
      mask = *split;
    }
    ++numBatch;
  }

  // Maps over (batch..., q, k, d, e).
  TensorBuilder &b = call.b;
  unsigned dimQ = numBatch, dimK = numBatch + 1, dimD = numBatch + 2, dimE = numBatch + 3;
  auto mapOf = [&](const Tensor &tensor, ArrayRef<unsigned> dims, ArrayRef<Size> spaceSizes) {
    SmallVector<AffineExpr> exprs;
    for (auto [dim, size, whole] : llvm::zip_equal(dims, tensor.sizes, spaceSizes))
      exprs.push_back(size.isOne() && !whole.isOne() ? b.getAffineConstantExpr(0) : b.getAffineDimExpr(dim));
    return AffineMap::get(numBatch + 4, 0, exprs, b.getContext());
  };
  auto operandMap = [&](const Tensor &tensor, bool hasGroup, unsigned row, unsigned column) {
    SmallVector<unsigned> dims = llvm::to_vector(llvm::seq<unsigned>(0, numBatch - (isGrouped && !hasGroup)));
    Sizes whole(ArrayRef(sizes).take_front(dims.size()));
    dims.append({row, column});
    whole.append(tensor.sizes.end() - 2, tensor.sizes.end());
    return mapOf(tensor, dims, whole);
  };
  SmallVector<AffineMap> maps = {operandMap(query, true, dimQ, dimD), operandMap(key, false, dimK, dimD),
                                 operandMap(value, false, dimK, dimE)};
  if (hasMask) {
    Sizes whole = sizes;
    whole.append({numQueries, numKeys});
    SmallVector<unsigned> dims = llvm::to_vector(llvm::seq<unsigned>(0, dimK + 1));
    maps.push_back(mapOf(mask, ArrayRef(dims).take_back(mask.rank()), ArrayRef(whole).take_back(mask.rank())));
  }
  sizes.append({numQueries, value.sizes.back()});
  Tensor init = b.empty(sizes, query.dtype);
  maps.push_back(operandMap(init, true, dimQ, dimE));

  SmallVector<Attribute> masks;
  if (isCausal)
    masks.push_back(CausalAttr::get(b.getContext(), /*offset=*/0));
  bool isBoolean = hasMask && mask.dtype == DType::Bool;
  if (isBoolean)
    masks.push_back(DenseAttr::get(b.getContext(), /*capture=*/0, Polarity::Nonzero));
  else if (hasMask && !isFloat(mask.dtype))
    return call.error() << "expected a boolean or floating-point mask, got " << str(mask.dtype);
  MaskInterface kept;
  if (masks.size() == 1)
    kept = cast<MaskInterface>(masks.front());
  else if (!masks.empty())
    kept = AndAttr::get(b.getContext(), masks);

  DType accumulator = computeType(query.dtype);
  Type accumulatorType = elementType(accumulator, b.getContext());
  SmallVector<Value> captures;
  if (hasMask)
    captures.push_back(mask.value);
  auto op = AttentionOp::create(b, init.value.getType(), query.value, key.value, value.value, captures, init.value,
                                /*origin=*/ValueRange(), kept, /*plan=*/PlanAttr(), b.getAffineMapArrayAttr(maps),
                                b.getF32FloatAttr(scale), EmptyRowAttr::get(b.getContext(), EmptyRow::Zero),
                                accumulator == DType::F32 ? TypeAttr() : TypeAttr::get(accumulatorType));
  if (hasMask && !isBoolean) {
    SmallVector<Type> types(dimK + 1, b.getIndexType());
    types.append({accumulatorType, elementType(mask.dtype, b.getContext())});
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&op.getScore(), {}, types, SmallVector<Location>(types.size(), b.getLoc()));
    Value bias = b.convert(block->getArguments().back(), mask.dtype, accumulator);
    YieldOp::create(b, arith::AddFOp::create(b, block->getArgument(dimK + 1), bias));
  }
  FailureOr<Tensor> result = viewAs(call, Tensor{op.getResult(0), query.dtype, sizes}, flat);
  return failed(result) ? failure() : call.result(*result);
}

void attn::pt2::addAttention(AtenOps &ops) {
  ops["torch.ops.aten.scaled_dot_product_attention.default"] = scaledDotProductAttention;
}
