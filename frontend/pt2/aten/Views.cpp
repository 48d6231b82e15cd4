//===- Views.cpp - aten's views --------------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A view shares its elements with its base, so an in-place write to one of them is visible in both. Therefore each view
// says how a write to it is written to its base.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::pt2;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

FailureOr<Tensor> attn::pt2::viewAs(Call &call, const Tensor &tensor, ArrayRef<Size> sizes) {
  if (sizes.size() > kMaxRank)
    return call.error() << "expected at most " << kMaxRank << " dimensions, got " << sizes.size();
  if (llvm::is_contained(tensor.sizes, Size(0)) && llvm::is_contained(sizes, Size(0)))
    return call.b.empty(sizes, tensor.dtype);
  std::optional<SmallVector<ViewGroup>> groups = matchView(tensor.sizes, sizes);
  if (!groups)
    return call.error() << "expected a view of " << str(tensor.sizes)
                        << " that holds for every size, got " << str(sizes);
  return call.b.view(tensor, sizes, *groups);
}

/// The result of a view op with other sizes. torch may copy a tensor that is not contiguous; then the effect of a write
/// to the tensor or to the result is not known.
static LogicalResult resultReshaped(Call &call, const Tensor &tensor, ArrayRef<Size> sizes,
                                    bool mayCopy = false) {
  FailureOr<Tensor> view = viewAs(call, tensor, sizes);
  if (failed(view))
    return failure();
  if (mayCopy) {
    std::optional<bool> isView = call.reshapesInPlace("self", sizes);
    if (isView == false)
      return call.result(*view);
    mayCopy = !isView;
  }
  WriteBack write;
  if (!mayCopy)
    write = [](Call &writer, const Tensor &base, const Tensor &part) {
      return viewAs(writer, part, base.sizes);
    };
  return call.resultView("self", *view, write, mayCopy);
}

/// view and reshape. A size of -1 is the size of the result in the file, if the view can be proved.
static std::function<LogicalResult(Call &)> reshape(StringRef name, bool mayCopy) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor("self");
    Sizes asked = call.integers(name);
    // The strides follow from the sizes.
    if (call.has("stride"))
      call.integers("stride");
    const Sizes &sizes = call.expected().sizes;
    if (call.failed())
      return failure();
    bool fits = asked.size() == sizes.size();
    for (auto [have, want] : llvm::zip(asked, sizes))
      fits &= have == want || have == Size(-1);
    if (!fits)
      return call.error() << "expected a result of sizes " << str(asked) << ", got " << str(sizes);
    return resultReshaped(call, x, sizes, mayCopy);
  };
}

/// Reshapes to the sizes of `other`.
static LogicalResult reshapeAs(Call &call) {
  Tensor x = call.tensor("self"), other = call.tensor("other");
  return call.failed() ? failure() : resultReshaped(call, x, other.sizes, /*mayCopy=*/true);
}

static LogicalResult flatten(Call &call) {
  Tensor x = call.tensor("self");
  int64_t rank = std::max<int64_t>(x.rank(), 1);
  int64_t first = call.dim("start_dim", rank, 0), last = call.dim("end_dim", rank, -1);
  if (call.failed())
    return failure();
  Sizes sizes = x.sizes;
  if (x.rank() == 0) {
    sizes.push_back(Size(1));
  } else {
    std::optional<Size> all = Size(1);
    for (int64_t dim = first; dim <= last; ++dim)
      if (all)
        all = multiply(*all, x.sizes[dim]);
    if (first > last || !all)
      return call.error() << "expected dimensions in order, got " << first << " to " << last;
    sizes.erase(sizes.begin() + first + 1, sizes.begin() + last + 1);
    sizes[first] = *all;
  }
  return resultReshaped(call, x, sizes, /*mayCopy=*/true);
}

/// Splits one dimension into several.
static LogicalResult unflatten(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank());
  Sizes parts = call.integers("sizes");
  const Sizes &sizes = call.expected().sizes;
  if (call.failed())
    return failure();
  bool fits = sizes.size() == x.sizes.size() + parts.size() - 1;
  for (auto [i, part] : llvm::enumerate(parts))
    fits = fits && (part == Size(-1) || part == sizes[dim + i]);
  if (!fits)
    return call.error() << "expected dimension " << dim << " as " << str(parts) << ", got "
                        << str(sizes);
  return resultReshaped(call, x, sizes);
}

static LogicalResult unsqueeze(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank() + 1);
  if (call.failed())
    return failure();
  Sizes sizes = x.sizes;
  sizes.insert(sizes.begin() + dim, Size(1));
  return resultReshaped(call, x, sizes);
}

