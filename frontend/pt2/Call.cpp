//===- Call.cpp - a node of the graph that is imported ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/Call.h"

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/Support/CheckedArithmetic.h"

#include <set>

using namespace mlir;
using namespace attn::pt2;
using Kind = Argument::Kind;

/// Arguments that attn ignores, because they do not change the values of a graph: they say how a tensor is
/// stored or copied, or make an op faster.
static constexpr StringLiteral kWithoutMeaning[] = {"device",        "layout",       "pin_memory",
                                                    "memory_format", "cudnn_enable", "non_blocking",
                                                    "copy",          "cudnn_enabled"};

/// The innermost line of the user's own code in a stack trace such as
///   File "generate.py", line 198, in forward
///     qkv = self.qkv_proj(x)
///   File "torch/nn/modules/linear.py", line 134, in forward
Location attn::pt2::locationOf(const Node &node, MLIRContext *context) {
  Location line = UnknownLoc::get(context);
  SmallVector<StringRef> lines;
  StringRef(node.stackTrace).split(lines, '\n');
  for (StringRef text : lines) {
    text = text.trim();
    if (!text.consume_front("File \""))
      continue;
    auto [file, rest] = text.split("\", line ");
    unsigned number;
    // torch names the code that it generates <eval_with_key>.
    if (rest.consumeInteger(10, number) || file.starts_with("torch/") ||
        file.contains("-packages/torch/") || file.starts_with("<eval_with_key>"))
      continue;
    line = FileLineColLoc::get(context, file, number, /*column=*/0);
  }
  return NameLoc::get(StringAttr::get(context, node.name), line);
}

Value Scalar::in(TensorBuilder &b, DType dtype) const {
  if (!isFloat)
    return b.scalar(dtype, integer);
  if (attn::graph::isFloat(dtype))
    return b.scalar(dtype, number);
  return b.scalar(dtype, dtype == DType::Bool ? int64_t(number != 0) : int64_t(number));
}

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

/// Whether argument `name` of `node` is of this kind.
static bool hasKind(const Node &node, StringRef name, Kind kind) {
  return llvm::any_of(node.inputs, [&](const NamedArgument &input) {
    return input.name == name && input.value.kind == kind;
  });
}

bool Call::isKnown(const Argument &argument) const {
  if (argument.kind == Kind::Int && !argument.integers.front().name.empty())
    return values.integers.lookup(argument.integers.front().name).constant().has_value();
  return argument.kind != Kind::Float || argument.text.empty();
}

bool Call::isTensor(StringRef name) const {
  return llvm::any_of(node.inputs, [&](const NamedArgument &input) {
    return input.name == name && (input.value.kind == Kind::Tensor || !isKnown(input.value));
  });
}

bool Call::isNumber(StringRef name) const {
  return isFlag(name) || isFloat(name) || hasKind(node, name, Kind::Int);
}

bool Call::isFloat(StringRef name) const { return hasKind(node, name, Kind::Float); }
bool Call::isFlag(StringRef name) const { return hasKind(node, name, Kind::Bool); }
bool Call::isString(StringRef name) const { return hasKind(node, name, Kind::String); }

bool Call::isComplex(StringRef name) const {
  for (const NamedArgument &input : node.inputs)
    if (input.name == name)
      return llvm::all_of(input.value.names,
                          [&](StringRef tensor) { return values.imaginary.contains(tensor); });
  return false;
}

bool Call::isComplex() const {
  auto isComplexResult = [&](StringRef name) {
    auto meta = graph.tensors.find(name.str());
    return meta != graph.tensors.end() && meta->second.isComplex;
  };
  return llvm::any_of(node.inputs,
                      [&](const NamedArgument &input) {
                        return llvm::any_of(input.value.names, [&](StringRef name) {
                          return values.imaginary.contains(name);
                        });
                      }) ||
         llvm::any_of(node.outputs, [&](const Argument &output) {
           return llvm::any_of(output.names, isComplexResult);
         });
}

