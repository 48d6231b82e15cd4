//===- Sizes.cpp - arithmetic on sizes -------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

using namespace mlir;
using namespace attn::pt2;

static LogicalResult symSize(Call &call) {
  Tensor x = call.tensor("self");
  int64_t dim = call.dim("dim", x.rank());
  return call.failed() ? failure() : call.result(x.sizes[dim]);
}

/// A sum or product, which must be what the file says.
static std::function<LogicalResult(Call &)>
arithmetic(std::function<std::optional<Size>(const Size &, const Size &)> function) {
  return [=](Call &call) -> LogicalResult {
    Size a = call.integer("a"), b = call.integer("b");
    if (call.failed())
      return failure();
    std::optional<Size> result = function(a, b);
    if (!result)
      return call.error() << "expected sizes that 64 bits hold, got " << a.str() << " and "
                          << b.str();
    return call.result(*result);
  };
}

static std::optional<Size> subtract(const Size &a, const Size &b) {
  std::optional<Size> negative = multiply(b, Size(-1));
  return negative ? add(a, *negative) : std::nullopt;
}

static LogicalResult negate(Call &call) {
  Size a = call.integer("a");
  std::optional<Size> result = multiply(a, Size(-1));
  return call.failed() || !result ? failure() : call.result(*result);
}

void attn::pt2::addSizes(AtenOps &ops) {
  ops.add("sym_size.int", symSize);
  ops.add("_operator.add", arithmetic([](const Size &a, const Size &b) { return add(a, b); }));
  ops.add("_operator.mul", arithmetic([](const Size &a, const Size &b) { return multiply(a, b); }));
  ops.add("_operator.sub", arithmetic(subtract));
  ops.add("_operator.neg", negate);
}
