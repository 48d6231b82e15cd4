//===- Indexing.cpp - aten ops that read and write by index ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Indices are data, so they may have any value. There are three cases (IndexBounds.h):
//  * The indices are positions in a dimension, such as the indices into a table of position embeddings. Then the sizes
//    of a call must keep the positions in bounds.
//  * The indices are an argument of the user, or such an argument plus constants and positions. Then the argument gets
//    a bound, which the runtime checks before a call writes to memory.
//  * Any other index, such as an element of a slice of an argument, is clamped to the nearest valid index, and the
//    report says so.
// The code clamps all indices, because no call checks them on a GPU. Some ops count negative indices from the end, as
// torch does, and refuse indices below -size.
//
// A write to integer indices becomes loops that contain tensor.insert_slice. If no other op reads the old tensor, these
// loops write to it in place.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "frontend/pt2/AtenOps.h"
#include "frontend/pt2/IndexBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::pt2;

/// Clamps an index to a dimension of `size` elements; with `wraps`, negative indices count from the end.
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

/// Checks the type of an index, and requires that `size` is not 0, because indices are clamped to valid ones.
static LogicalResult checkIndexed(Call &call, const Tensor &index, const Size &size) {
  if (!isIndexType(index.dtype))
    return call.error() << "expected indices of int32 or int64, got " << str(index.dtype);
  call.requireElement(size, 0);
  return failure(call.failed());
}

/// result[i..., e] = weight[indices[i...], e]
static LogicalResult embedding(Call &call) {
  Tensor weight = call.tensor("weight"), indices = call.tensor("indices");
  // These arguments say how gradients are computed.
  for (StringRef name : {"scale_grad_by_freq", "sparse"})
    call.flag(name);
  call.constant("padding_idx", -1);
  if (call.failed())
    return failure();
  if (weight.rank() != 2)
    return call.error() << "expected a table of rank 2, got " << str(weight.sizes);
  if (failed(checkIndexed(call, indices, weight.sizes[0])) ||
      failed(boundIndex(call, indices, weight.sizes[0], /*wraps=*/false)))
    return failure();
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

/// A tensor of `sizes` whose elements are those of `self` at the same position, except that `index` gives the position
/// in dimension `dim`.
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
  Tensor self = call.tensorWithDims("self"), index = call.tensor("index");
  int64_t dim = call.dim("dim", self.rank());
  if (call.failed() || failed(checkIndexed(call, index, self.sizes[dim])))
    return failure();
  if (index.rank() != 1)
    return call.error() << "expected indices of rank 1, got " << str(index.sizes);
  if (failed(boundIndex(call, index, self.sizes[dim], /*wraps=*/false)))
    return failure();
  Sizes sizes = self.sizes;
  sizes[dim] = index.sizes[0];
  AffineMap map =
      AffineMap::get(sizes.size(), 0, call.b.getAffineDimExpr(dim), call.b.getContext());
  return call.result(readAlong(call.b, self, dim, sizes, Operand{index, index.dtype, map}));
}

/// The positions of elements of which element i is repeated repeats[i] times: position j is the number of elements whose
/// copies all lie before j. As in torch, the sum of `repeats` must be `size`; a call does not check it.
static FailureOr<Tensor> positionsOfCopies(Call &call, Tensor repeats, const Size &count,
                                           const Size &size) {
  TensorBuilder &b = call.b;
  if (isFloat(repeats.dtype) || repeats.dtype == DType::Bool || repeats.rank() > 1)
    return call.error() << "expected integers of rank 1 in 'repeats', got " << str(repeats.dtype)
                        << str(repeats.sizes);
  if (repeats.rank() == 0 || repeats.sizes[0].isOne())
    repeats = b.broadcastTo(repeats, count);
  if (repeats.sizes[0] != count)
    return call.error() << "expected " << count.str() << " numbers in 'repeats', got "
                        << repeats.sizes[0].str();
  AffineMap map = AffineMap::get(2, 0, b.getAffineDimExpr(1), b.getContext());
  auto sumOf = [&](ArrayRef<Size> sizes, const Tensor &tensor, auto body) {
    return b.sum(sizes, /*numKept=*/1, DType::I64, Operand{tensor, DType::I64, map}, body);
  };
  Value zero = b.scalar(DType::I64, int64_t(0)), one = b.scalar(DType::I64, int64_t(1));
  // The end of the copies of each element, and then the number of ends that are at most j.
  Tensor ends = sumOf({count, count}, repeats, [&](ValueRange x) -> Value {
    Value isBefore =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sle, linalg::IndexOp::create(b, 1),
                              linalg::IndexOp::create(b, 0));
    return arith::SelectOp::create(b, isBefore, x[0], zero);
  });
  Tensor index = sumOf({size, count}, ends, [&](ValueRange x) -> Value {
    Value j = arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, 0));
    Value isBefore = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, x[0], j);
    return arith::SelectOp::create(b, isBefore, one, zero);
  });
  return index;
}