Tensor Call::lookup(StringRef name) {
  if (mlir::failed(refresh(graph, name, b, values)))
    hasFailed = true;
  if (auto found = values.imaginary.find(name); readsImaginary && found != values.imaginary.end())
    return found->second;
  auto found = values.tensors.find(name);
  if (found != values.tensors.end())
    return found->second;
  if (values.skipped.contains(name))
    error() << "expected no use of '" << name << "', which only gradients need, got '"
            << node.target << "'";
  else
    error() << "expected '" << name << "' to be computed before '" << node.name << "'";
  return {};
}

Tensor Call::tensor(StringRef name) {
  if (isTensor(name) && isNumber(name)) {
    if (!isFloat(name))
      return b.number(integer(name));
    Value number = computed(name);
    return {tensor::FromElementsOp::create(b, b.typeOf({}, DType::F64), number), DType::F64, {}};
  }
  const Argument *argument = find(name, Kind::Tensor, false);
  return argument ? lookup(argument->names.front()) : Tensor();
}

Tensor Call::tensorWithDims(StringRef name) {
  Tensor scalar = tensor(name);
  if (failed() || scalar.rank() != 0)
    return scalar;
  FailureOr<Tensor> vector = viewAs(*this, scalar, Size(1));
  dropsDim = true;
  return mlir::failed(vector) ? scalar : *vector;
}

Value Call::computed(StringRef name) {
  const Argument *argument = find(name, {Kind::Float, Kind::Int}, false);
  if (!argument || isKnown(*argument))
    return b.scalar(DType::F64, argument ? number(name) : 0.0);
  if (argument->kind == Kind::Float) {
    Value number = values.floats.lookup(argument->text);
    if (!number)
      error() << "expected '" << argument->text << "' to be computed before '" << node.name << "'";
    return number ? number : b.scalar(DType::F64, 0.0);
  }
  Value integer =
      arith::IndexCastOp::create(b, b.getI64Type(), b.indexOf(resolve(argument->integers.front())));
  return b.convert(integer, DType::I64, DType::F64);
}

SmallVector<Tensor> Call::tensors(StringRef name) {
  SmallVector<Tensor> tensors;
  if (const Argument *argument = find(name, Kind::Tensors, false))
    for (StringRef element : argument->names)
      tensors.push_back(lookup(element));
  return tensors;
}

