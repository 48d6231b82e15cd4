//===- Creation.cpp - aten ops that create tensors -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <cmath>

using namespace mlir;
using namespace attn::pt2;

/// A tensor of `sizes` filled with one number.
static LogicalResult constant(Call &call, ArrayRef<Size> sizes, DType dtype, Scalar number) {
  for (const Size &size : sizes)
    if (size.constant().value_or(0) < 0)
      return call.error() << "expected sizes of at least 0, got " << str(sizes);
  if (!number.fits(dtype))
    return call.error() << "expected a value that " << str(dtype) << " can hold, got "
                        << number.number;
  if (call.failed())
    return failure();
  return call.result(call.b.fill(sizes, number.in(call.b, dtype), dtype));
}

/// A tensor of `sizes` filled with the argument `name`, a number that may be known only when the library is called.
static LogicalResult constant(Call &call, ArrayRef<Size> sizes, DType dtype, StringRef name) {
  if (!call.isTensor(name))
    return constant(call, sizes, dtype, call.scalar(name));
  Tensor number = call.tensor(name);
  return call.failed() ? failure()
                       : call.result(call.b.broadcastTo(call.b.castTo(number, dtype), sizes));
}

static Scalar integer(int64_t number) { return {false, double(number), number}; }

/// The type that torch gives to the number `name`.
static DType dtypeOf(Call &call, StringRef name) {
  return call.isFloat(name) ? DType::F32 : call.isFlag(name) ? DType::Bool : DType::I64;
}

/// A tensor of `size`, filled with `number`. The elements of torch.empty, which are undefined in torch, are 0.
static std::function<LogicalResult(Call &)> filled(int64_t number) {
  return [=](Call &call) -> LogicalResult {
    Sizes sizes = call.integers("size");
    if (call.has("physical_layout")) // where elements are in memory
      call.integers("physical_layout");
    return constant(call, sizes, call.dtype("dtype", DType::F32), integer(number));
  };
}

static LogicalResult full(Call &call) {
  Sizes sizes = call.integers("size");
  return constant(call, sizes, call.dtype("dtype", dtypeOf(call, "fill_value")), "fill_value");
}

/// A tensor with the sizes of another tensor and, by default, its type.
static std::function<LogicalResult(Call &)> like(std::optional<int64_t> number) {
  return [=](Call &call) -> LogicalResult {
    Tensor self = call.tensor("self");
    DType dtype = call.dtype("dtype", self.dtype);
    return number ? constant(call, self.sizes, dtype, integer(*number))
                  : constant(call, self.sizes, dtype, "fill_value");
  };
}

/// A tensor of `size` with, by default, the type of another tensor.
static std::function<LogicalResult(Call &)> newLike(std::optional<int64_t> number) {
  return [=](Call &call) -> LogicalResult {
    Tensor self = call.tensor("self");
    Sizes sizes = call.integers("size");
    DType dtype = call.dtype("dtype", self.dtype);
    return number ? constant(call, sizes, dtype, integer(*number))
                  : constant(call, sizes, dtype, "fill_value");
  };
}

/// Replaces each element by one number.
static LogicalResult fill(Call &call) {
  Tensor self = call.tensor("self");
  if (call.isTensor("value") && !call.isNumber("value")) {
    Tensor value = call.tensor("value");
    if (!call.failed() && (value.rank() != 0 || !TensorBuilder::converts(value.dtype, self.dtype)))
      return call.error() << "expected one value that " << str(self.dtype) << " can hold, got "
                          << str(value.dtype) << str(value.sizes);
    return call.failed()
               ? failure()
               : call.result(call.b.broadcastTo(call.b.castTo(value, self.dtype), self.sizes));
  }
  return constant(call, self.sizes, self.dtype, "value");
}

static LogicalResult zero(Call &call) {
  Tensor self = call.tensor("self");
  return constant(call, self.sizes, self.dtype, integer(0));
}

static LogicalResult scalarTensor(Call &call) {
  return constant(call, {}, call.dtype("dtype", DType::F32), "s");
}

