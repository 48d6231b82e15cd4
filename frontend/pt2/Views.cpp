//===- Views.cpp - aten's rearrangements -----------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace attn::pt2;

FailureOr<Tensor> attn::pt2::viewAs(Call &call, const Tensor &tensor, ArrayRef<Size> sizes) {
  std::optional<SmallVector<ViewGroup>> groups = matchView(tensor.sizes, sizes);
  if (!groups)
    return call.error() << "expected a view of " << str(tensor.sizes)
                        << " that holds for every size, got " << str(sizes);
  return call.b.view(tensor, sizes, *groups);
}

static LogicalResult resultView(Call &call, const Tensor &tensor, ArrayRef<Size> sizes) {
  FailureOr<Tensor> view = viewAs(call, tensor, sizes);
  return failed(view) ? failure() : call.result(*view);
}

/// view and reshape. A size of -1 is whatever the file says it came out as, if the view can be
/// proved.
template <const char *sizeName> static LogicalResult reshape(Call &call) {
  Tensor x = call.tensor("self");
  Sizes asked = call.integers(sizeName);
  const Sizes &sizes = call.expected().sizes;
  if (call.failed())
    return failure();
  bool fits = asked.size() == sizes.size();
  for (auto [have, want] : llvm::zip(asked, sizes))
    fits &= have == want || have == Size(-1);
  if (!fits)
    return call.error() << "expected a result of sizes " << str(asked) << ", got " << str(sizes);
  return resultView(call, x, sizes);
}
static constexpr char kSize[] = "size", kShape[] = "shape";

static LogicalResult permuteBy(Call &call, const Tensor &x, ArrayRef<int64_t> permutation) {
  if (call.failed())
    return failure();
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, x.rank())))
    return call.result(x);
  return call.result(call.b.transpose(x, permutation));
}

static LogicalResult transpose(Call &call) {
  Tensor x = call.tensor("self");
  int64_t first = call.dim("dim0", x.rank()), second = call.dim("dim1", x.rank());
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
  if (call.failed())
    return failure();
  std::swap(permutation[first], permutation[second]);
  return permuteBy(call, x, permutation);
}

static LogicalResult permute(Call &call) {
  Tensor x = call.tensor("self");
  Sizes dims = call.integers("dims");
  SmallVector<int64_t> permutation;
  for (const Size &size : dims)
    permutation.push_back(call.dim(size.constant().value_or(x.rank()), x.rank()));
  if (!call.failed() &&
      (int64_t(permutation.size()) != x.rank() || !isPermutationVector(permutation)))
    return call.error() << "expected a permutation of " << x.rank() << " dimensions, got "
                        << str(dims);
  return permuteBy(call, x, permutation);
}

static LogicalResult t(Call &call) {
  Tensor x = call.tensor("self");
  if (!call.failed() && x.rank() != 2)
    return call.error() << "expected a tensor of rank 2, got " << str(x.sizes);
  return permuteBy(call, x, {1, 0});
}

static LogicalResult unsqueeze(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank() + 1);
  if (call.failed())
    return failure();
  Sizes sizes = x.sizes;
  sizes.insert(sizes.begin() + dim, Size(1));
  return resultView(call, x, sizes);
}

static LogicalResult squeeze(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank());
  if (call.failed())
    return failure();
  Sizes sizes = x.sizes;
  if (sizes[dim].isOne())
    sizes.erase(sizes.begin() + dim);
  return resultView(call, x, sizes);
}

/// What changes strides or nothing at all.
static LogicalResult identity(Call &call) {
  Tensor x = call.tensor("self");
  return call.failed() ? failure() : call.result(x);
}

/// `size` counted from the end where it is negative.
static Size fromEnd(const Size &index, const Size &size) {
  std::optional<int64_t> constant = index.constant();
  return constant && *constant < 0 ? add(index, size).value_or(index) : index;
}

