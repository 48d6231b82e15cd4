//===- Complex.cpp - aten's ops of complex numbers -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A complex tensor is two real tensors, its parts. An op that only moves elements, or that is linear, is applied to
// each part as to a real tensor. Callers pass and get pairs: f32 or f64 tensors with a last dimension of 2.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn::pt2;

namespace {
/// An operand: a complex tensor, or a real tensor, which has no imaginary part.
struct Parts {
  Tensor real;
  std::optional<Tensor> imaginary;
};
} // namespace

Tensor attn::pt2::pairOf(TensorBuilder &b, const Tensor &real, const Tensor &imaginary) {
  Sizes sizes = real.sizes;
  sizes.push_back(2);
  Tensor pairs = b.empty(sizes, real.dtype);
  pairs = b.insert(pairs, real, real.rank(), 0, /*step=*/1, /*isDropped=*/true);
  return b.insert(pairs, imaginary, real.rank(), 1, /*step=*/1, /*isDropped=*/true);
}

/// Reads a tensor or a number.
static Parts readParts(Call &call, StringRef name) {
  if (!call.isTensor(name)) {
    Scalar scalar = call.scalar(name);
    Value number = scalar.in(call.b, DType::F64);
    return {call.b.fill({}, number, DType::F64), std::nullopt};
  }
  Parts parts{call.tensor(name), std::nullopt};
  if (call.isComplex(name))
    parts.imaginary = call.ofImaginary().tensor(name);
  return parts;
}

/// Reads `self`, which must be complex.
static FailureOr<Parts> readComplex(Call &call) {
  Parts parts = readParts(call, "self");
  if (call.failed())
    return failure();
  if (!parts.imaginary)
    return call.error() << "expected complex numbers, got " << str(parts.real.dtype)
                        << str(parts.real.sizes);
  return parts;
}

/// Adds the complex form of op `name`: this form applies the import function of the op first to the real parts, then to
/// the imaginary parts of the complex tensors. `argument` must be complex.
static void addOfParts(AtenOps &ops, StringRef name, StringRef argument) {
  const AtenOp *op = ops.find(("torch.ops.aten." + name).str());
  auto import = op->import;
  ops.addComplexForm(name, [=](Call &call) -> LogicalResult {
    if (!call.isComplex(argument))
      return call.error() << "expected complex numbers in '" << argument << "' of '"
                          << call.target() << "', got real ones";
    Call other = call.ofImaginary();
    return failure(failed(import(call)) || failed(import(other)) || other.failed());
  });
}

/// A complex tensor from floats, whose last dimension has the real and the imaginary parts.
static LogicalResult viewAsComplex(Call &call) {
  Tensor x = call.tensor("self");
  if (call.failed())
    return failure();
  if (x.rank() == 0 || x.sizes.back() != Size(2) ||
      (x.dtype != DType::F32 && x.dtype != DType::F64))
    return call.error() << "expected float32 or float64 with a last dimension of 2, got "
                        << str(x.dtype) << str(x.sizes);
  int64_t last = x.rank() - 1;
  Call other = call.ofImaginary();
  return failure(failed(call.resultView("self", call.b.select(x, last, 0), {})) ||
                 failed(other.resultView("self", call.b.select(x, last, 1), {})));
}

static LogicalResult viewAsReal(Call &call) {
  FailureOr<Parts> x = readComplex(call);
  if (failed(x))
    return failure();
  return call.resultView("self", pairOf(call.b, x->real, *x->imaginary), {});
}

/// The real or the imaginary part, as a view.
static std::function<LogicalResult(Call &)> part(bool isImaginary) {
  return [=](Call &call) -> LogicalResult {
    FailureOr<Parts> x = readComplex(call);
    if (failed(x))
      return failure();
    return call.resultView("self", isImaginary ? *x->imaginary : x->real, {});
  };
}

/// The conjugate, as a view: conj only marks the imaginary part as negated. conj_physical copies in torch, but is
/// imported in the same way.
static LogicalResult conjugate(Call &call) {
  FailureOr<Parts> x = readComplex(call);
  if (failed(x))
    return failure();
  TensorBuilder &b = call.b;
  Tensor negated = b.elementwise(
      x->real.sizes, x->real.dtype, Operand{*x->imaginary, x->real.dtype},
      [&](ValueRange element) -> Value { return arith::NegFOp::create(b, element[0]); });
  Call other = call.ofImaginary();
  return failure(failed(call.resultView("self", x->real, {})) ||
                 failed(other.resultView("self", negated, {})));
}

