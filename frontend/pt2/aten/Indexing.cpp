//===- Indexing.cpp - aten's tables ----------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Indices are data, and may be anything. An argument of the user's gets a bound that the runtime checks before a call
// stores anything. Whatever else an index is, the nearest element that exists is read in its place, so that no
// access leaves its tensor.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn::pt2;

/// An index into a dimension of `size` elements; `wraps` counts negative ones from the end.
static Value toPosition(TensorBuilder &b, Value index, const Size &size, bool wraps) {
  Value i = arith::IndexCastOp::create(b, b.getIndexType(), index);
  Value count = b.indexOf(size), zero = arith::ConstantIndexOp::create(b, 0);
  if (wraps) {
    Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, i, zero);
    i = arith::SelectOp::create(b, isNegative, arith::AddIOp::create(b, i, count), i);
  }
  Value last = arith::SubIOp::create(b, count, arith::ConstantIndexOp::create(b, 1));
  return arith::MaxSIOp::create(b, arith::MinSIOp::create(b, i, last), zero);
}

static bool isIndexType(DType dtype) { return dtype == DType::I32 || dtype == DType::I64; }

/// Requires elements of `index`, if that is an argument, to lie in [0, size).
static void boundArgument(const Tensor &index, const Size &size) {
  auto argument = dyn_cast<BlockArgument>(index.value);
  std::optional<int64_t> count = size.constant();
  if (!argument || !count || *count == 0)
    return;
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function || function.getArgAttr(argument.getArgNumber(), attn::AttnDialect::kWeightAttr))
    return;
  auto known = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                      attn::AttnDialect::kBoundAttr);
  if (known && known.getInt() <= *count - 1)
    return;
  Builder builder(function.getContext());
  function.setArgAttr(argument.getArgNumber(), attn::AttnDialect::kBoundAttr,
                      builder.getI64IntegerAttr(*count - 1));
}

/// Of sizes that have elements: the nearest element to an index must exist.
static LogicalResult checkIndexed(Call &call, const Tensor &index, const Size &size) {
  if (!isIndexType(index.dtype))
    return call.error() << "expected indices of int32 or int64, got " << str(index.dtype);
  call.requireElement(size, 0);
  return failure(call.failed());
}

/// result[i..., e] = weight[indices[i...], e]
static LogicalResult embedding(Call &call) {
  Tensor weight = call.tensor("weight"), indices = call.tensor("indices");
  // How gradients are computed.
  for (StringRef name : {"scale_grad_by_freq", "sparse"})
    call.flag(name);
  call.constant("padding_idx", -1);
  if (call.failed())
    return failure();
  if (weight.rank() != 2)
    return call.error() << "expected a table of rank 2, got " << str(weight.sizes);
  if (failed(checkIndexed(call, indices, weight.sizes[0])))
    return failure();
  boundArgument(indices, weight.sizes[0]);
  Sizes sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  TensorBuilder &b = call.b;
  int64_t rank = sizes.size();
  AffineMap map = AffineMap::getMultiDimIdentityMap(rank, b.getContext()).getSliceMap(0, rank - 1);
  return call.result(b.elementwise(
      sizes, weight.dtype, Operand{indices, indices.dtype, map}, [&](ValueRange x) -> Value {
        Value row = toPosition(b, x[0], weight.sizes[0], /*wraps=*/false);
        return tensor::ExtractOp::create(b, weight.value,
                                         ValueRange{row, linalg::IndexOp::create(b, rank - 1)});
      }));
}

/// A tensor of `sizes` whose elements are those of `self` at the same position, but for `dim`, where `index` says which.
static Tensor readAlong(TensorBuilder &b, const Tensor &self, int64_t dim, ArrayRef<Size> sizes,
                        const Operand &index) {
  return b.elementwise(sizes, self.dtype, index, [&](ValueRange x) -> Value {
    SmallVector<Value> at;
    for (int64_t i = 0; i < self.rank(); ++i)
      at.push_back(i == dim ? toPosition(b, x[0], self.sizes[dim], /*wraps=*/false)
                            : Value(linalg::IndexOp::create(b, i)));
    return tensor::ExtractOp::create(b, self.value, at);
  });
}

