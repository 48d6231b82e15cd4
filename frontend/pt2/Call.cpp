//===- Call.cpp - one node on its way to linalg ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

using namespace mlir;
using namespace attn::pt2;
using Kind = Argument::Kind;

/// Where a tensor lies in memory, and how fast, is not part of what a graph means.
static constexpr StringLiteral kWithoutMeaning[] = {
    "device", "layout", "pin_memory", "memory_format", "cudnn_enable", "non_blocking", "copy"};

InFlightDiagnostic Call::error() {
  hasFailed = true;
  return emitError(b.getLoc());
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

const Argument *Call::find(StringRef name, ArrayRef<Kind> kinds, bool isOptional) {
  for (auto [i, input] : llvm::enumerate(node.inputs)) {
    if (input.name != name)
      continue;
    isRead[i] = true;
    if (input.value.kind == Kind::None && isOptional)
      return nullptr;
    if (!llvm::is_contained(kinds, input.value.kind)) {
      error() << "expected another kind of argument '" << name << "' of '" << node.target
              << "', got '" << input.value.spelling << "'";
      return nullptr;
    }
    return &input.value;
  }
  if (!isOptional)
    error() << "expected an argument '" << name << "' of '" << node.target << "'";
  return nullptr;
}

bool Call::has(StringRef name) {
  for (auto [i, input] : llvm::enumerate(node.inputs)) {
    if (input.name != name)
      continue;
    isRead[i] = true;
    return input.value.kind != Kind::None;
  }
  return false;
}

bool Call::isTensor(StringRef name) const {
  return llvm::any_of(node.inputs, [&](const NamedArgument &input) {
    return input.name == name && input.value.kind == Kind::Tensor;
  });
}

Tensor Call::lookup(StringRef name) {
  auto found = values.tensors.find(name);
  if (found != values.tensors.end())
    return found->second;
  error() << "expected '" << name << "' to be computed before '" << node.name << "'";
  return {};
}

Tensor Call::tensor(StringRef name) {
  const Argument *argument = find(name, Kind::Tensor, false);
  return argument ? lookup(argument->names.front()) : Tensor();
}

SmallVector<Tensor> Call::tensors(StringRef name) {
  SmallVector<Tensor> tensors;
  if (const Argument *argument = find(name, Kind::Tensors, false))
    for (StringRef element : argument->names)
      tensors.push_back(lookup(element));
  return tensors;
}

Size Call::resolve(const SymInt &integer) {
  if (integer.name.empty())
    return integer.value;
  auto found = values.integers.find(integer.name);
  if (found != values.integers.end())
    return found->second;
  error() << "expected '" << integer.name << "' to be computed before '" << node.name << "'";
  return {};
}

Size Call::integer(StringRef name) {
  const Argument *argument = find(name, Kind::Int, false);
  return argument ? resolve(argument->integers.front()) : Size();
}

int64_t Call::constant(StringRef name, std::optional<int64_t> otherwise) {
  const Argument *argument = find(name, Kind::Int, otherwise.has_value());
  if (!argument)
    return otherwise.value_or(0);
  Size size = resolve(argument->integers.front());
  if (!size.constant())
    error() << "expected '" << name << "' of '" << node.target << "' to be a number, got "
            << size.str();
  return size.constant().value_or(0);
}

Sizes Call::integers(StringRef name) {
  Sizes integers;
  if (const Argument *argument = find(name, Kind::Ints, false))
    for (const SymInt &integer : argument->integers)
      integers.push_back(resolve(integer));
  return integers;
}

double Call::number(StringRef name, std::optional<double> otherwise) {
  const Argument *argument = find(name, {Kind::Float, Kind::Int}, otherwise.has_value());
  if (!argument)
    return otherwise.value_or(0);
  return argument->kind == Kind::Float ? argument->number : double(constant(name));
}

bool Call::flag(StringRef name, bool otherwise) {
  const Argument *argument = find(name, Kind::Bool, true);
  return argument ? argument->flag : otherwise;
}

DType Call::dtype(StringRef name, DType otherwise) {
  // Where an argument may be a type or a number, torch stores a type's number.
  const Argument *argument = find(name, Kind::DType, true);
  return argument ? argument->dtype : otherwise;
}

Scalar Call::scalar(StringRef name, std::optional<int64_t> otherwise) {
  const Argument *argument =
      find(name, {Kind::Float, Kind::Int, Kind::Bool}, otherwise.has_value());
  if (!argument)
    return {false, double(otherwise.value_or(0)), otherwise.value_or(0)};
  if (argument->kind == Kind::Float)
    return {true, argument->number, 0};
  int64_t integer = argument->kind == Kind::Bool ? argument->flag : constant(name);
  return {false, double(integer), integer};
}

int64_t Call::dim(int64_t dim, int64_t rank) {
  if (dim < -rank || dim >= rank) {
    error() << "expected a dimension of a tensor of rank " << rank << ", got " << dim;
    return 0;
  }
  return dim < 0 ? dim + rank : dim;
}

int64_t Call::dim(StringRef name, int64_t rank, std::optional<int64_t> otherwise) {
  return dim(constant(name, otherwise), rank);
}

StringRef Call::module() const {
  // "L__self__,,gen.Layer;L__self___drop,drop,torch.nn.modules.dropout.Dropout": path, name, class
  // of each.
  StringRef stack = node.moduleStack, innermost = stack.substr(stack.rfind(';') + 1);
  return innermost.split(',').second.split(',').first;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

unsigned Call::numResults() const {
  unsigned count = 0;
  for (const Argument &output : node.outputs)
    count += output.names.size();
  return count;
}

/// The name of result `i`, which may be an element of a list.
static StringRef resultName(const Node &node, unsigned i) {
  for (const Argument &output : node.outputs) {
    if (i < output.names.size())
      return output.names[i];
    i -= output.names.size();
  }
  return "";
}

const TensorMeta &Call::expected(unsigned i) {
  static const TensorMeta none;
  auto found = program.tensors.find(resultName(node, i).str());
  if (found != program.tensors.end())
    return found->second;
  error() << "expected the type of result " << i << " of '" << node.name << "'";
  return none;
}

LogicalResult Call::result(const Tensor &tensor) {
  const TensorMeta &meta = expected(numSet);
  if (failed())
    return failure();
  if (tensor.dtype != meta.dtype || tensor.sizes != meta.sizes)
    return error() << "expected '" << resultName(node, numSet) << "' to be " << str(tensor.dtype)
                   << str(tensor.sizes) << ", got " << str(meta.dtype) << str(meta.sizes);
  StringRef name = resultName(node, numSet++);
  if (!values.tensors.try_emplace(name, tensor).second)
    return error() << "expected one value named '" << name << "', got another";
  return success();
}

LogicalResult Call::result(const Size &size) {
  std::string name;
  if (node.outputs.size() == 1 && node.outputs.front().kind == Kind::Int)
    name = node.outputs.front().integers.front().name;
  auto found = program.symInts.find(name);
  if (found == program.symInts.end() || found->second != size)
    return error() << "expected '" << name << "' to be " << size.str() << ", got "
                   << (found == program.symInts.end() ? "nothing" : found->second.str());
  values.integers.try_emplace(name, size);
  return success();
}

void Call::requireElement(const Size &size, int64_t index) {
  if (size.constant() && index < *size.constant())
    return;
  if (std::optional<StringRef> symbol = size.symbol(); symbol && index < kMaxDim) {
    int64_t &least = values.minimum[*symbol];
    least = std::max(least, index + 1);
    return;
  }
  error() << "expected a dimension that has element " << index << ", got size " << size.str();
}

LogicalResult Call::finish() {
  for (auto [input, read] : llvm::zip(node.inputs, isRead))
    if (!read && !llvm::is_contained(kWithoutMeaning, input.name) && input.value.kind != Kind::None)
      return error() << "expected no argument '" << input.name << "' of '" << node.target
                     << "', got '" << input.value.spelling << "'";
  if (numSet != numResults())
    return error() << "expected " << numSet << " results of '" << node.target << "', got "
                   << numResults();
  return success();
}

const AtenOps &attn::pt2::atenOps() {
  static const AtenOps ops = [] {
    AtenOps ops;
    addLinearAlgebra(ops);
    addViews(ops);
    addElementwise(ops);
    addReductions(ops);
    addAttention(ops);
    return ops;
  }();
  return ops;
}
