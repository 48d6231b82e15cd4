//===- Parts.cpp - aten's views of parts of a tensor -----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Imports select, slice, split, unbind, diagonal and similar ops. As in Views.cpp, a view has a function that writes
// its elements to its base, unless elements of the view may share memory. The ops whose names end in _scatter return
// the result of such a write.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::pt2;

/// Returns the position of `index` from the front; a negative index counts from the end. For an index -n where n
/// depends on sizes, requires n >= 1, because index 0 already counts from the front.
static Size fromEnd(Call &call, const Size &index, const Size &size) {
  std::optional<Size> back = multiply(index, Size(-1));
  if (index == Size(0) || !back || !(back->isNonNegative() || back->constant().value_or(-1) > 0))
    return index;
  call.requireAtMost(Size(1), *back);
  return add(index, size).value_or(index);
}

/// Sets a result to the elements of `dim` from `offset` on, or to one element if the dimension is dropped.
static LogicalResult resultPart(Call &call, const Tensor &x, int64_t dim, const Size &offset,
                                const Size &size, int64_t step, bool isDropped) {
  auto write = [=](Call &writer, const Tensor &base, const Tensor &part) {
    return FailureOr<Tensor>(writer.b.insert(base, part, dim, offset, step, isDropped));
  };
  Tensor part =
      isDropped ? call.b.select(x, dim, offset) : call.b.slice(x, dim, offset, size, step);
  return call.resultView("self", part, write);
}

/// Reads the index of an element of `dim`; the result counts from the front.
static FailureOr<Size> readIndex(Call &call, const Tensor &x, int64_t dim) {
  Size index = call.integer("index");
  if (call.failed())
    return failure();
  if (std::optional<int64_t> number = index.constant()) {
    // An index -n needs n elements, and ~(-n) is n - 1.
    call.requireElement(x.sizes[dim], *number < 0 ? ~*number : *number);
    index = fromEnd(call, index, x.sizes[dim]);
  } else {
    index = fromEnd(call, index, x.sizes[dim]);
    std::optional<Size> count = add(index, Size(1));
    if (!count)
      return failure();
    call.requireAtMost(Size(0), index);
    call.requireAtMost(*count, x.sizes[dim]);
  }
  if (call.failed())
    return failure();
  return index;
}

static LogicalResult selectOne(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank());
  FailureOr<Size> index = readIndex(call, x, dim);
  return failed(index) ? failure() : resultPart(call, x, dim, *index, 1, 1, /*isDropped=*/true);
}

/// self with one element of a dimension replaced by src.
static LogicalResult selectScatter(Call &call) {
  Tensor x = call.tensor("self"), part = call.tensor("src");
  int64_t dim = call.dim("dim", x.rank());
  FailureOr<Size> index = readIndex(call, x, dim);
  if (failed(index))
    return failure();
  Sizes sizes = x.sizes;
  sizes.erase(sizes.begin() + dim);
  if (part.dtype != x.dtype || part.sizes != sizes)
    return call.error() << "expected " << str(x.dtype) << str(sizes) << ", got " << str(part.dtype)
                        << str(part.sizes);
  return call.result(call.b.insert(x, part, dim, *index, 1, /*isDropped=*/true));
}

/// Returns the start of a slice of `dim`. The slice has the elements start, start + step, ... before end. An end beyond
/// the last element is clamped. The number of elements, which may depend on sizes, must provably be `count`, the number
/// in the file.
static FailureOr<Size> readStart(Call &call, const Tensor &x, int64_t dim, int64_t step,
                                 const Size &count) {
  Size start = call.has("start") ? call.integer("start") : Size(0);
  bool hasEnd = call.has("end");
  Size end = hasEnd ? call.integer("end") : Size();
  if (call.failed())
    return failure();
  const Size &size = x.sizes[dim];
  if (step < 1)
    return call.error() << "expected a step of at least 1, got " << step;
  bool toEnd = !hasEnd || end.constant().value_or(0) >= kMaxDim || end == size;
  if (toEnd)
    end = size;
  start = fromEnd(call, start, size);
  end = fromEnd(call, end, size);
  if (start.constant() && end.constant() && size.constant()) {
    int64_t all = *size.constant(), last = std::clamp<int64_t>(*end.constant(), 0, all);
    start = std::clamp<int64_t>(*start.constant(), 0, all);
    int64_t length = std::max<int64_t>(last - *start.constant(), 0);
    int64_t number = llvm::divideCeil(length, step);
    if (count != Size(number))
      return call.error() << "expected " << number << " elements, got " << count.str();
    return start;
  }
  std::optional<Size> length = subtract(end, start);
  std::optional<Size> number = length ? divideUp(*length, step) : std::nullopt;
  if (number && count == *number) {
    // `count` is right if nothing is clamped, so require 0 <= start <= end <= size.
    call.requireAtMost(Size(0), start);
    call.requireAtMost(start, end);
    call.requireAtMost(end, size);
    if (call.failed())
      return failure();
    return start;
  }
  std::optional<Size> first = maximum(start, Size(0)), last = minimum(end, size);
  first = first ? minimum(*first, size) : first;
  last = last && first ? maximum(*last, *first) : std::nullopt;
  length = last ? subtract(*last, *first) : std::nullopt;
  number = length ? divideUp(*length, step) : std::nullopt;
  if (!number || call.decided(*number) != count)
    return call.error() << "expected " << (number ? number->str() : "fewer than 2^63")
                        << " elements, got " << count.str();
  return call.decided(*first);
}

