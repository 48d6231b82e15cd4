//===- Views.cpp - aten's views --------------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A view shares its elements with another tensor, its base, so an in-place write to one of them is visible in both.
// Therefore a view has a function (WriteBack) that writes the elements of the view to its base. If a view has no such
// function, for example because its elements share memory, writes to it are rejected.
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
                        << " that is valid for every size, got " << str(sizes);
  return call.b.view(tensor, sizes, *groups);
}

/// Sets the result to `tensor` viewed as `sizes`. With `mayCopy`, torch copies a tensor whose strides allow no view. If
/// the strides are unknown, the effect of a write to the tensor or to the result is unknown too.
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

/// view and reshape. A size of -1 stands for the size of the result in the file.
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
      fits &= areEqual(have, want) || have == Size(-1);
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

/// Repeats `x` along dimensions of size 1 and along new dimensions in front. The repeated elements share memory, so
/// writes to the result are rejected.
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

/// Moves the dimensions in `source` to the positions in `destination`; the other dimensions keep their order.
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
// Copies, conversions and shuffles
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
      return call.error()
             << "expected (..., channels, height, width) of known sizes that match the factor " << r
             << ", got " << str(x.sizes);
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
    return call.error()
           << "expected (n, channels, ...) of a number of channels that is a multiple of " << groups
           << ", got " << str(x.sizes);
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
  StringRef proved = "sizes that cannot be proved to have the same number of elements";
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
  ops.add("pixel_shuffle.default", pixelShuffle(/*isBack=*/false),
          "unknown sizes of channels and images");
  ops.add("pixel_unshuffle.default", pixelShuffle(/*isBack=*/true),
          "unknown sizes of channels and images");
  ops.add("channel_shuffle.default", channelShuffle, "an unknown number of channels");
}