/// start + i * step. If the number of elements depends on sizes, it must provably be the number in the file.
static LogicalResult arange(Call &call) {
  bool hasFloat = false;
  // Reads a number or a size. If a size is unknown, the returned number has no meaning.
  auto read = [&](StringRef name, int64_t otherwise, Size &size) -> double {
    size = otherwise;
    if (!call.has(name))
      return double(otherwise);
    if (call.isFloat(name)) {
      hasFloat = true;
      return call.number(name);
    }
    size = call.integer(name);
    return double(size.constant().value_or(0));
  };
  Size start, end, step;
  double startNumber = read("start", 0, start), endNumber = read("end", 0, end),
         stepNumber = read("step", 1, step);
  DType dtype = call.dtype("dtype", hasFloat ? DType::F32 : DType::I64);
  if (call.failed())
    return failure();
  if (hasFloat && !attn::graph::isFloat(dtype)) {
    for (double number : {startNumber, endNumber, stepNumber})
      if (!(std::abs(number) < 0x1p53))
        return call.error() << "expected numbers that " << str(dtype) << " can hold, got "
                            << number;
  }
  const Sizes &sizes = call.expected().sizes;
  bool areNumbers = hasFloat || (start.constant() && end.constant());
  if (sizes.size() != 1 || stepNumber == 0 || dtype == DType::Bool)
    return call.error() << "expected a range of numbers of one size and a step other than 0";
  if (areNumbers) {
    double count = std::max(std::ceil((endNumber - startNumber) / stepNumber), 0.0);
    if (!sizes[0].constant() || double(*sizes[0].constant()) != count)
      return call.error() << "expected " << count << " elements, got " << sizes[0].str();
  } else {
    int64_t by = step.constant().value_or(0);
    std::optional<Size> length = by > 0 ? subtract(end, start) : subtract(start, end), count;
    if (length && by != 0 && std::abs(stepNumber) < double(kMaxDim))
      count = divideUp(*length, Size(std::abs(by)));
    if (!count || call.decided(*count) != sizes[0])
      return call.error() << "expected a range with " << sizes[0].str() << " elements, got "
                          << start.str() << " to " << end.str() << " in steps of " << step.str();
  }
  if (hasFloat && !attn::graph::isFloat(dtype)) {
    // For integers, the fractions of start and step influence only the number of elements.
    for (auto [size, number] : {std::pair(&start, startNumber), {&step, stepNumber}})
      if (size->constant())
        *size = int64_t(number);
    hasFloat = false;
  }
  TensorBuilder &b = call.b;
  SmallVector<Operand> operands;
  if (!start.constant() && !hasFloat)
    operands.push_back({b.number(start), DType::I64});
  return call.result(b.elementwise(sizes, dtype, operands, [&](ValueRange first) -> Value {
    Value i = arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, 0));
    if (!hasFloat) {
      if (step != Size(1))
        i = arith::MulIOp::create(b, i, b.scalar(DType::I64, *step.constant()));
      if (!first.empty())
        i = arith::AddIOp::create(b, i, first[0]);
      else if (start != Size(0))
        i = arith::AddIOp::create(b, i, b.scalar(DType::I64, *start.constant()));
      return b.convert(i, DType::I64, computeType(dtype));
    }
    Value x = b.convert(i, DType::I64, DType::F64);
    x = arith::MulFOp::create(b, x, b.scalar(DType::F64, stepNumber));
    x = arith::AddFOp::create(b, x, b.scalar(DType::F64, startNumber));
    return b.convert(x, DType::F64, computeType(dtype));
  }));
}

/// The identity matrix: 1 on the diagonal, 0 elsewhere.
static LogicalResult eye(Call &call) {
  Size rows = call.integer("n"), columns = call.has("m") ? call.integer("m") : rows;
  DType dtype = call.dtype("dtype", DType::F32);
  if (call.failed())
    return failure();
  TensorBuilder &b = call.b;
  Value one = b.scalar(dtype, int64_t(1)), zero = b.scalar(dtype, int64_t(0));
  return call.result(b.elementwise({rows, columns}, dtype, {}, [&](ValueRange) -> Value {
    Value isDiagonal = arith::CmpIOp::create(
        b, arith::CmpIPredicate::eq, linalg::IndexOp::create(b, 0), linalg::IndexOp::create(b, 1));
    Value x = arith::SelectOp::create(b, isDiagonal, one, zero);
    return b.convert(x, dtype, computeType(dtype));
  }));
}