static LogicalResult slice(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank(), 0), step = call.constant("step", 1);
  const TensorMeta &meta = call.expected();
  if (call.failed())
    return failure();
  if (meta.sizes.size() != x.sizes.size())
    return call.error() << "expected a slice of rank " << x.rank() << ", got " << str(meta.sizes);
  FailureOr<Size> start = readStart(call, x, dim, step, meta.sizes[dim]);
  return failed(start)
             ? failure()
             : resultPart(call, x, dim, *start, meta.sizes[dim], step, /*isDropped=*/false);
}

/// self with a slice replaced by src.
static LogicalResult sliceScatter(Call &call) {
  Tensor x = call.tensor("self"), part = call.tensor("src");
  int64_t dim = call.dim("dim", x.rank(), 0), step = call.constant("step", 1);
  if (call.failed())
    return failure();
  Sizes sizes = x.sizes;
  if (part.rank() == x.rank())
    sizes[dim] = part.sizes[dim];
  if (part.dtype != x.dtype || part.sizes != sizes)
    return call.error() << "expected a slice of " << str(x.dtype) << str(x.sizes) << ", got "
                        << str(part.dtype) << str(part.sizes);
  FailureOr<Size> start = readStart(call, x, dim, step, sizes[dim]);
  return failed(start)
             ? failure()
             : call.result(call.b.insert(x, part, dim, *start, step, /*isDropped=*/false));
}

static LogicalResult narrow(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank());
  Size start = call.integer("start"), length = call.integer("length");
  if (call.failed())
    return failure();
  start = fromEnd(call, start, x.sizes[dim]);
  std::optional<Size> end = add(start, length);
  if (!end)
    return failure();
  call.requireAtMost(Size(0), start);
  call.requireAtMost(Size(0), length);
  call.requireAtMost(*end, x.sizes[dim]);
  if (call.failed())
    return failure();
  return resultPart(call, x, dim, start, length, 1, /*isDropped=*/false);
}

/// Sets each result to a run of elements of `dim`.
static LogicalResult resultRuns(Call &call, const Tensor &x, int64_t dim, ArrayRef<Size> runs) {
  if (runs.size() != call.numResults())
    return call.error() << "expected " << runs.size() << " results, got " << call.numResults();
  Size offset = 0;
  for (const Size &run : runs) {
    std::optional<Size> next = add(offset, run);
    if (!next || failed(resultPart(call, x, dim, offset, run, 1, /*isDropped=*/false)))
      return failure();
    offset = *next;
  }
  if (offset != x.sizes[dim])
    return call.error() << "expected parts of " << x.sizes[dim].str() << " elements, got "
                        << offset.str();
  return success();
}

/// Splits `dim` into runs of `run` elements; the last run may be shorter. The number of runs must be the number of
/// results.
static LogicalResult splitUnknown(Call &call, const Tensor &x, int64_t dim,
                                  const std::optional<Size> &run) {
  const Size &size = x.sizes[dim];
  int64_t count = call.numResults();
  std::optional<Size> all = run ? multiply(*run, Size(count)) : std::nullopt,
                      others = run ? multiply(*run, Size(count - 1)) : std::nullopt,
                      last = others ? subtract(size, *others) : std::nullopt;
  if (!all || !last)
    return failure();
  call.requireAtMost(Size(1), *last);
  call.requireAtMost(size, *all);
  if (call.failed())
    return failure();
  Sizes runs(count, *run);
  runs.back() = call.decided(*last);
  return resultRuns(call, x, dim, runs);
}