static LogicalResult repeatByLengths(Call &call) {
  Tensor self = call.tensor("self"), repeats = call.tensor("repeats");
  bool hasDim = call.has("dim");
  int64_t dim = hasDim ? call.dim("dim", self.rank()) : 0;
  // Without 'output_size', the size of the result follows from the inputs only if the graph states it.
  if (call.has("output_size"))
    call.integer("output_size");
  if (call.failed())
    return failure();
  if (!hasDim && self.rank() != 1)
    return call.error() << "expected a dimension, or a tensor of rank 1, got " << str(self.sizes);
  Sizes sizes = self.sizes;
  sizes[dim] = call.expected().sizes[dim];
  FailureOr<Tensor> index = positionsOfCopies(call, repeats, self.sizes[dim], sizes[dim]);
  if (failed(index) || failed(boundIndex(call, *index, self.sizes[dim], /*wraps=*/false)))
    return failure();
  TensorBuilder &b = call.b;
  AffineMap map = AffineMap::get(sizes.size(), 0, b.getAffineDimExpr(dim), b.getContext());
  return call.result(readAlong(b, self, dim, sizes, Operand{*index, index->dtype, map}));
}

/// The result has index i repeats[i] times.
static LogicalResult repeatPositions(Call &call) {
  Tensor repeats = call.tensor("repeats");
  if (call.has("output_size"))
    call.integer("output_size");
  if (call.failed())
    return failure();
  if (repeats.rank() != 1)
    return call.error() << "expected integers of rank 1 in 'repeats', got " << str(repeats.dtype)
                        << str(repeats.sizes);
  FailureOr<Tensor> index =
      positionsOfCopies(call, repeats, repeats.sizes[0], call.expected().sizes[0]);
  return failed(index) ? failure() : call.result(call.b.castTo(*index, repeats.dtype));
}

/// result[i, j, k] = self[i, index[i, j, k], k] for dimension 1
static LogicalResult gather(Call &call) {
  Tensor self = call.tensorWithDims("self"), index = call.tensorWithDims("index");
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
  if (call.failed() || failed(boundIndex(call, index, self.sizes[dim], /*wraps=*/false)))
    return failure();
  return call.result(readAlong(call.b, self, dim, index.sizes, Operand{index, index.dtype}));
}

/// The elements of `index` modulo `size`, which is not 0.
static Tensor remainderOf(TensorBuilder &b, const Tensor &index, const Size &size) {
  return b.elementwise(
      index.sizes, DType::I64, Operand{index, DType::I64}, [&](ValueRange x) -> Value {
        Value divisor = arith::IndexCastOp::create(b, b.getI64Type(), b.indexOf(size));
        Value quotient = arith::FloorDivSIOp::create(b, x[0], divisor);
        return arith::SubIOp::create(b, x[0], arith::MulIOp::create(b, quotient, divisor));
      });
}

