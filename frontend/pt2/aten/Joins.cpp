//===- Joins.cpp - aten ops that join, repeat and pad ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn::pt2;

static LogicalResult join(Call &call, ArrayRef<Tensor> parts, int64_t dim) {
  DType dtype = parts.front().dtype;
  for (const Tensor &part : parts.drop_front())
    dtype = promote(Tensor{{}, dtype, parts.front().sizes}, part);
  Sizes sizes = parts.front().sizes;
  sizes[dim] = 0;
  SmallVector<Tensor> values;
  for (const Tensor &part : parts) {
    std::optional<Size> total;
    if (part.rank() == int64_t(sizes.size()))
      total = add(sizes[dim], part.sizes[dim]);
    Sizes others = part.sizes;
    if (total)
      others[dim] = sizes[dim];
    if (!total || others != sizes)
      return call.error() << "expected tensors of equal sizes except in dimension " << dim
                          << ", got " << str(parts.front().sizes) << " and " << str(part.sizes);
    sizes[dim] = *total;
    if (part.sizes[dim] != Size(0) || (values.empty() && &part == &parts.back()))
      values.push_back(call.b.castTo(part, dtype));
  }
  return call.result(values.size() == 1 ? values.front() : call.b.concat(values, dim, sizes));
}

static LogicalResult cat(Call &call) {
  SmallVector<Tensor> parts = call.tensors("tensors");
  if (!call.failed() && parts.empty())
    return call.error() << "expected tensors to concatenate";
  // torch ignores empty tensors of rank 1 beside other tensors.
  auto isIgnored = [](const Tensor &part) { return part.rank() == 1 && part.sizes[0] == Size(0); };
  if (!llvm::all_of(parts, isIgnored))
    llvm::erase_if(parts, isIgnored);
  int64_t dim = call.failed() ? 0 : call.dim("dim", parts.front().rank(), 0);
  return call.failed() ? failure() : join(call, parts, dim);
}

/// `x` with at least `rank` dimensions, as from torch.atleast_1d, _2d and _3d.
static FailureOr<Tensor> atLeast(Call &call, const Tensor &x, int64_t rank) {
  Sizes sizes = x.sizes;
  if (rank >= 2 && sizes.size() < 2)
    sizes.insert(sizes.begin(), 2 - sizes.size(), Size(1));
  sizes.append(std::max<int64_t>(rank - int64_t(sizes.size()), 0), Size(1));
  return sizes == x.sizes ? FailureOr<Tensor>(x) : viewAs(call, x, sizes);
}

/// Gives all tensors at least `rank` dimensions, and concatenates them along `dim`. With `ofColumns`, a vector becomes
/// a column. If `rank` is 1, vectors are concatenated along their only dimension.
static auto catOfRank(int64_t rank, int64_t dim, bool ofColumns = false) {
  return [=](Call &call) -> LogicalResult {
    SmallVector<Tensor> parts = call.tensors("tensors");
    if (call.failed())
      return failure();
    if (parts.empty())
      return call.error() << "expected tensors to concatenate";
    bool ofVectors = parts.front().rank() <= 1;
    for (Tensor &part : parts) {
      bool isColumn = ofColumns && part.rank() <= 1;
      FailureOr<Tensor> view =
          isColumn ? viewAs(call, part, {part.rank() ? part.sizes[0] : Size(1), Size(1)})
                   : atLeast(call, part, rank);
      if (failed(view))
        return failure();
      part = *view;
    }
    return join(call, parts, rank == 1 && ofVectors ? 0 : dim);
  };
}

/// Concatenates along a new dimension.
static LogicalResult stack(Call &call) {
  SmallVector<Tensor> parts = call.tensors("tensors");
  if (!call.failed() && parts.empty())
    return call.error() << "expected tensors to stack";
  int64_t dim = call.failed() ? 0 : call.dim("dim", parts.front().rank() + 1, 0);
  if (call.failed())
    return failure();
  for (Tensor &part : parts) {
    Sizes sizes = part.sizes;
    sizes.insert(sizes.begin() + std::min<size_t>(dim, sizes.size()), Size(1));
    FailureOr<Tensor> view = viewAs(call, part, sizes);
    if (failed(view))
      return failure();
    part = *view;
  }
  return join(call, parts, dim);
}