/// Removes the dimensions in `dim` that have size 1; an empty list means no dimension.
static LogicalResult squeeze(Call &call) {
  Tensor x = call.tensor("self");
  bool namesNone = call.has("dim") && call.constants("dim").empty();
  SmallVector<int64_t> dims = call.dims("dim", x.rank());
  if (namesNone)
    dims.clear();
  if (call.failed())
    return failure();
  Sizes sizes;
  for (auto [i, size] : llvm::enumerate(x.sizes))
    if (!size.isOne() || !llvm::is_contained(dims, int64_t(i)))
      sizes.push_back(size);
  return resultReshaped(call, x, sizes);
}

/// Repeats along dimensions of size 1 and along new dimensions in front. Elements that share memory cannot be written.
static LogicalResult expandTo(Call &call, const Tensor &x, ArrayRef<Size> sizes) {
  std::optional<Sizes> fits = TensorBuilder::broadcast({x.sizes, Sizes(sizes)});
  if (!fits || ArrayRef<Size>(*fits) != sizes)
    return call.error() << "expected " << str(x.sizes) << " to broadcast to " << str(sizes);
  return call.resultView("self", call.b.broadcastTo(x, sizes), {});
}

static LogicalResult expand(Call &call) {
  Tensor x = call.tensor("self");
  Sizes sizes = call.integers("size");
  call.flag("implicit");
  if (call.failed())
    return failure();
  size_t missing = sizes.size() - std::min(sizes.size(), x.sizes.size());
  for (auto [i, size] : llvm::enumerate(sizes))
    if (size == Size(-1) && i >= missing)
      size = x.sizes[i - missing];
  return expandTo(call, x, sizes);
}

static LogicalResult expandAs(Call &call) {
  Tensor x = call.tensor("self"), other = call.tensor("other");
  return call.failed() ? failure() : expandTo(call, x, other.sizes);
}

//===----------------------------------------------------------------------===//
// Order of dimensions
//===----------------------------------------------------------------------===//

static LogicalResult permuteBy(Call &call, const Tensor &x, ArrayRef<int64_t> permutation) {
  if (call.failed())
    return failure();
  SmallVector<int64_t> inverse = invertPermutationVector(permutation);
  bool isIdentity = llvm::equal(permutation, llvm::seq<int64_t>(0, x.rank()));
  auto write = [=](Call &writer, const Tensor &, const Tensor &part) {
    return FailureOr<Tensor>(isIdentity ? part : writer.b.transpose(part, inverse));
  };
  return call.resultView("self", isIdentity ? x : call.b.transpose(x, permutation), write);
}

static std::function<LogicalResult(Call &)> transpose(StringRef first, StringRef second) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensorWithDims("self");
    int64_t a = call.dim(first, x.rank()), b = call.dim(second, x.rank());
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
    if (call.failed())
      return failure();
    std::swap(permutation[a], permutation[b]);
    return permuteBy(call, x, permutation);
  };
}

static LogicalResult permute(Call &call) {
  Tensor x = call.tensor("self");
  SmallVector<int64_t> permutation = call.constants("dims");
  for (int64_t &dim : permutation)
    dim = call.dim(dim, x.rank());
  if (!call.failed() &&
      (int64_t(permutation.size()) != x.rank() || !isPermutationVector(permutation)))
    return call.error() << "expected a permutation of " << x.rank() << " dimensions";
  return permuteBy(call, x, permutation);
}

/// Moves some dimensions to new positions; the other dimensions keep their order.
static LogicalResult moveDims(Call &call) {
  Tensor x = call.tensorWithDims("self");
  SmallVector<int64_t> from = call.constants("source"), to = call.constants("destination");
  if (!call.failed() && from.size() != to.size())
    return call.error() << "expected a place for each of " << from.size() << " dimensions, got "
                        << to.size();
  SmallVector<int64_t> permutation(x.rank(), -1), rest;
  for (auto [source, destination] : llvm::zip(from, to)) {
    source = call.dim(source, x.rank());
    if (int64_t place = call.dim(destination, x.rank()); !call.failed())
      permutation[place] = source;
  }
  if (call.failed())
    return failure();
  int64_t next = 0;
  for (int64_t &dim : permutation) {
    if (dim >= 0)
      continue;
    while (llvm::is_contained(from, next))
      ++next;
    dim = next++;
  }
  if (!isPermutationVector(permutation))
    return call.error() << "expected each dimension to move once";
  return permuteBy(call, x, permutation);
}