/// `steps` numbers from start to end, both included. As in torch, each number is computed from the nearer end.
static LogicalResult linspace(Call &call) {
  double start = call.number("start"), end = call.number("end");
  int64_t steps = call.constant("steps");
  DType dtype = call.dtype("dtype", DType::F32);
  if (call.failed())
    return failure();
  if (steps < 0 || steps > kMaxDim || !isFloat(dtype))
    return call.error() << "expected floats and a number of steps, got " << str(dtype) << " and "
                        << steps;
  TensorBuilder &b = call.b;
  auto constant = [&](double value) { return b.scalar(DType::F64, value); };
  double step = steps > 1 ? (end - start) / double(steps - 1) : 0;
  return call.result(b.elementwise({Size(steps)}, dtype, {}, [&](ValueRange) -> Value {
    Value index = arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, 0));
    Value i = b.convert(index, DType::I64, DType::F64);
    auto times = [&](Value count) -> Value {
      return arith::MulFOp::create(b, count, constant(step));
    };
    Value up = arith::AddFOp::create(b, constant(start), times(i));
    Value left = arith::SubFOp::create(b, constant(double(steps - 1)), i);
    // If there is only one number, it is `start`.
    Value down = arith::SubFOp::create(b, constant(steps == 1 ? start : end), times(left));
    Value isFirst =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, i, constant(double(steps / 2)));
    return b.convert(arith::SelectOp::create(b, isFirst, up, down), DType::F64, computeType(dtype));
  }));
}

/// The row indices, then the column indices, of the elements on one side of a diagonal, row by row.
static auto triangleIndices(bool isUpper) {
  return [=](Call &call) -> LogicalResult {
    constexpr int64_t kMost = 1 << 20;
    int64_t rows = call.constant("row"), columns = call.constant("col"),
            offset = call.constant("offset", 0);
    DType dtype = call.dtype("dtype", DType::I64);
    if (call.failed())
      return failure();
    if (rows < 0 || columns < 0 || rows > kMost || columns > kMost || rows * columns > kMost ||
        std::abs(offset) > kMost || (dtype != DType::I64 && dtype != DType::I32))
      return call.error() << "expected a matrix of at most 2^20 elements, an offset within it and "
                             "indices of int32 or int64, got "
                          << rows << " x " << columns << ", " << offset << " and " << str(dtype);
    SmallVector<APInt> indices[2];
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        if (isUpper ? column - row >= offset : column - row <= offset) {
          unsigned width = dtype == DType::I64 ? 64 : 32;
          indices[0].push_back(APInt(width, row));
          indices[1].push_back(APInt(width, column));
        }
    Sizes sizes = {Size(2), Size(indices[0].size())};
    indices[0].append(indices[1]);
    RankedTensorType type = call.b.typeOf(sizes, dtype);
    Value table = arith::ConstantOp::create(call.b, DenseElementsAttr::get(type, indices[0]));
    return call.result({table, dtype, sizes});
  };
}

void attn::pt2::addCreation(AtenOps &ops) {
  ops.add("tril_indices.default", triangleIndices(/*isUpper=*/false), "more than 2^20 elements");
  ops.add("triu_indices.default", triangleIndices(/*isUpper=*/true), "more than 2^20 elements");
  ops.add("linspace.default", linspace, "integers");
  ops.add("eye.default", eye);
  ops.add("eye.m", eye);
  for (auto [name, number] : {std::pair("zeros", 0), {"ones", 1}, {"empty", 0}}) {
    StringRef base = name;
    ops.add((base + (base == "empty" ? ".memory_format" : ".default")).str(), filled(number));
    ops.add((base + "_like.default").str(), like(number));
    ops.add(("new_" + base + ".default").str(), newLike(number));
  }
  ops.add("empty_permuted.default", filled(0));
  ops.add("full.default", full);
  ops.add("full_like.default", like(std::nullopt));
  ops.add("new_full.default", newLike(std::nullopt));
  ops.add("fill.Scalar", fill);
  ops.add("fill.Tensor", fill);
  ops.add("zero.default", zero);
  ops.add("scalar_tensor.default", scalarTensor);
  StringRef limits = "steps that depend on sizes; floats, if the start or the end depends on sizes";
  for (StringRef overload : {"default", "start", "start_step"})
    ops.add(("arange." + overload).str(), arange, limits);
}