/// Like gather, but both tensors broadcast in all dimensions except `dim`, and as in torch, an index counts modulo the
/// size of the dimension. If `dim` is missing, both tensors are flattened, and an index must lie in the tensor.
static LogicalResult takeAlongDim(Call &call) {
  Tensor self = call.tensor("self"), index = call.tensor("indices");
  if (call.failed())
    return failure();
  if (!call.has("dim")) {
    for (Tensor *tensor : {&self, &index}) {
      std::optional<Size> all = Size(1);
      for (const Size &size : tensor->sizes)
        all = all ? multiply(*all, size) : all;
      FailureOr<Tensor> flat = all ? viewAs(call, *tensor, *all) : FailureOr<Tensor>(failure());
      if (failed(flat))
        return failure();
      *tensor = *flat;
    }
  }
  bool hasDim = call.has("dim");
  int64_t dim = hasDim ? call.dim("dim", self.rank()) : 0;
  if (call.failed() || failed(checkIndexed(call, index, self.sizes[dim])))
    return failure();
  Sizes ofSelf = self.sizes, ofIndex = index.sizes;
  if (ofIndex.size() == ofSelf.size())
    ofSelf[dim] = ofIndex[dim] = 1;
  std::optional<Sizes> sizes = TensorBuilder::broadcast({ofSelf, ofIndex});
  if (!sizes || index.rank() != self.rank())
    return call.error() << "expected indices that broadcast with the tensor, got "
                        << str(index.sizes) << " and " << str(self.sizes);
  if (hasDim)
    index = remainderOf(call.b, index, self.sizes[dim]);
  if (failed(boundIndex(call, index, self.sizes[dim], /*wraps=*/false)))
    return failure();
  ofSelf = ofIndex = *sizes;
  ofSelf[dim] = self.sizes[dim];
  ofIndex[dim] = index.sizes[dim];
  self = call.b.broadcastTo(self, ofSelf);
  return call.result(readAlong(call.b, self, dim, ofIndex,
                               Operand{call.b.broadcastTo(index, ofIndex), index.dtype}));
}

namespace {
/// The indices in self[indices...], which broadcast to one shape. In the result, this shape takes the place of the
/// indexed dimensions if these are adjacent, and comes first otherwise.
struct Indices {
  SmallVector<Operand> operands; ///< the indices, read at dimensions of `sizes`
  SmallVector<int64_t> dims;     ///< the dimension of self for each operand
  SmallVector<int64_t> shape;    ///< the dimensions of `sizes` that are the shape of the indices
  Sizes sizes;                   ///< sizes of self[indices...]
  /// For each dimension of self, its position in `sizes`, or -1 if an index replaces the dimension. A position that is
  /// in `shape` means that the index varies along this dimension too, as in scatter.
  SmallVector<int64_t> kept;
};
} // namespace

static FailureOr<Indices> readIndices(Call &call, const Tensor &self) {
  SmallVector<std::optional<Tensor>> tensors = call.optionalTensors("indices");
  if (call.failed())
    return failure();
  Indices indices;
  SmallVector<Sizes> shapes;
  for (auto [dim, one] : llvm::enumerate(tensors)) {
    if (!one)
      continue;
    if (int64_t(dim) >= self.rank())
      return call.error() << "expected at most " << self.rank() << " indices, got "
                          << tensors.size();
    if (failed(checkIndexed(call, *one, self.sizes[dim])) ||
        failed(boundIndex(call, *one, self.sizes[dim], /*wraps=*/true)))
      return failure();
    shapes.push_back(one->sizes);
    indices.dims.push_back(dim);
  }
  std::optional<Sizes> shape = TensorBuilder::broadcast(shapes);
  ArrayRef<int64_t> dims = indices.dims;
  if (dims.empty() || !shape)
    return call.error() << "expected indices that broadcast";
  bool areNeighbours = dims.back() - dims.front() + 1 == int64_t(dims.size());
  int64_t first = areNeighbours ? dims.front() : 0, front = first, count = shape->size();
  indices.kept.assign(self.rank(), -1);
  for (int64_t dim = 0, next = 0; dim <= self.rank(); ++dim) {
    if (next == front) {
      indices.sizes.append(shape->begin(), shape->end());
      next += count;
      front = -1;
    }
    if (dim == self.rank() || llvm::is_contained(dims, dim))
      continue;
    indices.kept[dim] = next++;
    indices.sizes.push_back(self.sizes[dim]);
  }
  llvm::append_range(indices.shape, llvm::seq(first, first + count));
  TensorBuilder &b = call.b;
  for (int64_t dim : dims) {
    const Tensor &one = *tensors[dim];
    SmallVector<AffineExpr> exprs;
    for (auto [i, size] : llvm::enumerate(one.sizes)) {
      int64_t position = count - one.rank() + i;
      bool isBroadcast = size.isOne() && !(*shape)[position].isOne();
      exprs.push_back(isBroadcast ? b.getAffineConstantExpr(0)
                                  : b.getAffineDimExpr(first + position));
    }
    indices.operands.push_back(
        {one, one.dtype, AffineMap::get(indices.sizes.size(), 0, exprs, b.getContext())});
  }
  return indices;
}