/// Swaps the last two dimensions; with `all`, reverses the order of all dimensions.
static std::function<LogicalResult(Call &)> reverseDims(bool all) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor("self");
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
    if (call.failed())
      return failure();
    if (all)
      std::reverse(permutation.begin(), permutation.end());
    else if (x.rank() >= 2)
      std::swap(permutation[x.rank() - 2], permutation[x.rank() - 1]);
    return permuteBy(call, x, permutation);
  };
}

static LogicalResult t(Call &call) {
  Tensor x = call.tensor("self");
  if (!call.failed() && x.rank() > 2)
    return call.error() << "expected a tensor of rank 2 at most, got " << str(x.sizes);
  return reverseDims(true)(call);
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

static LogicalResult identity(Call &call) {
  Tensor x = call.tensor("self");
  return call.failed() ? failure() : call.resultSame("self", x);
}

/// The tensor itself if it has the strides of the result, otherwise a copy.
static LogicalResult sameOrCopy(Call &call) {
  Tensor x = call.tensor("self");
  if (call.failed())
    return failure();
  std::optional<bool> isSame = call.keepsStrides("self");
  if (!isSame)
    return call.resultView("self", x, {}, /*mayCopy=*/true);
  return *isSame ? call.resultSame("self", x) : call.result(x);
}

static LogicalResult copyOf(Call &call) {
  Tensor x = call.tensor("self");
  return call.failed() ? failure() : call.result(x);
}

/// Converts to another type. If the tensor already has this type, the result may be the tensor itself.
static LogicalResult convertTo(Call &call, DType dtype) {
  Tensor x = call.tensor("self");
  bool copies = call.flag("copy");
  if (call.failed())
    return failure();
  if (dtype == x.dtype)
    return copies ? call.result(x) : sameOrCopy(call);
  return call.result(call.b.castTo(x, dtype));
}

static LogicalResult to(Call &call) {
  Tensor x = call.tensor("self");
  return convertTo(call, call.dtype("dtype", x.dtype));
}

static LogicalResult toCopy(Call &call) {
  Tensor x = call.tensor("self");
  DType dtype = call.dtype("dtype", x.dtype);
  return call.failed() ? failure() : call.result(call.b.castTo(x, dtype));
}

static LogicalResult typeAs(Call &call) { return convertTo(call, call.tensor("other").dtype); }

/// The elements of `src`, with the sizes and the type of `self`.
static LogicalResult copy(Call &call) {
  Tensor self = call.tensor("self"), source = call.tensor("src");
  if (call.failed())
    return failure();
  std::optional<Sizes> fits = TensorBuilder::broadcast({source.sizes, self.sizes});
  if (!fits || *fits != self.sizes)
    return call.error() << "expected " << str(source.sizes) << " to broadcast to "
                        << str(self.sizes);
  return call.result(call.b.broadcastTo(call.b.castTo(source, self.dtype), self.sizes));
}

/// `index`, counted from the end if it is negative. For an index -n with a size n, requires n >= 1, because 0 counts
/// from the front.
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

/// Returns the start of a slice of `dim`: the elements start, start + step, ... before end. An end beyond the last
/// element is clamped. The number of elements, which may depend on sizes, must provably be `count`, the number in the
/// file.
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
    return call.error() << "expected " << (number ? number->str() : "countable")
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

/// Splits `dim` into runs of `run` elements; the last may be shorter. The number of runs must be the number of results.
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

/// Splits `dim` into runs of `split_size` elements; the last may be shorter. chunk gives the number of runs instead.
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
    return call.error() << "expected to split a dimension into at least 1, got "
                        << x.sizes[dim].str() << " and " << asked.str();
  if (!size || !asked.constant())
    return splitUnknown(call, x, dim, isChunk ? divideUp(x.sizes[dim], asked) : asked);
  int64_t run = isChunk ? std::max<int64_t>(llvm::divideCeil(*size, number), 1) : number;
  int64_t count = *size != 0 ? llvm::divideCeil(*size, run) : isChunk ? number : 1;
  // Check this before the list of runs is made, which may be too large for memory.
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

/// Splits into the given number of parts, of which the first ones may be longer by one, or at the given indices.
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
    return call.error() << "expected parts of a known size, got " << count << " of "
                        << x.sizes[dim].str() << " and " << call.numResults() << " results";
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

/// The elements whose positions in `dim1` and `dim2` differ by `offset`, as the last dimension; or for
/// diagonal_scatter, `self` with these elements replaced by `src`.
static LogicalResult diagonalOf(Call &call, StringRef offsetName, bool isView) {
  Tensor x = call.tensor("self");
  int64_t rank = x.rank(), offset = call.constant(offsetName, 0), rows = call.dim("dim1", rank, 0),
          columns = call.dim("dim2", rank, 1);
  if (call.failed())
    return failure();
  std::optional<int64_t> height = x.sizes[rows].constant(), width = x.sizes[columns].constant();
  if (rows == columns || !height || !width || offset <= -kMaxDim || offset >= kMaxDim)
    return call.error() << "expected two dimensions of known sizes, got " << rows << " and "
                        << columns << " of " << str(x.sizes);
  int64_t row = std::max<int64_t>(-offset, 0), column = std::max<int64_t>(offset, 0);
  int64_t count = std::max<int64_t>(std::min(*height - row, *width - column), 0);
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
    if (count == 0)
      return base;
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
              b, arith::MinSIOp::create(b, at, constant(count - 1)), constant(0));
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

static LogicalResult diagonal(Call &call) {
  return diagonalOf(call, "offset", /*isView=*/true);
}

/// The diagonal of a matrix, or a matrix with a vector on its diagonal and 0 elsewhere.
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
/// they cannot be written.
static LogicalResult unfold(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dimension", x.rank()), size = call.constant("size"),
          step = call.constant("step");
  if (call.failed())
    return failure();
  if (size < 0 || size > x.sizes[dim].constant().value_or(size) || step < 1)
    return call.error() << "expected a dimension that holds runs of " << size << ", " << step
                        << " apart, got " << x.sizes[dim].str();
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

/// The elements of a contiguous tensor at offset + sum of index * stride. Some may be the same element, so they cannot
/// be written.
static LogicalResult asStrided(Call &call) {
  Tensor x = call.tensor("self");
  SmallVector<int64_t> sizes = call.constants("size"), strides = call.constants("stride");
  int64_t offset = call.constant("storage_offset", 0);
  std::optional<Size> all = Size(1);
  for (const Size &size : x.sizes)
    all = all ? multiply(*all, size) : all;
  if (call.failed())
    return failure();
  std::optional<int64_t> count = all ? all->constant() : std::nullopt;
  bool fits = count && sizes.size() == strides.size() && offset >= 0 && call.isContiguous("self") &&
              call.startsStorage("self");
  // The position of the last element.
  int64_t last = offset;
  for (auto [size, stride] : llvm::zip(sizes, strides)) {
    int64_t reach = 0;
    fits = fits && size >= 1 && stride >= 0 && !llvm::MulOverflow(size - 1, stride, reach) &&
           !llvm::AddOverflow(last, reach, last);
  }
  if (!fits || last >= *count)
    return call.error() << "expected sizes and strides that stay inside a contiguous tensor "
                        << str(x.sizes) << ", got sizes " << str(Sizes(sizes.begin(), sizes.end()))
                        << ", strides " << str(Sizes(strides.begin(), strides.end()))
                        << " and offset " << offset;
  FailureOr<Tensor> flat = viewAs(call, x, Size(*count));
  if (failed(flat))
    return failure();
  TensorBuilder &b = call.b;
  auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, value); };
  Tensor elements =
      b.elementwise(Sizes(sizes.begin(), sizes.end()), x.dtype, {}, [&](ValueRange) -> Value {
        Value at = constant(offset);
        for (auto [dim, stride] : llvm::enumerate(strides)) {
          Value i = linalg::IndexOp::create(b, dim);
          at = arith::AddIOp::create(b, at, arith::MulIOp::create(b, i, constant(stride)));
        }
        return tensor::ExtractOp::create(b, flat->value, at);
      });
  return call.resultView("self", elements, {});
}