static LogicalResult select(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank()), index = call.constant("index");
  if (call.failed())
    return failure();
  // ~index elements follow one that is counted from the end.
  call.requireElement(x.sizes[dim], index < 0 ? ~index : index);
  if (call.failed())
    return failure();
  return call.result(call.b.select(x, dim, fromEnd(index, x.sizes[dim])));
}

/// Runs of `split_size` along `dim`, the last perhaps shorter.
static LogicalResult split(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank(), 0), run = call.constant("split_size");
  if (call.failed())
    return failure();
  std::optional<int64_t> size = x.sizes[dim].constant();
  if (!size || run < 1)
    return call.error()
           << "expected to split a dimension of known size into runs of at least 1, got "
           << x.sizes[dim].str() << " and " << run;
  if (llvm::divideCeil(*size, run) != call.numResults())
    return call.error() << "expected " << llvm::divideCeil(*size, run) << " results, got "
                        << call.numResults();
  for (int64_t offset = 0; offset < *size; offset += run)
    if (failed(call.result(call.b.slice(x, dim, offset, std::min(run, *size - offset)))))
      return failure();
  return success();
}

/// The elements of `dim`, one result each.
static LogicalResult unbind(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank(), 0);
  if (call.failed())
    return failure();
  if (x.sizes[dim].constant() != call.numResults())
    return call.error() << "expected " << x.sizes[dim].str() << " results, got "
                        << call.numResults();
  for (int64_t i = 0; i < call.numResults(); ++i)
    if (failed(call.result(call.b.select(x, dim, i))))
      return failure();
  return success();
}

static LogicalResult cat(Call &call) {
  SmallVector<Tensor> parts = call.tensors("tensors");
  if (!call.failed() && parts.empty())
    return call.error() << "expected tensors to concatenate";
  int64_t dim = call.failed() ? 0 : call.dim("dim", parts.front().rank(), 0);
  if (call.failed())
    return failure();
  Sizes sizes = parts.front().sizes;
  sizes[dim] = 0;
  SmallVector<Value> values;
  for (const Tensor &part : parts) {
    std::optional<Size> total;
    if (part.rank() == int64_t(sizes.size()))
      total = add(sizes[dim], part.sizes[dim]);
    Sizes others = part.sizes;
    if (total)
      others[dim] = sizes[dim];
    if (!total || others != sizes || part.dtype != parts.front().dtype)
      return call.error() << "expected tensors of one type that agree but in dimension " << dim
                          << ", got " << str(parts.front().dtype) << str(parts.front().sizes)
                          << " and " << str(part.dtype) << str(part.sizes);
    sizes[dim] = *total;
    values.push_back(part.value);
  }
  DType dtype = parts.front().dtype;
  Value result = tensor::ConcatOp::create(call.b, call.b.typeOf(sizes, dtype), dim, values);
  return call.result(Tensor{result, dtype, sizes});
}

static LogicalResult symSize(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank());
  return call.failed() ? failure() : call.result(x.sizes[dim]);
}

void attn::pt2::addViews(AtenOps &ops) {
  ops["torch.ops.aten.view.default"] = reshape<kSize>;
  ops["torch.ops.aten._unsafe_view.default"] = reshape<kSize>;
  ops["torch.ops.aten.reshape.default"] = reshape<kShape>;
  ops["torch.ops.aten.transpose.int"] = transpose;
  ops["torch.ops.aten.permute.default"] = permute;
  ops["torch.ops.aten.t.default"] = t;
  ops["torch.ops.aten.unsqueeze.default"] = unsqueeze;
  ops["torch.ops.aten.squeeze.dim"] = squeeze;
  ops["torch.ops.aten.contiguous.default"] = identity;
  ops["torch.ops.aten.clone.default"] = identity;
  ops["torch.ops.aten.alias.default"] = identity;
  ops["torch.ops.aten.detach.default"] = identity;
  ops["torch.ops.aten.select.int"] = select;
  ops["torch.ops.aten.split.Tensor"] = split;
  ops["torch.ops.aten.unbind.int"] = unbind;
  ops["torch.ops.aten.cat.default"] = cat;
  ops["torch.ops.aten.sym_size.int"] = symSize;
}