SmallVector<std::optional<Tensor>> Call::optionalTensors(StringRef name) {
  SmallVector<std::optional<Tensor>> tensors;
  if (const Argument *argument = find(name, {Kind::OptionalTensors, Kind::Tensors}, false))
    for (StringRef element : argument->names)
      tensors.push_back(element.empty() ? std::nullopt : std::optional(lookup(element)));
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

SmallVector<int64_t> Call::constants(StringRef name, std::optional<ArrayRef<int64_t>> otherwise) {
  const Argument *argument = find(name, {Kind::Ints, Kind::Int}, otherwise.has_value());
  if (!argument)
    return SmallVector<int64_t>(otherwise.value_or(ArrayRef<int64_t>()));
  SmallVector<int64_t> numbers;
  for (const SymInt &integer : argument->integers) {
    Size size = resolve(integer);
    if (!size.constant())
      error() << "expected '" << name << "' of '" << node.target << "' to be numbers, got "
              << size.str();
    numbers.push_back(size.constant().value_or(0));
  }
  return numbers;
}

void Call::requireKnown(const Argument &argument, StringRef name) {
  if (!isKnown(argument))
    error() << "expected '" << name << "' of '" << node.target << "' to be a number, got '"
            << argument.text << "', which is computed from sizes";
}

double Call::number(StringRef name, std::optional<double> otherwise) {
  const Argument *argument = find(name, {Kind::Float, Kind::Int}, otherwise.has_value());
  if (!argument)
    return otherwise.value_or(0);
  if (argument->kind == Kind::Int)
    return double(constant(name));
  requireKnown(*argument, name);
  return argument->number;
}

SmallVector<double> Call::numbers(StringRef name) {
  const Argument *argument = find(name, Kind::Floats, false);
  return argument ? llvm::to_vector(argument->numbers) : SmallVector<double>();
}

bool Call::flag(StringRef name, bool otherwise) {
  const Argument *argument = find(name, Kind::Bool, true);
  return argument ? argument->flag : otherwise;
}

std::string Call::string(StringRef name, StringRef otherwise) {
  const Argument *argument = find(name, Kind::String, true);
  return argument ? argument->text : otherwise.str();
}

DType Call::dtype(StringRef name, DType otherwise) {
  const Argument *argument = find(name, Kind::DType, true);
  if (argument && argument->kind == Kind::DType && argument->flag != isComplex())
    error() << "expected a " << (isComplex() ? "complex" : "real") << " type as '" << name
            << "' of '" << node.target << "'";
  return argument ? argument->dtype : otherwise;
}

Scalar Call::scalar(StringRef name, std::optional<int64_t> otherwise) {
  const Argument *argument =
      find(name, {Kind::Float, Kind::Int, Kind::Bool}, otherwise.has_value());
  if (!argument)
    return {false, double(otherwise.value_or(0)), otherwise.value_or(0)};
  if (argument->kind == Kind::Float) {
    requireKnown(*argument, name);
    return {true, argument->number, 0};
  }
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

SmallVector<int64_t> Call::dims(StringRef name, int64_t rank) {
  SmallVector<int64_t> result = constants(name, ArrayRef<int64_t>());
  // In a tensor of rank 0, torch allows dimension 0 or -1, which means the whole tensor.
  if (rank == 0)
    llvm::erase_if(result, [](int64_t dim) { return dim == 0 || dim == -1; });
  for (int64_t &position : result)
    position = dim(position, rank);
  if (result.empty())
    llvm::append_range(result, llvm::seq<int64_t>(0, rank));
  llvm::sort(result);
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    error() << "expected each dimension once in '" << name << "' of '" << node.target << "'";
  return result;
}

StringRef Call::module() const {
  // The path, name and class of each module:
  // "L__self__,,gen.Layer;L__self___drop,drop,torch.nn.modules.dropout.Dropout".
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
  auto found = graph.tensors.find(resultName(node, i).str());
  if (found != graph.tensors.end())
    return found->second;
  error() << "expected the type of result " << i << " of '" << node.name << "'";
  return none;
}

StringRef Call::nameOf(StringRef argument, unsigned element) const {
  for (const NamedArgument &input : node.inputs)
    if (input.name == argument && element < input.value.names.size())
      return input.value.names[element];
  return "";
}

static FailureOr<Tensor> writeWhole(Call &, const Tensor &, const Tensor &part) { return part; }

LogicalResult Call::result(const Tensor &tensor) {
  const TensorMeta &meta = expected(numSet);
  if (failed())
    return failure();
  bool inPlace = worksInPlace(node.target) && numSet == 0;
  Tensor set = tensor;
  if (dropsDim && meta.sizes.empty() && set.rank() == 1) {
    FailureOr<Tensor> scalar = viewAs(*this, set, {});
    if (mlir::failed(scalar))
      return failure();
    set = *scalar;
  }
  if (inPlace && TensorBuilder::converts(tensor.dtype, meta.dtype))
    set = b.castTo(tensor, meta.dtype);
  // Two sizes may be equal in every call although their forms differ.
  if (set.sizes != meta.sizes && set.sizes.size() == meta.sizes.size() &&
      llvm::all_of(llvm::zip_equal(set.sizes, meta.sizes), [](auto pair) {
        return areEqual(std::get<0>(pair), std::get<1>(pair));
      })) {
    set.sizes = Sizes(meta.sizes);
    if (Type type = b.typeOf(set.sizes, set.dtype); type != set.value.getType())
      set.value = tensor::CastOp::create(b, type, set.value);
  }
  if (set.dtype != meta.dtype || set.sizes != meta.sizes) {
    // In an export with autocast on, products of float32 have results of half precision.
    bool isAutocast = set.dtype == DType::F32 && set.sizes == meta.sizes &&
                      (meta.dtype == DType::BF16 || meta.dtype == DType::F16);
    return error() << "expected '" << resultName(node, numSet) << "' to be " << str(set.dtype)
                   << str(set.sizes) << ", got " << str(meta.dtype) << str(meta.sizes)
                   << (isAutocast ? "; if autocast was on, export the module without it" : "");
  }
  StringRef name = resultName(node, numSet++);
  llvm::StringMap<Tensor> &tensors =
      readsImaginary && meta.isComplex ? values.imaginary : values.tensors;
  if (again) {
    tensors[name] = set;
    if (View *view = values.viewOf(name))
      view->isCurrent = true;
  } else if (!tensors.try_emplace(name, set).second)
    return error() << "expected one value named '" << name << "', got two";
  if (!inPlace)
    return success();
  StringRef changed = node.inputs.empty() ? "" : nameOf(node.inputs.front().name);
  if (changed.empty())
    return error() << "expected a tensor that '" << node.target << "' changes";
  // The result is another name of the argument.
  values.addView(name, {changed.str(), nullptr, writeWhole});
  return write(changed, set);
}

LogicalResult Call::result(const Tensor &real, const Tensor &imaginary) {
  Call other = ofImaginary();
  return failure(mlir::failed(result(real)) || mlir::failed(other.result(imaginary)));
}

LogicalResult Call::skipResults() {
  while (numSet < numResults())
    values.skipped.insert(resultName(node, numSet++));
  return success();
}

LogicalResult Call::resultView(StringRef base, const Tensor &tensor, WriteBack write, bool mayCopy,
                               unsigned element) {
  if (copiesView(node.target))
    return result(tensor);
  if (worksInPlace(node.target))
    return error() << "expected an op that keeps the sizes of the tensor that it changes, got '"
                   << node.target << "'";
  if (!again && !readsImaginary)
    values.addView(resultName(node, numSet),
                   {nameOf(base, element).str(), &node, std::move(write), mayCopy});
  return result(tensor);
}

LogicalResult Call::resultSame(StringRef base, const Tensor &tensor) {
  if (worksInPlace(node.target))
    return result(tensor);
  return resultView(base, tensor, writeWhole);
}

/// Writes `tensor` to `name`. If `name` is a view, also writes to its base, to the base of that base, and so on. Other
/// views of the same elements become out of date.
LogicalResult Call::write(StringRef name, const Tensor &tensor) {
  values.tensors[name] = tensor;
  // Write to each base, up to the tensor that owns the elements.
  llvm::StringSet<> isWritten;
  isWritten.insert(name);
  std::string root = name.str();
  while (const View *view = values.viewOf(root)) {
    if (!view->write)
      return error() << "expected '" << node.target << "' to change no tensor that torch may have "
                     << "copied or whose elements share memory, got '" << root << "'";
    FailureOr<Tensor> base = view->write(*this, lookup(view->base), values.tensors[root]);
    if (mlir::failed(base) || failed())
      return failure();
    root = view->base;
    values.tensors[root] = *base;
    isWritten.insert(root);
  }
  if (values.constants.contains(root))
    return error() << "expected a model that leaves its parameters and constants as they are, got '"
                   << node.target << "' of '" << root << "'";
  // Mark all other views of this tensor as out of date.
  llvm::StringSet<> changed;
  changed.insert(root);
  for (auto &[part, view] : values.views) {
    if (!changed.contains(view.base))
      continue;
    changed.insert(part);
    view.isCurrent = isWritten.contains(part);
  }
  return success();
}

LogicalResult attn::pt2::refresh(const Graph &graph, StringRef name, TensorBuilder &b,
                                 Values &values) {
  // Collect the outdated views on which `name` depends, in the order of the graph.
  std::set<size_t> stale;
  SmallVector<StringRef> names = {name};
  while (!names.empty()) {
    StringRef part = names.pop_back_val();
    const View *view = values.viewOf(part);
    if (!view || view->isCurrent || !stale.insert(values.viewIndices.lookup(part)).second)
      continue;
    names.push_back(view->base);
    if (view->node)
      for (const NamedArgument &input : view->node->inputs)
        llvm::append_range(names, input.value.names);
  }
  for (size_t i : stale) {
    auto &[part, view] = values.views[i];
    if (view.mayCopy)
      return emitError(b.getLoc())
             << "expected no use of '" << part << "', a view or a copy of '" << view.base
             << "', after '" << view.base << "' was changed in place";
    view.isCurrent = true;
    if (!view.node) {
      values.tensors[part] = values.tensors[view.base];
      continue;
    }
    Call anew(graph, *view.node, b, values, /*again=*/true);
    const AtenOp *op = AtenOps::all().find(view.node->target);
    const auto &import = anew.isComplex() ? op->importComplex : op->import;
    if (failed(import(anew)) || anew.failed())
      return failure();
  }
  return success();
}

void Values::addView(StringRef name, View view) {
  viewIndices[name] = views.size();
  views.push_back({name.str(), std::move(view)});
}

View *Values::viewOf(StringRef name) {
  auto found = viewIndices.find(name);
  return found == viewIndices.end() ? nullptr : &views[found->second].second;
}

LogicalResult Call::result(const Size &computed) {
  Size size = decided(computed);
  std::string name;
  if (node.outputs.size() == 1 && node.outputs.front().kind == Kind::Int)
    name = node.outputs.front().integers.front().name;
  auto found = graph.symInts.find(name);
  if (found == graph.symInts.end() || found->second != size)
    return error() << "expected '" << name << "' to be " << size.str() << ", got "
                   << (found == graph.symInts.end() ? "nothing" : found->second.str());
  values.integers[name] = size;
  return success();
}

LogicalResult Call::resultNumber(Value number) {
  std::string name;
  if (node.outputs.size() == 1 && node.outputs.front().kind == Kind::Float)
    name = node.outputs.front().text;
  if (name.empty() || !values.floats.try_emplace(name, number).second)
    return error() << "expected one result of '" << node.target << "' that is a float";
  return success();
}

bool Values::requireAtMost(const Size &a, const Size &b) {
  if (SizeFacts::Outcome outcome = facts.requireAtMost(a, b); outcome != SizeFacts::Outcome::Open)
    return outcome == SizeFacts::Outcome::Holds;
  std::string condition = a.str() + " <= " + b.str();
  if (!llvm::is_contained(conditions, condition))
    conditions.push_back(condition);
  return true;
}

void Call::requireAtMost(const Size &a, const Size &b) {
  if (!values.requireAtMost(a, b))
    error() << "expected a size of at least " << a.str() << ", got " << b.str();
}

/// Replaces one maximum or minimum in `size` by the operand that makes `size` 1 or, if there is none, `wanted`. Requires
/// that calls have sizes for which it is this operand.
static bool decideAs(Values &values, Size &size, const Size &wanted) {
  for (const Size &goal : {Size(1), wanted})
    for (const auto &[monomial, coefficient] : size.terms())
      for (const Size::Factor &factor : monomial) {
        if (!factor.operands ||
            (factor.function != Size::Function::Max && factor.function != Size::Function::Min))
          continue;
        const auto &[a, b] = *factor.operands;
        for (const auto &order : {std::pair(a, b), std::pair(b, a)}) {
          Size decided =
              size.decide([&](const Size &a, const Size &b) { return std::pair(a, b) == order; });
          if (decided != goal || !values.requireAtMost(order.first, order.second))
            continue;
          size = decided;
          return true;
        }
      }
  return false;
}

std::optional<Sizes> Call::broadcast(ArrayRef<Tensor *> tensors) {
  auto all = [&] {
    return TensorBuilder::broadcast(
        llvm::map_to_vector(tensors, [](Tensor *tensor) { return tensor->sizes; }));
  };
  std::optional<Sizes> sizes = all();
  if (sizes || failed())
    return sizes;
  ArrayRef<Size> wanted = expected().sizes;
  for (Tensor *tensor : tensors) {
    if (tensor->rank() > int64_t(wanted.size()))
      return std::nullopt;
    for (auto [size, result] :
         llvm::zip_equal(tensor->sizes, wanted.take_back(tensor->sizes.size())))
      if (size != result && !size.isOne() && !decideAs(values, size, result))
        return std::nullopt;
    if (Type type = b.typeOf(tensor->sizes, tensor->dtype); type != tensor->value.getType())
      tensor->value = tensor::CastOp::create(b, type, tensor->value);
  }
  return all();
}

static bool isContiguous(const TensorMeta &meta) {
  if (meta.strides.size() != meta.sizes.size())
    return false;
  std::optional<Size> stride = Size(1);
  for (auto [size, actual] : llvm::reverse(llvm::zip(meta.sizes, meta.strides))) {
    if (!stride || (!size.isOne() && actual != *stride))
      return false;
    stride = multiply(*stride, size);
  }
  return true;
}

bool Call::isContiguous(StringRef name) {
  auto meta = graph.tensors.find(nameOf(name).str());
  return meta != graph.tensors.end() && ::isContiguous(meta->second);
}

std::optional<bool> Call::reshapesInPlace(StringRef name, ArrayRef<Size> sizes) {
  if (isContiguous(name))
    return true;
  auto meta = graph.tensors.find(nameOf(name).str());
  if (meta == graph.tensors.end() || meta->second.strides.size() != meta->second.sizes.size())
    return std::nullopt;
  // The stride of a dimension of size 1 does not matter.
  SmallVector<std::pair<Size, Size>> from; // size, stride
  Sizes to;
  for (auto [size, stride] : llvm::zip(meta->second.sizes, meta->second.strides))
    if (!size.isOne())
      from.push_back({size, stride});
  for (const Size &size : sizes)
    if (!size.isOne())
      to.push_back(size);
  auto isSame = [](const auto &dim, const Size &size) { return dim.first == size; };
  // From the last dimension to the first, collect runs of dimensions without gaps between them. torch needs no copy if
  // no dimension of the result contains elements of two runs.
  while (!llvm::equal(from, to, isSame)) {
    std::optional<int64_t> run = 1, step;
    do {
      if (from.empty())
        return std::nullopt;
      auto [size, stride] = from.pop_back_val();
      std::optional<int64_t> number = size.constant(), distance = stride.constant();
      if (!number || *number < 1 || !distance)
        return std::nullopt;
      step = step ? step : distance;
      run = llvm::checkedMul(*run, *number);
      if (!run)
        return std::nullopt;
    } while (!from.empty() && from.back().second.constant() &&
             from.back().second.constant() == llvm::checkedMul(*run, *step));
    bool endsHere = from.empty() || from.back().second.constant();
    while (*run > 1) {
      std::optional<int64_t> size = to.empty() ? std::nullopt : to.back().constant();
      if (!to.empty() && (!size || *size < 1))
        return std::nullopt;
      if (!size || *run % *size != 0)
        return endsHere ? std::optional(false) : std::nullopt;
      *run /= *size;
      to.pop_back();
    }
  }
  return true;
}

std::optional<bool> Call::keepsStrides(StringRef name) {
  auto meta = graph.tensors.find(nameOf(name).str());
  const std::vector<Size> &strides = expected(numSet).strides;
  if (meta == graph.tensors.end() || meta->second.strides.size() != meta->second.sizes.size() ||
      strides.size() != meta->second.sizes.size())
    return std::nullopt;
  return meta->second.strides == strides;
}

std::optional<Tensor> Call::storageOf(StringRef name) {
  std::string tensor = nameOf(name).str();
  DType dtype = lookup(tensor).dtype;
  while (!failed()) {
    auto meta = graph.tensors.find(tensor);
    if (meta == graph.tensors.end() || meta->second.dtype != dtype)
      return std::nullopt;
    if (meta->second.storageOffset == Size(0) && ::isContiguous(meta->second))
      return lookup(tensor);
    View *view = values.viewOf(tensor);
    if (!view || view->mayCopy)
      return std::nullopt;
    tensor = view->base;
  }
  return std::nullopt;
}

Size Call::offsetOf(StringRef name) {
  auto meta = graph.tensors.find(nameOf(name).str());
  return meta == graph.tensors.end() ? Size(0) : meta->second.storageOffset;
}

LogicalResult Call::finish() {
  for (auto [input, read] : llvm::zip(node.inputs, isRead))
    if (!read && !llvm::is_contained(kWithoutMeaning, input.name) && input.value.kind != Kind::None)
      return error() << "expected no argument '" << input.name << "' of '" << node.target
                     << "', got '" << input.value.spelling << "'";
  for (const Argument &output : node.outputs)
    for (StringRef name : output.names) {
      auto meta = graph.tensors.find(name.str());
      bool isComplex = meta != graph.tensors.end() && meta->second.isComplex;
      if (isComplex != values.imaginary.contains(name))
        return error() << "expected '" << name << "' to be " << (isComplex ? "real" : "complex")
                       << ", got " << (isComplex ? "complex" : "real");
    }
  if (numSet != numResults())
    return error() << "expected " << numSet << " results of '" << node.target << "', got "
                   << numResults();
  return success();
}