/// Repeats `x` along a new dimension next to `dim`, and merges both dimensions. The new dimension is before `dim` or,
/// with `ofElements`, after it.
static FailureOr<Tensor> repeatAlong(Call &call, const Tensor &x, int64_t dim, const Size &count,
                                     bool ofElements) {
  Sizes unit = x.sizes, many = x.sizes, merged = x.sizes;
  int64_t position = dim + ofElements;
  unit.insert(unit.begin() + position, Size(1));
  many.insert(many.begin() + position, count);
  std::optional<Size> total = multiply(x.sizes[dim], count);
  FailureOr<Tensor> view = viewAs(call, x, unit);
  if (failed(view) || !total)
    return failure();
  merged[dim] = *total;
  return viewAs(call, call.b.broadcastTo(*view, many), merged);
}

/// Repeats each dimension as often as `repeats` says. If `repeats` has more numbers than `self` has dimensions, the
/// first numbers are for new dimensions.
static LogicalResult repeat(Call &call) {
  Tensor x = call.tensor("self");
  Sizes repeats = call.integers(call.target().contains("tile") ? "dims" : "repeats");
  if (call.failed())
    return failure();
  if (repeats.size() < x.sizes.size())
    repeats.insert(repeats.begin(), x.sizes.size() - repeats.size(), Size(1));
  Sizes sizes = x.sizes;
  if (repeats.size() > sizes.size())
    sizes.insert(sizes.begin(), repeats.size() - sizes.size(), Size(1));
  FailureOr<Tensor> result = viewAs(call, x, sizes);
  for (auto [dim, count] : llvm::enumerate(repeats))
    if (succeeded(result) && !count.isOne())
      result = repeatAlong(call, *result, dim, count, /*ofElements=*/false);
  return failed(result) ? failure() : call.result(*result);
}

/// Repeats each element along `dim`: with two repeats, a, b becomes a, a, b, b.
static LogicalResult repeatInterleave(Call &call) {
  Tensor x = call.tensor("self");
  Size count = call.integer("repeats");
  if (call.has("output_size"))
    call.integer("output_size");
  bool hasDim = call.has("dim");
  int64_t dim = hasDim ? call.dim("dim", x.rank()) : 0;
  if (call.failed())
    return failure();
  if (!hasDim && x.rank() != 1)
    return call.error() << "expected a dimension, or a tensor of rank 1, got " << str(x.sizes);
  FailureOr<Tensor> result = repeatAlong(call, x, dim, count, /*ofElements=*/true);
  return failed(result) ? failure() : call.result(*result);
}

/// Rotates along dimensions; without dimensions, rotates the flattened tensor.
static LogicalResult roll(Call &call) {
  Tensor x = call.tensor("self");
  Sizes shifts = call.integers("shifts"), sizes = x.sizes;
  SmallVector<int64_t> dims = call.constants("dims", ArrayRef<int64_t>());
  if (!call.failed() && dims.empty() && shifts.size() == 1) {
    std::optional<Size> all = Size(1);
    for (const Size &size : sizes)
      all = all ? multiply(*all, size) : all;
    FailureOr<Tensor> flat = all ? viewAs(call, x, *all) : FailureOr<Tensor>(failure());
    if (failed(flat))
      return failure();
    x = *flat;
    dims = {0};
  }
  if (!call.failed() && shifts.size() != dims.size())
    return call.error() << "expected a shift for each of " << dims.size() << " dimensions, got "
                        << shifts.size();
  for (auto [shift, position] : llvm::zip(shifts, dims)) {
    int64_t dim = call.dim(position, x.rank());
    if (call.failed())
      return failure();
    std::optional<int64_t> size = x.sizes[dim].constant(), by = shift.constant();
    if (size && *size == 0)
      continue;
    std::optional<Size> forward = shift, back = multiply(shift, Size(-1));
    if (size && by)
      forward = Size(((*by % *size) + *size) % *size);
    else if (by.value_or(0) < 0 || (back && back->isNonNegative()))
      forward = add(x.sizes[dim], shift);
    std::optional<Size> rest = forward ? subtract(x.sizes[dim], *forward) : std::nullopt;
    if (forward == Size(0))
      continue;
    if (!rest)
      return failure();
    // The shift must not exceed the number of elements.
    call.requireAtMost(Size(0), *forward);
    call.requireAtMost(Size(0), *rest);
    if (call.failed())
      return failure();
    Tensor parts[] = {call.b.slice(x, dim, *rest, *forward), call.b.slice(x, dim, 0, *rest)};
    x = call.b.concat(parts, dim, x.sizes);
  }
  FailureOr<Tensor> result = call.failed() ? FailureOr<Tensor>(failure()) : viewAs(call, x, sizes);
  return failed(result) ? failure() : call.result(*result);
}