/// self[indices...]
static LogicalResult indexBy(Call &call) {
  Tensor self = call.tensor("self");
  FailureOr<Indices> indices = readIndices(call, self);
  if (failed(indices))
    return failure();
  TensorBuilder &b = call.b;
  return call.result(
      b.elementwise(indices->sizes, self.dtype, indices->operands, [&](ValueRange x) -> Value {
        SmallVector<Value> at;
        size_t next = 0;
        for (auto [dim, kept] : llvm::enumerate(indices->kept))
          at.push_back(kept >= 0 ? Value(linalg::IndexOp::create(b, kept))
                                 : toPosition(b, x[next++], self.sizes[dim], /*wraps=*/true));
        return tensor::ExtractOp::create(b, self.value, at);
      }));
}

static Value accumulate(TensorBuilder &b, Value sum, Value x) {
  if (isa<FloatType>(x.getType()))
    return arith::AddFOp::create(b, sum, x);
  if (x.getType().isInteger(1))
    return arith::OrIOp::create(b, sum, x);
  return arith::AddIOp::create(b, sum, x);
}

/// Replaces self[indices...] by `values`, which have sizes `indices.sizes`, or adds `values` to self[indices...].
/// Creates loops over the dimensions of the indices. Each iteration inserts the values of one point, in the order of
/// torch on a CPU.
static FailureOr<Tensor> writeAt(Call &call, const Tensor &self, const Indices &indices,
                                 const Tensor &values, bool wraps, bool adds) {
  TensorBuilder &b = call.b;
  OpBuilder::InsertionGuard guard(b);
  Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  SmallVector<Value> point(indices.sizes.size(), zero);
  Value sofar = self.value;
  scf::ForOp outermost;
  for (int64_t dim : indices.shape) {
    if (indices.sizes[dim].isOne())
      continue;
    auto loop = scf::ForOp::create(b, zero, b.indexOf(indices.sizes[dim]), one, sofar);
    if (outermost)
      scf::YieldOp::create(b, loop.getResults());
    else
      outermost = loop;
    b.setInsertionPointToStart(loop.getBody());
    point[dim] = loop.getInductionVar();
    sofar = loop.getRegionIterArg(0);
  }
  // The sizes of the values of one point, in `values` and in `self`: 1 in the indexed dimensions.
  SmallVector<OpFoldResult> from(indices.sizes.size(), b.getIndexAttr(0)), to;
  Sizes ofValues = indices.sizes, ofSelf = self.sizes;
  for (int64_t dim : indices.shape) {
    from[dim] = point[dim];
    ofValues[dim] = 1;
  }
  size_t next = 0;
  for (auto [dim, kept] : llvm::enumerate(indices.kept)) {
    if (kept >= 0 && !llvm::is_contained(indices.shape, kept)) {
      to.push_back(b.getIndexAttr(0));
      continue;
    }
    ofSelf[dim] = 1;
    if (kept >= 0) {
      to.push_back(point[kept]);
      continue;
    }
    const Operand &index = indices.operands[next++];
    SmallVector<Value> at = llvm::map_to_vector(index.map.getResults(), [&](AffineExpr expr) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      return loop ? point[loop.getPosition()] : zero;
    });
    Value element = tensor::ExtractOp::create(b, index.tensor.value, at);
    to.push_back(toPosition(b, element, self.sizes[dim], wraps));
  }
  auto slice = [&](Value tensor, ArrayRef<OpFoldResult> offsets, const Sizes &sizes) -> Tensor {
    SmallVector<OpFoldResult> strides(offsets.size(), b.getIndexAttr(1));
    return {tensor::ExtractSliceOp::create(b, b.typeOf(sizes, self.dtype), tensor, offsets,
                                           b.sizesOf(sizes), strides),
            self.dtype, sizes};
  };
  FailureOr<Tensor> written = viewAs(call, slice(values.value, from, ofValues), ofSelf);
  if (failed(written))
    return failure();
  DType as = computeType(self.dtype);
  if (adds)
    written = b.elementwise(ofSelf, self.dtype, {{slice(sofar, to, ofSelf), as}, {*written, as}},
                            [&](ValueRange x) -> Value { return accumulate(b, x[0], x[1]); });
  SmallVector<OpFoldResult> strides(to.size(), b.getIndexAttr(1));
  sofar = tensor::InsertSliceOp::create(b, written->value, sofar, to, b.sizesOf(ofSelf), strides);
  if (!outermost)
    return Tensor{sofar, self.dtype, self.sizes};
  scf::YieldOp::create(b, sofar);
  return Tensor{outermost.getResult(0), self.dtype, self.sizes};
}