/// (..., c * r * r, h, w) as (..., c, h * r, w * r), or back.
static std::function<LogicalResult(Call &)> pixelShuffle(bool isBack) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor("self");
    int64_t r = call.constant(isBack ? "downscale_factor" : "upscale_factor"), lead = x.rank() - 3;
    if (call.failed())
      return failure();
    SmallVector<int64_t> last;
    for (const Size &size : ArrayRef(x.sizes).take_back(std::min<int64_t>(x.rank(), 3)))
      last.push_back(size.constant().value_or(-1));
    bool fits = last.size() == 3 && llvm::all_of(last, [](int64_t size) { return size >= 0; }) &&
                r >= 1 && r < (1 << 15) &&
                (isBack ? last[1] % r == 0 && last[2] % r == 0 : last[0] % (r * r) == 0);
    if (!fits)
      return call.error() << "expected (..., channels, height, width) of known sizes that " << r
                          << " divides, got " << str(x.sizes);
    Sizes split(ArrayRef(x.sizes).take_front(lead)), whole = split;
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, lead));
    auto append = [&](ArrayRef<int64_t> sizes, ArrayRef<int64_t> order, ArrayRef<int64_t> merged) {
      split.append(sizes.begin(), sizes.end());
      for (int64_t dim : order)
        permutation.push_back(lead + dim);
      whole.append(merged.begin(), merged.end());
    };
    if (isBack)
      append({last[0], last[1] / r, r, last[2] / r, r}, {0, 2, 4, 1, 3},
             {last[0] * r * r, last[1] / r, last[2] / r});
    else
      append({last[0] / (r * r), r, r, last[1], last[2]}, {0, 3, 1, 4, 2},
             {last[0] / (r * r), last[1] * r, last[2] * r});
    FailureOr<Tensor> parts = viewAs(call, x, split);
    if (failed(parts))
      return failure();
    FailureOr<Tensor> result = viewAs(call, call.b.transpose(*parts, permutation), whole);
    return failed(result) ? failure() : call.result(*result);
  };
}