/// Reverses dimensions.
static LogicalResult flip(Call &call) {
  Tensor x = call.tensor("self");
  bool namesNone = call.constants("dims").empty();
  SmallVector<int64_t> dims = call.dims("dims", x.rank());
  if (call.failed() || namesNone)
    return call.failed() ? failure() : call.result(x);
  TensorBuilder &b = call.b;
  SmallVector<Value> lasts(x.rank());
  for (int64_t dim : dims)
    lasts[dim] =
        arith::SubIOp::create(b, b.indexOf(x.sizes[dim]), arith::ConstantIndexOp::create(b, 1));
  return call.result(b.elementwise(x.sizes, x.dtype, {}, [&](ValueRange) -> Value {
    SmallVector<Value> indices;
    for (int64_t i = 0; i < x.rank(); ++i) {
      Value index = linalg::IndexOp::create(b, i);
      indices.push_back(lasts[i] ? Value(arith::SubIOp::create(b, lasts[i], index)) : index);
    }
    return tensor::ExtractOp::create(b, x.value, indices);
  }));
}

/// Pads with elements of the tensor. "reflect" mirrors the elements next to the outermost one, "replicate" repeats the
/// outermost one, and "circular" continues with the elements of the other end.
static LogicalResult padWithElements(Call &call, const Tensor &x, ArrayRef<Size> widths,
                                     StringRef mode) {
  Sizes sizes = x.sizes;
  SmallVector<int64_t> fronts(x.rank(), 0);
  for (size_t i = 0; i < widths.size(); i += 2) {
    int64_t dim = x.rank() - 1 - i / 2;
    std::optional<int64_t> front = widths[i].constant(), back = widths[i + 1].constant();
    std::optional<Size> total =
        front && back ? add(x.sizes[dim], Size(*front + *back)) : std::nullopt;
    if (!total || *front < 0 || *back < 0)
      return call.error() << "expected widths of at least 0 for mode '" << mode << "', got "
                          << str(widths);
    // "replicate" needs one element. In the other modes, the padding must not have more elements than the dimension;
    // "reflect" also needs the outermost element, which it does not repeat.
    if (mode == "replicate")
      call.requireElement(x.sizes[dim], 0);
    else
      call.requireAtMost(Size(std::max(*front, *back) + (mode == "reflect")), x.sizes[dim]);
    fronts[dim] = *front;
    sizes[dim] = *total;
  }
  if (call.failed())
    return failure();
  TensorBuilder &b = call.b;
  return call.result(b.elementwise(sizes, x.dtype, {}, [&](ValueRange) -> Value {
    SmallVector<Value> indices;
    for (int64_t dim = 0; dim < x.rank(); ++dim) {
      Value at = linalg::IndexOp::create(b, dim);
      if (sizes[dim] != x.sizes[dim]) {
        Value size = b.indexOf(x.sizes[dim]), zero = arith::ConstantIndexOp::create(b, 0),
              one = arith::ConstantIndexOp::create(b, 1);
        Value last = arith::SubIOp::create(b, size, one);
        at = arith::SubIOp::create(b, at, arith::ConstantIndexOp::create(b, fronts[dim]));
        Value isBefore = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, at, zero),
              isBehind = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, at, last);
        Value before = zero, behind = last;
        if (mode == "reflect") {
          before = arith::SubIOp::create(b, zero, at);
          behind = arith::SubIOp::create(b, arith::AddIOp::create(b, last, last), at);
        } else if (mode == "circular") {
          before = arith::AddIOp::create(b, at, size);
          behind = arith::SubIOp::create(b, at, size);
        }
        at = arith::SelectOp::create(b, isBefore, before,
                                     arith::SelectOp::create(b, isBehind, behind, at));
      }
      indices.push_back(at);
    }
    return b.convert(tensor::ExtractOp::create(b, x.value, indices), x.dtype, computeType(x.dtype));
  }));
}