/// A complex tensor from its parts, two tensors of one type.
static LogicalResult makeComplex(Call &call) {
  Tensor real = call.tensor("real"), imaginary = call.tensor("imag");
  std::optional<Sizes> sizes = TensorBuilder::broadcast({real.sizes, imaginary.sizes});
  if (call.failed())
    return failure();
  if (!sizes || real.dtype != imaginary.dtype)
    return call.error() << "expected parts of one type that broadcast, got " << str(real.dtype)
                        << str(real.sizes) << " and " << str(imaginary.dtype)
                        << str(imaginary.sizes);
  return call.result(call.b.broadcastTo(real, *sizes), call.b.broadcastTo(imaginary, *sizes));
}

/// abs * (cos(angle) + i sin(angle))
static LogicalResult polar(Call &call) {
  Tensor abs = call.tensor("abs"), angle = call.tensor("angle");
  std::optional<Sizes> sizes = TensorBuilder::broadcast({abs.sizes, angle.sizes});
  if (call.failed())
    return failure();
  if (!sizes || abs.dtype != angle.dtype)
    return call.error() << "expected two tensors of one type that broadcast, got " << str(abs.dtype)
                        << str(abs.sizes) << " and " << str(angle.dtype) << str(angle.sizes);
  TensorBuilder &b = call.b;
  auto times = [&](auto function) {
    return b.elementwise(
        *sizes, abs.dtype, {{abs, abs.dtype}, {angle, abs.dtype}},
        [&](ValueRange x) -> Value { return arith::MulFOp::create(b, x[0], function(x[1])); });
  };
  return call.result(times([&](Value x) -> Value { return math::CosOp::create(b, x); }),
                     times([&](Value x) -> Value { return math::SinOp::create(b, x); }));
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

namespace {
/// Computes an element of the real or the imaginary part of the result.
using Function = function_ref<Value(ValueRange)>;
} // namespace

/// Applies `function` elementwise in `dtype`.
static Tensor combine(Call &call, ArrayRef<Size> sizes, ArrayRef<Tensor> parts, DType dtype,
                      Function function) {
  SmallVector<Operand> operands;
  for (const Tensor &part : parts)
    operands.push_back({part, dtype});
  return call.b.elementwise(sizes, dtype, operands, function);
}

namespace {
struct Pair {
  Parts self, other;
  Sizes sizes;
  DType dtype; // the type of the complex operand, or the wider type if both are complex
};
} // namespace

static FailureOr<Pair> readPair(Call &call) {
  Pair pair{readParts(call, "self"), readParts(call, "other"), {}, DType::F32};
  const Parts &a = pair.self, &b = pair.other;
  std::optional<Sizes> sizes = TensorBuilder::broadcast({a.real.sizes, b.real.sizes});
  if (call.failed())
    return failure();
  if (!sizes || (!a.imaginary && !b.imaginary))
    return call.error() << "expected complex numbers of sizes that broadcast, got "
                        << str(a.real.sizes) << " and " << str(b.real.sizes);
  pair.sizes = *sizes;
  for (const Parts *parts : {&a, &b})
    if (parts->imaginary && parts->real.dtype == DType::F64)
      pair.dtype = DType::F64;
  return pair;
}

/// (a + b i) (c + d i) = (a c - b d) + (a d + b c) i. If an operand is real, it multiplies each part of the other
/// operand.
static LogicalResult product(Call &call) {
  FailureOr<Pair> pair = readPair(call);
  if (failed(pair))
    return failure();
  TensorBuilder &b = call.b;
  const Parts &self = pair->self, &other = pair->other;
  auto compute = [&](ArrayRef<Tensor> parts, Function function) {
    return combine(call, pair->sizes, parts, pair->dtype, function);
  };
  auto mul = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, x, y); };
  auto factors = [&](ValueRange x) { return mul(x[0], x[1]); };
  if (!self.imaginary || !other.imaginary) {
    const Parts &number = self.imaginary ? self : other;
    const Tensor &factor = self.imaginary ? other.real : self.real;
    return call.result(compute({number.real, factor}, factors),
                       compute({*number.imaginary, factor}, factors));
  }
  Tensor real = compute({self.real, other.real, *self.imaginary, *other.imaginary},
                        [&](ValueRange x) -> Value {
                          return arith::SubFOp::create(b, mul(x[0], x[1]), mul(x[2], x[3]));
                        });
  Tensor imaginary = compute({self.real, *other.imaginary, *self.imaginary, other.real},
                             [&](ValueRange x) -> Value {
                               return arith::AddFOp::create(b, mul(x[0], x[1]), mul(x[2], x[3]));
                             });
  return call.result(real, imaginary);
}