/// (n, g * c, ...) as (n, c * g, ...).
static LogicalResult channelShuffle(Call &call) {
  Tensor x = call.tensor("self");
  int64_t groups = call.constant("groups");
  if (call.failed())
    return failure();
  std::optional<int64_t> channels = x.rank() >= 3 ? x.sizes[1].constant() : std::nullopt;
  if (!channels || groups < 1 || *channels % groups != 0)
    return call.error() << "expected (n, channels, ...) of a number of channels that " << groups
                        << " groups divide, got " << str(x.sizes);
  Sizes split = x.sizes;
  split[1] = groups;
  split.insert(split.begin() + 2, Size(*channels / groups));
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, x.rank() + 1));
  std::swap(permutation[1], permutation[2]);
  FailureOr<Tensor> parts = viewAs(call, x, split);
  if (failed(parts))
    return failure();
  FailureOr<Tensor> result = viewAs(call, call.b.transpose(*parts, permutation), x.sizes);
  return failed(result) ? failure() : call.result(*result);
}

void attn::pt2::addViews(AtenOps &ops) {
  StringRef proved = "sizes that cannot be proved to hold as many elements";
  ops.add("view.default", reshape("size", /*mayCopy=*/false), proved);
  ops.add("_unsafe_view.default", reshape("size", false), proved);
  ops.add("_reshape_alias.default", reshape("size", false), proved);
  ops.add("reshape.default", reshape("shape", /*mayCopy=*/true), proved);
  ops.add("view_as.default", reshapeAs, proved);
  ops.add("reshape_as.default", reshapeAs, proved);
  ops.add("flatten.using_ints", flatten);
  ops.add("unflatten.int", unflatten);
  ops.add("unsqueeze.default", unsqueeze);
  for (StringRef overload : {"default", "dim", "dims"})
    ops.add(("squeeze." + overload).str(), squeeze);
  ops.add("expand.default", expand);
  ops.add("expand_as.default", expandAs);
  ops.add("broadcast_to.default", expand);
  ops.add("transpose.int", transpose("dim0", "dim1"));
  ops.add("swapaxes.default", transpose("axis0", "axis1"));
  ops.add("swapdims.default", transpose("dim0", "dim1"));
  ops.add("permute.default", permute);
  for (StringRef overload : {"movedim.int", "movedim.intlist"})
    ops.add(overload, moveDims);
  ops.add("t.default", t);
  ops.add("numpy_T.default", reverseDims(true));
  ops.add("mT.default", reverseDims(false));
  ops.add("contiguous.default", sameOrCopy);
  for (StringRef name :
       {"alias.default", "detach.default", "detach_.default", "lift_fresh.default"})
    ops.add(name, identity);
  for (StringRef name : {"clone.default", "detach_copy.default", "lift_fresh_copy.default"})
    ops.add(name, copyOf);
  for (StringRef overload : {"dtype", "dtype_layout", "device", "prim_Device"})
    ops.add(("to." + overload).str(), to);
  ops.add("_to_copy.default", toCopy);
  ops.add("type_as.default", typeAs);
  ops.add("to.other", typeAs);
  ops.add("copy.default", copy);
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
    ops.add(name, diagonal, "dimensions of unknown size");
  ops.add("diag.default", diag, "matrices of unknown size; vectors on other diagonals than the main one");
  ops.add("unfold.default", unfold);
  ops.add("as_strided.default", asStrided, "what is not contiguous; unknown sizes");
  ops.add("pixel_shuffle.default", pixelShuffle(/*isBack=*/false),
          "unknown sizes of channels and images");
  ops.add("pixel_unshuffle.default", pixelShuffle(/*isBack=*/true),
          "unknown sizes of channels and images");
  ops.add("channel_shuffle.default", channelShuffle, "an unknown number of channels");
}