/// Pads both ends of the last dimensions. `pad` has two widths for each of them, beginning with the last dimension. A
/// negative width removes elements.
static LogicalResult pad(Call &call) {
  Tensor x = call.tensor("self");
  Sizes widths = call.integers("pad");
  std::string mode = call.string("mode", "constant");
  Scalar value{true, 0, 0};
  if (call.has("value"))
    value = call.scalar("value");
  if (call.failed())
    return failure();
  bool fitsRank = widths.size() % 2 == 0 && int64_t(widths.size()) <= 2 * x.rank();
  if (fitsRank && (mode == "reflect" || mode == "replicate" || mode == "circular"))
    return padWithElements(call, x, widths, mode);
  if (mode != "constant" || !fitsRank || !value.fits(x.dtype))
    return call.error()
           << "expected two widths for each of the last dimensions, filled with a number "
              "that "
           << str(x.dtype) << " can hold, got " << str(widths) << ", mode '" << mode << "'";
  Value fill = value.in(call.b, x.dtype);
  Sizes total = x.sizes, offsets(x.rank(), Size(0));
  SmallVector<size_t> padded;
  for (size_t i = 0; i < widths.size(); i += 2) {
    int64_t dim = x.rank() - 1 - i / 2;
    for (size_t end : {0, 1}) {
      const Size &width = widths[i + end];
      std::optional<int64_t> number = width.constant();
      if (!number)
        call.requireAtMost(Size(0), width);
      std::optional<Size> sum = add(total[dim], width);
      if (!sum)
        return failure();
      if (number && *number < 0) {
        std::optional<Size> cut = multiply(width, Size(-1)), rest = add(x.sizes[dim], width);
        if (!cut || !rest)
          return failure();
        call.requireAtMost(*cut, x.sizes[dim]);
        if (call.failed())
          return failure();
        x = call.b.slice(x, dim, end == 0 ? *cut : Size(0), *rest);
      } else if (end == 0) {
        offsets[dim] = width;
      }
      if (!number || *number > 0)
        padded.push_back(i + end);
      total[dim] = *sum;
    }
  }
  // Padding at one end becomes a concatenation, which is also how models write the column of an attention sink.
  if (padded.size() == 1) {
    int64_t dim = x.rank() - 1 - padded[0] / 2;
    Sizes sizes = x.sizes;
    sizes[dim] = widths[padded[0]];
    Tensor parts[] = {x, call.b.fill(sizes, fill, x.dtype)};
    if (padded[0] % 2 == 0)
      std::swap(parts[0], parts[1]);
    return call.result(call.b.concat(parts, dim, total));
  }
  return call.result(total == x.sizes ? x : call.b.surround(x, fill, offsets, total));
}

/// The difference between each element and the element before it.
static LogicalResult diff(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank(), -1), times = call.constant("n", 1);
  if (call.failed())
    return failure();
  SmallVector<Tensor> parts = {x};
  Sizes sizes = x.sizes;
  for (StringRef end : {"prepend", "append"}) {
    if (!call.has(end))
      continue;
    Tensor part = call.tensor(end);
    if (call.failed() || part.rank() != x.rank() || part.dtype != x.dtype)
      return call.error() << "expected '" << end << "' of the type and rank of the tensor";
    std::optional<Size> total = add(sizes[dim], part.sizes[dim]);
    if (!total)
      return failure();
    sizes[dim] = *total;
    parts.insert(end == "prepend" ? parts.begin() : parts.end(), part);
  }
  if (parts.size() > 1)
    x = call.b.concat(parts, dim, sizes);
  if (times != 1 || (!isSigned(x.dtype) && x.dtype != DType::Bool))
    return call.error() << "expected one difference of signed numbers or booleans, got " << times
                        << " of " << str(x.dtype);
  call.requireElement(x.sizes[dim], 0);
  std::optional<Size> count = add(x.sizes[dim], Size(-1));
  if (call.failed() || !count)
    return failure();
  TensorBuilder &b = call.b;
  DType as = computeType(x.dtype);
  Tensor before = b.slice(x, dim, 0, *count), after = b.slice(x, dim, 1, *count);
  return call.result(
      b.elementwise(before.sizes, x.dtype, {{after, as}, {before, as}}, [&](ValueRange e) -> Value {
        if (isFloat(as))
          return arith::SubFOp::create(b, e[0], e[1]);
        if (as == DType::Bool)
          return arith::XOrIOp::create(b, e[0], e[1]);
        return arith::SubIOp::create(b, e[0], e[1]);
      }));
}