/// Splits `dim` into runs of `split_size` elements; the last run may be shorter. chunk has the number of runs as its
/// argument instead.
static LogicalResult split(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank(), 0);
  bool isChunk = call.target().contains("chunk");
  Size asked = isChunk ? Size(call.constant("chunks")) : call.integer("split_size");
  if (call.failed())
    return failure();
  std::optional<int64_t> size = x.sizes[dim].constant();
  int64_t number = asked.constant().value_or(1);
  if (number < 1 || call.numResults() < 1)
    return call.error() << "expected a number or size of parts of at least 1, got " << asked.str()
                        << " for " << x.sizes[dim].str() << " elements";
  if (!size || !asked.constant())
    return splitUnknown(call, x, dim, isChunk ? divideUp(x.sizes[dim], asked) : asked);
  int64_t run = isChunk ? std::max<int64_t>(llvm::divideCeil(*size, number), 1) : number;
  int64_t count = *size != 0 ? llvm::divideCeil(*size, run) : isChunk ? number : 1;
  // Check this before the list of runs is created, because the list may be too large for memory.
  if (count != call.numResults())
    return call.error() << "expected " << count << " results, got " << call.numResults();
  Sizes runs(count, Size(0));
  for (int64_t i = 0; *size != 0 && i < count; ++i)
    runs[i] = std::min(run, *size - i * run);
  return resultRuns(call, x, dim, runs);
}

static LogicalResult splitWithSizes(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank(), 0);
  Sizes runs = call.integers(call.has("split_sizes") ? "split_sizes" : "split_size");
  return call.failed() ? failure() : resultRuns(call, x, dim, runs);
}

/// Splits at the given indices, or into the given number of parts. In the second case, the first parts may have one
/// element more than the others.
static LogicalResult tensorSplit(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank(), 0);
  bool hasIndices = call.has("indices");
  SmallVector<int64_t> begins =
      hasIndices ? call.constants("indices") : SmallVector<int64_t>{call.constant("sections")};
  if (call.failed())
    return failure();
  std::optional<int64_t> size = x.sizes[dim].constant();
  int64_t count = hasIndices ? int64_t(begins.size()) + 1 : begins.front();
  if (!size || count < 1 || count != call.numResults())
    return call.error() << "expected a result for each part of a dimension of known size, got "
                        << count << " parts of " << x.sizes[dim].str() << " elements and "
                        << call.numResults() << " results";
  Sizes runs;
  if (!hasIndices)
    for (int64_t i = 0; i < count; ++i)
      runs.push_back(*size / count + (i < *size % count));
  int64_t last = 0;
  begins.push_back(*size);
  for (int64_t begin : hasIndices ? ArrayRef(begins) : ArrayRef<int64_t>()) {
    int64_t at = std::clamp<int64_t>(begin < 0 ? begin + *size : begin, 0, *size);
    if (at < last)
      return call.error() << "expected indices in increasing order, got " << begin;
    runs.push_back(at - last);
    last = at;
  }
  return resultRuns(call, x, dim, runs);
}

/// Makes each element of `dim` a result.
static LogicalResult unbind(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank(), 0);
  if (call.failed())
    return failure();
  if (x.sizes[dim].constant() != call.numResults())
    return call.error() << "expected " << x.sizes[dim].str() << " results, got "
                        << call.numResults();
  for (int64_t i = 0; i < call.numResults(); ++i)
    if (failed(resultPart(call, x, dim, i, 1, 1, /*isDropped=*/true)))
      return failure();
  return success();
}