/// self with `values` at the elements for which `mask` is true; the mask indexes the dimensions from `first` on. The
/// number of these elements depends on data, so `values` must be the same for all of them, and may vary only along
/// other dimensions.
static LogicalResult putWhere(Call &call, const Tensor &self, const Tensor &mask, int64_t first,
                              const Tensor &values, bool adds) {
  int64_t rank = self.rank(), last = first + mask.rank();
  bool fits = values.dtype == self.dtype && mask.rank() > 0 && last <= rank &&
              ArrayRef(self.sizes).slice(first, mask.rank()) == ArrayRef<Size>(mask.sizes) &&
              values.rank() <= first + 1 + rank - last;
  TensorBuilder &b = call.b;
  SmallVector<AffineExpr> exprs;
  for (auto [i, size] : llvm::enumerate(values.sizes)) {
    // The dimensions of values are aligned at the end; one dimension stands for all dimensions of the mask.
    int64_t dim = rank - (values.rank() - int64_t(i));
    if (dim < last)
      dim += mask.rank() - 1;
    bool isElement = dim == last - 1;
    fits = fits && (size.isOne() || (!isElement && size == self.sizes[dim]));
    exprs.push_back(size.isOne() ? b.getAffineConstantExpr(0) : b.getAffineDimExpr(dim));
  }
  if (!fits)
    return call.error() << "expected a boolean index of " << str(self.dtype) << str(self.sizes)
                        << " and values that are the same for each of its elements, got "
                        << str(mask.sizes) << " at dimension " << first << " and "
                        << str(values.dtype) << str(values.sizes);
  DType as = computeType(self.dtype);
  AffineMap all = b.getMultiDimIdentityMap(rank);
  return call.result(b.elementwise(self.sizes, self.dtype,
                                   {{self, as},
                                    {mask, DType::Bool, all.getSliceMap(first, mask.rank())},
                                    {values, as, AffineMap::get(rank, 0, exprs, b.getContext())}},
                                   [&](ValueRange x) -> Value {
                                     return arith::SelectOp::create(
                                         b, x[1], adds ? accumulate(b, x[0], x[2]) : x[2], x[0]);
                                   }));
}

/// self[indices...] = values, or += values.
static LogicalResult indexPut(Call &call) {
  Tensor self = call.tensor("self"), values = call.tensor("values");
  bool adds = call.flag("accumulate");
  SmallVector<std::optional<Tensor>> given = call.optionalTensors("indices");
  if (call.failed())
    return failure();
  auto *mask =
      llvm::find_if(given, [](const auto &index) { return index && index->dtype == DType::Bool; });
  if (mask != given.end() &&
      llvm::count_if(given, [](const auto &index) { return bool(index); }) == 1)
    return putWhere(call, self, **mask, mask - given.begin(), values, adds);
  FailureOr<Indices> indices = readIndices(call, self);
  if (failed(indices))
    return failure();
  std::optional<Sizes> fits = TensorBuilder::broadcast({values.sizes, indices->sizes});
  if (values.dtype != self.dtype || !fits || *fits != indices->sizes)
    return call.error() << "expected values that broadcast to " << str(self.dtype)
                        << str(indices->sizes) << ", got " << str(values.dtype)
                        << str(values.sizes);
  FailureOr<Tensor> written = writeAt(
      call, self, *indices, call.b.broadcastTo(values, indices->sizes), /*wraps=*/true, adds);
  return failed(written) ? failure() : call.result(*written);
}

/// The indices for `index` along `dim` of self. The indexed elements have sizes `sizes`, and the index is read through
/// `map`.
static FailureOr<Indices> readIndicesAlong(Call &call, const Tensor &self, const Tensor &index,
                                           int64_t dim, ArrayRef<Size> sizes, AffineMap map,
                                           bool wraps) {
  if (failed(checkIndexed(call, index, self.sizes[dim])) ||
      failed(boundIndex(call, index, self.sizes[dim], wraps)))
    return failure();
  Indices indices;
  indices.dims = {dim};
  indices.sizes = Sizes(sizes);
  llvm::append_range(indices.kept, llvm::seq<int64_t>(0, self.rank()));
  indices.kept[dim] = -1;
  indices.operands.push_back({index, index.dtype, map});
  return indices;
}