/// Repeats each vector along the dimensions of all other vectors.
static LogicalResult meshgrid(Call &call) {
  SmallVector<Tensor> axes = call.tensors("tensors");
  std::string indexing = call.string("indexing", "ij");
  if (call.failed())
    return failure();
  Sizes sizes;
  for (const Tensor &axis : axes) {
    if (axis.rank() > 1 || (indexing != "ij" && indexing != "xy"))
      return call.error() << "expected vectors and indexing 'ij' or 'xy', got " << str(axis.sizes)
                          << " and '" << indexing << "'";
    sizes.push_back(axis.rank() == 0 ? Size(1) : axis.sizes[0]);
  }
  bool swaps = indexing == "xy" && sizes.size() >= 2;
  if (swaps)
    std::swap(sizes[0], sizes[1]);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    unsigned dim = swaps && i < 2 ? 1 - i : i;
    SmallVector<AffineExpr> exprs;
    if (axis.rank() == 1)
      exprs.push_back(call.b.getAffineDimExpr(dim));
    AffineMap map = AffineMap::get(sizes.size(), 0, exprs, call.b.getContext());
    Tensor grid = call.b.elementwise(sizes, axis.dtype, Operand{axis, axis.dtype, map},
                                     [](ValueRange e) { return e[0]; });
    if (failed(call.resultView("tensors", grid, {}, /*mayCopy=*/false, i)))
      return failure();
  }
  return success();
}

static LogicalResult broadcastTensors(Call &call) {
  SmallVector<Tensor> tensors = call.tensors("tensors");
  std::optional<Sizes> sizes = TensorBuilder::broadcast(
      llvm::map_to_vector(tensors, [](const Tensor &tensor) { return tensor.sizes; }));
  if (call.failed())
    return failure();
  if (!sizes)
    return call.error() << "expected sizes that broadcast";
  for (auto [i, tensor] : llvm::enumerate(tensors))
    if (failed(call.resultView("tensors", call.b.broadcastTo(tensor, *sizes), {},
                               /*mayCopy=*/false, i)))
      return failure();
  return success();
}

void attn::pt2::addJoins(AtenOps &ops) {
  ops.add("diff.default", diff, "n other than 1");
  ops.add("meshgrid.default", meshgrid);
  ops.add("meshgrid.indexing", meshgrid);
  ops.add("cat.default", cat);
  ops.add("stack.default", stack);
  ops.add("hstack.default", catOfRank(1, 1));
  ops.add("vstack.default", catOfRank(2, 0));
  ops.add("dstack.default", catOfRank(3, 2));
  ops.add("column_stack.default", catOfRank(2, 1, /*ofColumns=*/true));
  ops.add("repeat.default", repeat);
  ops.add("tile.default", repeat);
  for (StringRef overload : {"repeat_interleave.self_int", "repeat_interleave.self_Symint"})
    ops.add(overload, repeatInterleave, "a missing dimension, except for tensors of rank 1");
  ops.add("roll.default", roll, "shifts by more elements than a dimension of unknown size has");
  ops.add("flip.default", flip);
  ops.add("broadcast_tensors.default", broadcastTensors);
  ops.add("pad.default", pad, "unknown widths in modes other than 'constant'");
  ops.add("constant_pad_nd.default", pad);
}