/// result[..., i, ...] = self[..., index[i], ...]
static LogicalResult indexSelect(Call &call) {
  Tensor self = call.tensor("self"), index = call.tensor("index");
  int64_t dim = call.dim("dim", self.rank());
  if (call.failed() || failed(checkIndexed(call, index, self.sizes[dim])))
    return failure();
  if (index.rank() != 1)
    return call.error() << "expected indices of rank 1, got " << str(index.sizes);
  boundArgument(index, self.sizes[dim]);
  Sizes sizes = self.sizes;
  sizes[dim] = index.sizes[0];
  AffineMap map = AffineMap::get(sizes.size(), 0, call.b.getAffineDimExpr(dim), call.b.getContext());
  return call.result(readAlong(call.b, self, dim, sizes, Operand{index, index.dtype, map}));
}

/// result[i, j, k] = self[i, index[i, j, k], k] for dimension 1
static LogicalResult gather(Call &call) {
  Tensor self = call.tensor("self"), index = call.tensor("index");
  int64_t dim = call.dim("dim", self.rank());
  call.flag("sparse_grad");
  if (call.failed() || failed(checkIndexed(call, index, self.sizes[dim])))
    return failure();
  if (index.rank() != self.rank())
    return call.error() << "expected indices of rank " << self.rank() << ", got "
                        << str(index.sizes);
  for (int64_t i = 0; i < self.rank(); ++i)
    if (i != dim)
      call.requireAtMost(index.sizes[i], self.sizes[i]);
  if (call.failed())
    return failure();
  boundArgument(index, self.sizes[dim]);
  return call.result(readAlong(call.b, self, dim, index.sizes, Operand{index, index.dtype}));
}

/// self[indices...], which broadcast to one shape. It stands where they do if they are neighbours, in front otherwise.
static LogicalResult indexBy(Call &call) {
  Tensor self = call.tensor("self");
  SmallVector<std::optional<Tensor>> indices = call.optionalTensors("indices");
  if (call.failed())
    return failure();
  SmallVector<Sizes> shapes;
  SmallVector<int64_t> indexed;
  for (auto [dim, one] : llvm::enumerate(indices)) {
    if (!one)
      continue;
    if (int64_t(dim) >= self.rank())
      return call.error() << "expected at most " << self.rank() << " indices, got "
                          << indices.size();
    if (failed(checkIndexed(call, *one, self.sizes[dim])))
      return failure();
    shapes.push_back(one->sizes);
    indexed.push_back(dim);
  }
  std::optional<Sizes> shape = TensorBuilder::broadcast(shapes);
  if (indexed.empty() || !shape)
    return call.error() << "expected indices that broadcast";
  bool areNeighbours = indexed.back() - indexed.front() + 1 == int64_t(indexed.size());
  int64_t front = areNeighbours ? indexed.front() : 0, count = shape->size();
  Sizes sizes;
  // For each dimension of self: its position in the result, or -1 if an index replaces it.
  SmallVector<int64_t> kept(self.rank(), -1);
  for (int64_t dim = 0, next = 0; dim <= self.rank(); ++dim) {
    if (next == front) {
      sizes.append(shape->begin(), shape->end());
      next += count;
      front = -1;
    }
    if (dim == self.rank() || llvm::is_contained(indexed, dim))
      continue;
    kept[dim] = next++;
    sizes.push_back(self.sizes[dim]);
  }
  int64_t first = areNeighbours ? indexed.front() : 0;
  TensorBuilder &b = call.b;
  SmallVector<Operand> operands;
  for (int64_t dim : indexed) {
    const Tensor &one = *indices[dim];
    SmallVector<AffineExpr> exprs;
    for (auto [i, size] : llvm::enumerate(one.sizes)) {
      int64_t position = count - one.rank() + i;
      bool isBroadcast = size.isOne() && !(*shape)[position].isOne();
      exprs.push_back(isBroadcast ? b.getAffineConstantExpr(0)
                                  : b.getAffineDimExpr(first + position));
    }
    operands.push_back({one, one.dtype, AffineMap::get(sizes.size(), 0, exprs, b.getContext())});
  }
  return call.result(b.elementwise(sizes, self.dtype, operands, [&](ValueRange x) -> Value {
    SmallVector<Value> at;
    size_t next = 0;
    for (int64_t dim = 0; dim < self.rank(); ++dim)
      at.push_back(kept[dim] >= 0 ? Value(linalg::IndexOp::create(b, kept[dim]))
                                  : toPosition(b, x[next++], self.sizes[dim], /*wraps=*/true));
    return tensor::ExtractOp::create(b, self.value, at);
  }));
}

void attn::pt2::addIndexing(AtenOps &ops) {
  ops.add("embedding.default", embedding);
  ops.add("index_select.default", indexSelect);
  ops.add("gather.default", gather);
  ops.add("index.Tensor", indexBy, "boolean indices, whose result depends on data");
}
