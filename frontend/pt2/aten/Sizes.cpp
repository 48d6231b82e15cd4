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

using Combine = std::optional<Size> (*)(const Size &, const Size &);

/// A function of two sizes, which must be what the file says.
static std::function<LogicalResult(Call &)> arithmetic(Combine function) {
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

/// Of more, 64 bits hold nothing but 0 and 1.
static constexpr int64_t kMaxExponent = 64;

static LogicalResult power(Call &call) {
  Size a = call.integer("a");
  int64_t exponent = call.constant("b");
  if (call.failed())
    return failure();
  std::optional<Size> result = Size(1);
  for (int64_t i = 0; i < exponent && result; ++i)
    result = i < kMaxExponent ? multiply(*result, a) : std::nullopt;
  if (exponent < 0 || !result)
    return call.error() << "expected sizes that 64 bits hold, got " << a.str() << " to the power of "
                        << exponent;
  return call.result(*result);
}

static LogicalResult negate(Call &call) {
  Size a = call.integer("a");
  std::optional<Size> result = multiply(a, Size(-1));
  if (call.failed())
    return failure();
  if (!result)
    return call.error() << "expected sizes that 64 bits hold, got " << a.str();
  return call.result(*result);
}

void attn::pt2::addSizes(AtenOps &ops) {
  ops.add("sym_size.int", symSize);
  ops.add("_operator.add", arithmetic(add));
  ops.add("_operator.mul", arithmetic(multiply));
  ops.add("_operator.sub", arithmetic(subtract));
  ops.add("_operator.floordiv", arithmetic(divideDown));
  ops.add("_operator.mod", arithmetic(remainder));
  ops.add("_operator.pow", power);
  ops.add("_operator.neg", negate);
  ops.add("torch.sym_max", arithmetic(maximum));
  ops.add("torch.sym_min", arithmetic(minimum));
}