/// The indices for the argument `index`, a vector or a number, along the argument `dim`.
static FailureOr<Indices> readVector(Call &call, const Tensor &self, bool wraps) {
  Tensor index = call.tensor("index");
  int64_t dim = call.dim("dim", self.rank());
  if (call.failed())
    return failure();
  if (index.rank() > 1)
    return call.error() << "expected indices of rank 1, got " << str(index.sizes);
  Sizes sizes = self.sizes;
  sizes[dim] = index.rank() == 0 ? Size(1) : index.sizes[0];
  AffineMap map = AffineMap::get(self.rank(), 0, call.b.getAffineDimExpr(dim), call.b.getContext());
  FailureOr<Indices> indices = readIndicesAlong(call, self, index, dim, sizes,
                                                index.rank() == 0 ? map.dropResult(0) : map, wraps);
  if (succeeded(indices))
    indices->shape = {dim};
  return indices;
}

/// result[..., index[i], ...] = source[..., i, ...], or += alpha * source; all other elements are those of self.
static std::function<LogicalResult(Call &)> indexWrite(bool adds) {
  return [=](Call &call) -> LogicalResult {
    Tensor self = call.tensor("self"), source = call.tensor("source");
    Scalar alpha = adds ? call.scalar("alpha", 1) : Scalar{false, 1, 1};
    FailureOr<Indices> indices = readVector(call, self, /*wraps=*/false);
    if (failed(indices))
      return failure();
    if (source.dtype != self.dtype || source.sizes != indices->sizes ||
        (alpha.isFloat && !attn::graph::isFloat(self.dtype)))
      return call.error() << "expected indices of rank 1 and elements " << str(self.dtype)
                          << str(indices->sizes) << ", got " << str(source.dtype)
                          << str(source.sizes);
    TensorBuilder &b = call.b;
    DType as = computeType(self.dtype);
    if (alpha.number != 1) {
      Value factor = alpha.in(b, as);
      source =
          b.elementwise(source.sizes, self.dtype, Operand{source, as}, [&](ValueRange x) -> Value {
            if (attn::graph::isFloat(as))
              return arith::MulFOp::create(b, x[0], factor);
            return arith::MulIOp::create(b, x[0], factor);
          });
    }
    FailureOr<Tensor> written = writeAt(call, self, *indices, source, /*wraps=*/false, adds);
    return failed(written) ? failure() : call.result(*written);
  };
}

/// The argument `value`, a number or a tensor of rank 0, as a tensor of `sizes` with the type of `self`.
static FailureOr<Tensor> readValue(Call &call, const Tensor &self, ArrayRef<Size> sizes) {
  TensorBuilder &b = call.b;
  if (call.isTensor("value")) {
    Tensor value = call.tensor("value");
    if (call.failed())
      return failure();
    if (value.rank() != 0 || !TensorBuilder::converts(value.dtype, self.dtype))
      return call.error() << "expected a value that " << str(self.dtype) << " can hold, got "
                          << str(value.dtype) << str(value.sizes);
    return b.broadcastTo(b.castTo(value, self.dtype), sizes);
  }
  Scalar value = call.scalar("value");
  if (call.failed())
    return failure();
  if (!value.fits(self.dtype))
    return call.error() << "expected a value that " << str(self.dtype) << " can hold, got "
                        << value.number;
  return b.fill(sizes, value.in(b, self.dtype), self.dtype);
}

/// result[..., index[i], ...] = value, where negative indices count from the end
static LogicalResult indexFill(Call &call) {
  Tensor self = call.tensor("self");
  FailureOr<Indices> indices = readVector(call, self, /*wraps=*/true);
  FailureOr<Tensor> value =
      failed(indices) ? FailureOr<Tensor>(failure()) : readValue(call, self, indices->sizes);
  if (failed(value))
    return failure();
  FailureOr<Tensor> written = writeAt(call, self, *indices, *value, /*wraps=*/true, /*adds=*/false);
  return failed(written) ? failure() : call.result(*written);
}