/// The elements whose positions in `dim1` and `dim2` differ by `offset`, as the last dimension. diagonal_scatter
/// returns `self` with these elements replaced by `src`.
static LogicalResult diagonalOf(Call &call, StringRef offsetName, bool isView) {
  Tensor x = call.tensor("self");
  int64_t rank = x.rank(), offset = call.constant(offsetName, 0), rows = call.dim("dim1", rank, 0),
          columns = call.dim("dim2", rank, 1);
  if (call.failed())
    return failure();
  if (rows == columns || offset <= -kMaxDim || offset >= kMaxDim)
    return call.error()
           << "expected two dimensions and an offset of less than 2^31, got dimensions " << rows
           << " and " << columns << " of " << str(x.sizes) << " and offset " << offset;
  int64_t row = std::max<int64_t>(-offset, 0), column = std::max<int64_t>(offset, 0);
  std::optional<Size> height = subtract(x.sizes[rows], row),
                      width = subtract(x.sizes[columns], column),
                      least = height && width ? minimum(*height, *width) : std::nullopt,
                      number = least ? maximum(*least, 0) : std::nullopt;
  if (!number)
    return call.error() << "expected a diagonal, got " << str(x.sizes) << " and offset " << offset;
  Size count = *number;
  if (!count.constant()) {
    // A slice begins inside of its tensor, even if it is empty. So there is no need for the maximum with 0, which the
    // file has or lacks.
    call.requireAtMost(row, x.sizes[rows]);
    call.requireAtMost(column, x.sizes[columns]);
    Sizes stated = call.has("src") ? call.tensor("src").sizes : call.expected().sizes;
    if (call.failed())
      return failure();
    if (stated.empty() || stated.back() != *number)
      count = *least;
  }
  Sizes sizes;
  SmallVector<AffineExpr> ofSquare(rank);
  TensorBuilder &b = call.b;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (dim == rows || dim == columns)
      continue;
    ofSquare[dim] = b.getAffineDimExpr(sizes.size());
    sizes.push_back(x.sizes[dim]);
  }
  ofSquare[rows] = ofSquare[columns] = b.getAffineDimExpr(sizes.size());
  sizes.push_back(count);
  // Replaces each element of the base on the diagonal by the element of the part.
  auto write = [=](Call &writer, const Tensor &base, const Tensor &part) -> FailureOr<Tensor> {
    TensorBuilder &b = writer.b;
    if (count == Size(0))
      return base;
    writer.requireAtMost(1, count); // every element reads one of the part
    if (writer.failed())
      return failure();
    return b.elementwise(
        base.sizes, base.dtype, Operand{base, base.dtype}, [&](ValueRange old) -> Value {
          auto constant = [&](int64_t value) -> Value {
            return arith::ConstantIndexOp::create(b, value);
          };
          Value i = linalg::IndexOp::create(b, rows), j = linalg::IndexOp::create(b, columns);
          Value at = arith::SubIOp::create(b, i, constant(row));
          Value isOn = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at,
                                             arith::SubIOp::create(b, j, constant(column)));
          Value nearest = arith::MaxSIOp::create(
              b,
              arith::MinSIOp::create(b, at,
                                     arith::SubIOp::create(b, b.indexOf(count), constant(1))),
              constant(0));
          Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at, nearest);
          SmallVector<Value> indices;
          for (int64_t dim = 0; dim < rank; ++dim)
            if (dim != rows && dim != columns)
              indices.push_back(linalg::IndexOp::create(b, dim));
          indices.push_back(nearest);
          Value element = tensor::ExtractOp::create(b, part.value, indices);
          return arith::SelectOp::create(b, arith::AndIOp::create(b, isOn, exists), element,
                                         old[0]);
        });
  };
  if (call.has("src")) {
    Tensor source = call.tensor("src");
    if (call.failed() || source.dtype != x.dtype || source.sizes != sizes)
      return call.error() << "expected a source " << str(x.dtype) << str(sizes) << ", got "
                          << str(source.dtype) << str(source.sizes);
    return call.result(*write(call, x, source));
  }
  Tensor square = b.slice(b.slice(x, rows, row, count), columns, column, count);
  AffineMap map = AffineMap::get(sizes.size(), 0, ofSquare, b.getContext());
  Tensor part = b.elementwise(sizes, x.dtype, Operand{square, x.dtype, map},
                              [](ValueRange e) { return e[0]; });
  return isView ? call.resultView("self", part, write) : call.result(part);
}

static LogicalResult diagonal(Call &call) { return diagonalOf(call, "offset", /*isView=*/true); }

/// Imports diag, which returns the diagonal of a matrix, or a matrix that has a vector on its diagonal and is 0
/// elsewhere.
static LogicalResult diag(Call &call) {
  Tensor x = call.tensor("self");
  if (call.failed())
    return failure();
  if (x.rank() == 2)
    return diagonalOf(call, "diagonal", /*isView=*/false);
  if (x.rank() != 1)
    return call.error() << "expected a vector or a matrix, got " << str(x.sizes);
  if (call.constant("diagonal", 0) != 0)
    return call.error() << "expected a vector on the main diagonal";
  TensorBuilder &b = call.b;
  AffineMap rows = AffineMap::get(2, 0, b.getAffineDimExpr(0));
  return call.result(b.elementwise(
      {x.sizes[0], x.sizes[0]}, x.dtype, Operand{x, x.dtype, rows}, [&](ValueRange e) -> Value {
        Value isOn =
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, linalg::IndexOp::create(b, 0),
                                  linalg::IndexOp::create(b, 1));
        Value zero = arith::ConstantOp::create(b, b.getZeroAttr(e[0].getType()));
        return arith::SelectOp::create(b, isOn, e[0], zero);
      }));
}