/// The sum or the difference, part by part.
template <typename OpTy> static LogicalResult sum(Call &call) {
  FailureOr<Pair> pair = readPair(call);
  if (failed(pair))
    return failure();
  if (call.scalar("alpha", 1).number != 1)
    return call.error() << "expected alpha = 1";
  TensorBuilder &b = call.b;
  // The imaginary part of a real operand is 0.
  auto compute = [&](const Tensor &x, const Tensor &y) {
    return combine(call, pair->sizes, {x, y}, pair->dtype,
                   [&](ValueRange x) -> Value { return OpTy::create(b, x[0], x[1]); });
  };
  Tensor zero = b.fill({}, pair->dtype, 0);
  return call.result(
      compute(pair->self.real, pair->other.real),
      compute(pair->self.imaginary.value_or(zero), pair->other.imaginary.value_or(zero)));
}

/// Each part divided by a real number.
static LogicalResult divide(Call &call) {
  FailureOr<Pair> pair = readPair(call);
  if (failed(pair))
    return failure();
  if (pair->other.imaginary)
    return call.error() << "expected a real divisor, got a complex one";
  TensorBuilder &b = call.b;
  auto compute = [&](const Tensor &x) {
    return combine(call, pair->sizes, {x, pair->other.real}, pair->dtype,
                   [&](ValueRange x) -> Value { return arith::DivFOp::create(b, x[0], x[1]); });
  };
  return call.result(compute(pair->self.real), compute(*pair->self.imaginary));
}

void attn::pt2::addComplex(AtenOps &ops) {
  for (StringRef name : {"_reshape_alias.default",
                         "_to_copy.default",
                         "_unsafe_view.default",
                         "alias.default",
                         "broadcast_to.default",
                         "chunk.default",
                         "clone.default",
                         "contiguous.default",
                         "detach.default",
                         "expand.default",
                         "flatten.using_ints",
                         "flip.default",
                         "gather.default",
                         "index.Tensor",
                         "index_select.default",
                         "lift_fresh_copy.default",
                         "movedim.int",
                         "movedim.intlist",
                         "narrow.default",
                         "neg.default",
                         "permute.default",
                         "repeat.default",
                         "repeat_interleave.self_int",
                         "reshape.default",
                         "roll.default",
                         "select.int",
                         "slice.Tensor",
                         "split.Tensor",
                         "split_with_sizes.default",
                         "squeeze.default",
                         "squeeze.dim",
                         "squeeze.dims",
                         "sum.default",
                         "sum.dim_IntList",
                         "swapaxes.default",
                         "swapdims.default",
                         "t.default",
                         "tile.default",
                         "to.dtype",
                         "to.dtype_layout",
                         "transpose.int",
                         "unbind.int",
                         "unflatten.int",
                         "unsqueeze.default",
                         "view.default"})
    addOfParts(ops, name, "self");
  addOfParts(ops, "_assert_tensor_metadata.default", "a");
  for (StringRef name : {"cat.default", "stack.default"})
    addOfParts(ops, name, "tensors");
  // These ops always have complex arguments or results.
  auto add = [&](StringRef name, std::function<LogicalResult(Call &)> import,
                 StringRef limits = "") {
    ops.add(name, import, limits);
    ops.addComplexForm(name, import);
  };
  add("view_as_complex.default", viewAsComplex);
  add("view_as_real.default", viewAsReal);
  add("real.default", part(/*isImaginary=*/false));
  add("imag.default", part(/*isImaginary=*/true));
  for (StringRef name :
       {"conj.default", "_conj.default", "conj_physical.default", "_conj_physical.default"})
    add(name, conjugate);
  add("complex.default", makeComplex);
  add("polar.default", polar);
  for (StringRef overload : {".Tensor", ".Scalar"}) {
    ops.addComplexForm(("mul" + overload).str(), product);
    ops.addComplexForm(("add" + overload).str(), sum<arith::AddFOp>);
    ops.addComplexForm(("sub" + overload).str(), sum<arith::SubFOp>);
    ops.addComplexForm(("div" + overload).str(), divide);
  }
}
