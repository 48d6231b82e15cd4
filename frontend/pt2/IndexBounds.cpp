//===- IndexBounds.cpp - keep indices within their table ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Test: test/frontend/pt2/indices.test
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/IndexBounds.h"
#include "dialect/Finding.h"
#include "frontend/checks/ElementRanges.h"

using namespace mlir;
using namespace attn;
using namespace attn::pt2;
using Reach = ElementRange::Reach;

namespace {
/// The sizes of a function that is being imported.
class ImportedSizes : public attn::ValueSizes {
public:
  explicit ImportedSizes(Call &call) : call(call) {}

  std::optional<Size> numberOf(OpFoldResult integer) override { return call.b.findSize(integer); }

  std::optional<std::pair<int64_t, int64_t>> endsOf(BlockArgument argument) override {
    return call.state().endsOfWeight(argument.getArgNumber());
  }

  std::optional<Size> positionsOf(Value tensor) override {
    auto found = call.state().positions.find(tensor);
    return found == call.state().positions.end() ? std::nullopt : std::optional(found->second);
  }

  SizeRange rangeOf(const Size &size) override { return call.state().facts.rangeOf(size); }

protected:
  std::optional<Size> unstatedSizeOf(Value tensor, int64_t dim) override {
    for (const Tensor &known : llvm::make_second_range(call.state().tensors))
      if (known.value == tensor)
        return known.sizes[dim];
    return std::nullopt;
  }

private:
  Call &call;
};
} // namespace

/// The operands of `size`, if it is a maximum, and otherwise `size` itself.
static SmallVector<Size> operandsOfMax(const Size &size) {
  const auto &terms = size.terms();
  if (terms.size() == 1 && terms.begin()->second == 1 && terms.begin()->first.size() == 1) {
    const Size::Factor &factor = terms.begin()->first.front();
    if (factor.operands && factor.function == Size::Function::Max) {
      SmallVector<Size> operands = operandsOfMax(factor.operands->first);
      operands.append(operandsOfMax(factor.operands->second));
      return operands;
    }
  }
  return {size};
}

/// Whether every call satisfies a <= b, after calls that do not satisfy it were excluded if `reach` allows that. If
/// every call has an index at the end of its range, torch refuses these calls too.
static bool isEnsured(Call &call, const Size &a, const Size &b, Reach reach) {
  std::optional<Size> greater = maximum(a, b);
  if (isAtMost(a, b) || (greater && call.decided(*greater) == b))
    return true;
  if (reach == Reach::Every)
    call.requireAtMost(a, b);
  return reach == Reach::Every || (reach == Reach::Some && call.state().requireAtMost(a, b));
}

/// Whether the numbers of `range` lie in [-below, size), as in isEnsured().
static bool areInside(Call &call, const ElementRange &range, const Size &size, const Size &below) {
  std::optional<Size> down = range.least ? subtract(Size(0), *range.least) : std::nullopt;
  if (!down || !range.most)
    return false;
  std::optional<int64_t> far = down->constant(), farthest = below.constant();
  if (range.reach == Reach::Every && far && farthest && *far > *farthest) {
    call.error() << "expected indices of at least " << -*farthest << ", got " << range.least->str();
    return false;
  }
  return isEnsured(call, *down, below, range.reach) &&
         llvm::all_of(operandsOfMax(*range.most), [&](const Size &most) {
           std::optional<Size> count = add(most, Size(1));
           return count && isEnsured(call, *count, size, range.reach);
         });
}

/// Gives `range.argument` a bound that keeps its sums with the numbers of the range in [-below, size). Returns false if
/// there is no such bound, or if the bound would exclude calls that torch accepts.
static bool boundArgument(Call &call, const ElementRange &range, const Size &size,
                          const Size &below) {
  std::optional<Size> last = subtract(size, Size(1));
  std::optional<Size> bound = last && range.most ? subtract(*last, *range.most) : std::nullopt;
  std::optional<Size> down = range.least ? add(below, *range.least) : std::nullopt;
  bool isOffset = range.least != Size(0) || range.most != Size(0);
  if (!bound || !down || range.reach != Reach::Every ||
      (isOffset && size.constant().value_or(0) > kMostRows))
    return false;
  if (bound->constant().value_or(0) < 0) {
    call.error() << "expected indices below " << size.str() << ", got indices of at least "
                 << range.most->str();
    return false;
  }
  auto [known, isNew] =
      call.state().bounds.try_emplace(range.argument.getArgNumber(), ElementBounds{*down, *bound});
  if (isNew)
    return true;
  std::optional<Size> less = minimum(known->second.below, *down),
                      least = minimum(known->second.bound, *bound);
  if (less && least)
    known->second = {*less, *least};
  return less && least;
}

LogicalResult attn::pt2::boundIndex(Call &call, const Tensor &index, const Size &size, bool wraps) {
  // An index tensor without elements needs no condition.
  if (llvm::is_contained(index.sizes, Size(0)))
    return success();
  ImportedSizes sizes(call);
  ElementRange range = attn::rangeOf(sizes, index.value, index.sizes);
  Size below = wraps ? size : Size(0);
  bool isChecked = range.argument ? boundArgument(call, range, size, below)
                                  : areInside(call, range, size, below);
  if (!isChecked && !call.failed())
    emitFinding(call.b.getLoc(), Finding::Unchecked)
        << "an index that the graph computes, which a call does not check: if it lies outside its "
           "dimension of size "
        << size.str() << ", the nearest element is used";
  return failure(call.failed());
}