/// Runs of `size` elements of a dimension, whose starts are `step` apart, as a new last dimension. Runs may overlap, so
/// writes to the result are rejected.
static LogicalResult unfold(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dimension", x.rank()), size = call.constant("size"),
          step = call.constant("step");
  if (call.failed())
    return failure();
  if (size < 0 || size > x.sizes[dim].constant().value_or(size) || step < 1)
    return call.error() << "expected a dimension that contains runs of " << size << " elements, "
                        << step << " apart, got " << x.sizes[dim].str();
  std::optional<Size> count = windowsIn(call, x.sizes[dim], size, step);
  if (!count)
    return failure();
  Sizes sizes = x.sizes;
  sizes[dim] = *count;
  sizes.push_back(size);
  TensorBuilder &b = call.b;
  SmallVector<AffineExpr> exprs;
  for (int64_t i = 0; i < x.rank(); ++i)
    exprs.push_back(i == dim ? b.getAffineDimExpr(i) * step + b.getAffineDimExpr(x.rank())
                             : b.getAffineDimExpr(i));
  AffineMap map = AffineMap::get(sizes.size(), 0, exprs, b.getContext());
  Tensor runs =
      b.elementwise(sizes, x.dtype, Operand{x, x.dtype, map}, [](ValueRange e) { return e[0]; });
  return call.resultView("self", runs, {});
}

/// The elements at offset + sum of index * stride of the memory in which the tensor lies. Elements of the result may share
/// memory, so writes to the result are rejected.
static LogicalResult asStrided(Call &call) {
  Tensor x = call.tensor("self");
  Sizes sizes = call.integers("size"), strides = call.integers("stride");
  Size offset = call.has("storage_offset") ? call.integer("storage_offset") : call.offsetOf("self");
  if (call.failed())
    return failure();
  std::optional<Tensor> storage = call.storageOf("self");
  std::optional<Size> count = Size(1), end = add(offset, 1);
  for (const Size &size : storage ? ArrayRef<Size>(storage->sizes) : ArrayRef<Size>())
    count = count ? multiply(*count, size) : count;
  auto isAtMost = [&](const Size &a, const Size &b) { return call.state().requireAtMost(a, b); };
  bool fits = storage && sizes.size() == strides.size() && isAtMost(0, offset);
  for (auto [size, stride] : llvm::zip(sizes, strides)) {
    fits = fits && isAtMost(1, size) && isAtMost(0, stride);
    std::optional<Size> last = subtract(size, 1), reach = last ? multiply(*last, stride) : last;
    end = end && reach ? add(*end, *reach) : std::nullopt;
  }
  if (!fits || !count || !end || !isAtMost(*end, *count))
    return call.error() << "expected sizes and strides that stay inside a contiguous tensor, got "
                        << str(x.sizes) << ", sizes " << str(sizes) << ", strides " << str(strides)
                        << " and offset " << offset.str();
  FailureOr<Tensor> flat = viewAs(call, *storage, *count);
  if (failed(flat))
    return failure();
  TensorBuilder &b = call.b;
  Tensor elements = b.elementwise(sizes, x.dtype, {}, [&](ValueRange) -> Value {
    Value at = b.indexOf(offset);
    for (auto [dim, stride] : llvm::enumerate(strides)) {
      Value i = linalg::IndexOp::create(b, dim);
      at = arith::AddIOp::create(b, at, arith::MulIOp::create(b, i, b.indexOf(stride)));
    }
    return tensor::ExtractOp::create(b, flat->value, at);
  });
  return call.resultView("self", elements, {});
}

void attn::pt2::addParts(AtenOps &ops) {
  ops.add("select.int", selectOne);
  ops.add("select_scatter.default", selectScatter);
  ops.add("slice.Tensor", slice);
  ops.add("slice_scatter.default", sliceScatter);
  ops.add("narrow.default", narrow);
  for (StringRef name :
       {"split.Tensor", "unsafe_split.Tensor", "chunk.default", "unsafe_chunk.default"})
    ops.add(name, split);
  for (StringRef name :
       {"split_with_sizes.default", "split.sizes", "unsafe_split_with_sizes.default"})
    ops.add(name, splitWithSizes);
  for (StringRef name : {"tensor_split.sections", "tensor_split.indices"})
    ops.add(name, tensorSplit, "dimensions of unknown size; indices in decreasing order");
  ops.add("unbind.int", unbind, "dimensions of unknown size");
  for (StringRef name : {"diagonal.default", "linalg_diagonal.default", "diagonal_scatter.default"})
    ops.add(name, diagonal);
  ops.add("diag.default", diag, "vectors on other diagonals than the main one");
  ops.add("unfold.default", unfold);
  ops.add("as_strided.default", asStrided, "inputs that are not contiguous; views of copies");
}