/// result[i, index[i, j, k], k] = src[i, j, k] for dimension 1, or += src[i, j, k], or = value.
static std::function<LogicalResult(Call &)> scatter(bool adds) {
  return [=](Call &call) -> LogicalResult {
    Tensor self = call.tensor("self"), index = call.tensor("index"), source;
    int64_t dim = call.dim("dim", self.rank());
    if (call.has("src"))
      source = call.tensor("src");
    if (call.failed())
      return failure();
    bool hasSource = bool(source.value);
    if (self.rank() == 0 || index.rank() != self.rank() ||
        (hasSource && (source.rank() != self.rank() || source.dtype != self.dtype)))
      return call.error() << "expected indices and a source " << str(self.dtype)
                          << " of the rank of " << str(self.sizes) << ", got " << str(index.sizes)
                          << " and " << str(source.dtype) << str(source.sizes);
    for (int64_t i = 0; i < self.rank(); ++i) {
      if (i != dim)
        call.requireAtMost(index.sizes[i], self.sizes[i]);
      if (hasSource)
        call.requireAtMost(index.sizes[i], source.sizes[i]);
    }
    if (call.failed())
      return failure();
    TensorBuilder &b = call.b;
    FailureOr<Indices> indices =
        readIndicesAlong(call, self, index, dim, index.sizes, b.getMultiDimIdentityMap(self.rank()),
                         /*wraps=*/false);
    if (failed(indices))
      return failure();
    llvm::append_range(indices->shape, llvm::seq<int64_t>(0, self.rank()));
    FailureOr<Tensor> values = source;
    for (int64_t i = 0; hasSource && i < self.rank(); ++i)
      values = b.slice(*values, i, 0, index.sizes[i]);
    if (!hasSource)
      values = readValue(call, self, index.sizes);
    if (failed(values))
      return failure();
    FailureOr<Tensor> written = writeAt(call, self, *indices, *values, /*wraps=*/false, adds);
    return failed(written) ? failure() : call.result(*written);
  };
}

/// result[i..., c] = 1 if index[i...] is c, and 0 otherwise
static LogicalResult oneHot(Call &call) {
  Tensor index = call.tensor("self");
  Size count = call.integer("num_classes");
  if (call.failed() || failed(checkIndexed(call, index, count)) ||
      failed(boundIndex(call, index, count, /*wraps=*/false)))
    return failure();
  TensorBuilder &b = call.b;
  Sizes sizes = index.sizes;
  sizes.push_back(count);
  AffineMap map = b.getMultiDimIdentityMap(sizes.size()).getSliceMap(0, index.rank());
  return call.result(
      b.elementwise(sizes, DType::I64, Operand{index, DType::I64, map}, [&](ValueRange x) -> Value {
        Value c =
            arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, index.rank()));
        Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x[0], c);
        return arith::ExtUIOp::create(b, b.getI64Type(), isOne);
      }));
}

void attn::pt2::addIndexing(AtenOps &ops) {
  ops.add("embedding.default", embedding);
  ops.add("repeat_interleave.self_Tensor", repeatByLengths,
          "a missing `output_size`; a missing dimension, except for tensors of rank 1; lengths are not "
          "checked");
  ops.add("repeat_interleave.Tensor", repeatPositions,
          "a missing `output_size`; lengths are not checked");
  ops.add("index_select.default", indexSelect);
  ops.add("take_along_dim.default", takeAlongDim);
  ops.add("gather.default", gather);
  ops.add("one_hot.default", oneHot, "a number of classes that depends on data");
  ops.add("index_copy.default", indexWrite(/*adds=*/false));
  ops.add("index_add.default", indexWrite(/*adds=*/true));
  ops.add("index_fill.int_Scalar", indexFill);
  ops.add("index_fill.int_Tensor", indexFill);
  for (StringRef name : {"index_put.default", "_unsafe_index_put.default"})
    ops.add(name, indexPut,
            "boolean indices, except a single one that writes the same values to all its elements");
  ops.add("scatter.src", scatter(/*adds=*/false));
  ops.add("scatter.value", scatter(/*adds=*/false));
  ops.add("scatter_add.default", scatter(/*adds=*/true));
  for (StringRef name : {"index.Tensor", "_unsafe_index.Tensor"})
    ops.add(name, indexBy, "boolean indices, because the size of the result depends on data");
}
