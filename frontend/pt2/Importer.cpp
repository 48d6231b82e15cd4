//===- Importer.cpp - import a .pt2 file as a module -----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// torch.export.save writes a graph of aten ops on named values, with the size of every value as an expression over
// symbols:
//   linear[s0, s1, 48] = aten.linear.default(x[s0, s1, 16], p_qkv_weight[48, 16])
// The graph becomes a function with linalg ops on tensors. Its arguments are the user's inputs, then the weights:
//   func.func @forward(%x: tensor<?x?x16xf32> {attn.name = "x", attn.dims = ["x.0", "x.1", ""]},
//                      %w: tensor<48x16xf32> {attn.name = "qkv.weight", attn.weight}) -> (...) {
//     %0 = linalg.contract ... ins(%x, %w) ...
// A buffer or an input that the graph writes to becomes an in-out argument, with a result after the user's results:
//   func.func @forward(..., %cache: tensor<64x16xf32> {attn.name = "cache", attn.in_out = 1})
//       -> (..., tensor<64x16xf32> {attn.name = "cache"})
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "dialect/Formula.h"
#include "frontend/FirstError.h"
#include "frontend/Frontend.h"
#include "frontend/pt2/Archive.h"
#include "frontend/pt2/AtenOps.h"
#include "frontend/pt2/Bands.h"
#include "frontend/pt2/ElementAssertions.h"
#include "frontend/pt2/Guards.h"
#include "frontend/pt2/Tree.h"
#include "frontend/pt2/Weights.h"
#include "frontend/pt2/Wrappers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;
using namespace attn::pt2;

static constexpr StringLiteral kModelEntry = "models/model.json";

template <typename... Args> static llvm::Error invalid(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Args>(args)...));
}

namespace {
/// An argument of the function.
struct FunctionArgument {
  StringRef value;  // the name in the graph
  std::string name; // the name that users see
  bool isWeight;
  bool isWritable; // an input of the user, or a buffer
  const TensorMeta *meta;
};

/// A buffer or constant whose values are a band (see Bands.h), and the tensor of these values, which a formula
/// computes.
struct KnownBuffer {
  FunctionArgument buffer;
  Band band;
  Tensor tensor;
};

class Importer {
public:
  Importer(Program program, Weights &weights, MLIRContext &context)
      : program(std::move(program)), weights(weights), context(context),
        b(UnknownLoc::get(&context), &context) {}

  llvm::Expected<Model> run();

private:
  const FunctionArgument *findWritten(const OutputSpec &spec) const;
  llvm::Error readSignature();
  llvm::Error readSizes();
  std::optional<std::pair<int64_t, int64_t>> endsOfWeight(const FunctionArgument &argument);
  llvm::Error readBands();
  void bindDimensions(size_t i, BlockArgument value);
  void createFunction();
  LogicalResult checkOps();
  LogicalResult replaceSizes();
  LogicalResult importNodes();
  llvm::Expected<Tensor> resultOf(const Argument &argument);
  std::vector<std::string> namesOfResults();
  llvm::Error createReturn();
  void setBounds();
  llvm::Error setSymbols();
  StringRef symbolFor(const Size &size);
  ArrayAttr dimsAttr(ArrayRef<Size> sizes);

  Program program;
  Weights &weights;
  MLIRContext &context;
  TensorBuilder b;
  SmallVector<FunctionArgument> arguments; // the inputs of the user, then the weights
  SmallVector<KnownBuffer> bands;
  SizeRules rules;
  std::set<std::string> computed; // the sizes of results that are not dimensions of arguments
  Values values;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};
} // namespace

//===----------------------------------------------------------------------===//
// Signature
//===----------------------------------------------------------------------===//

/// Whether the value is None, or is a number, a boolean or a string in the file.
static bool isConstant(const Argument &value) {
  using Kind = Argument::Kind;
  bool isNamed = (value.kind == Kind::Int && !value.integers.front().name.empty()) ||
                 (value.kind == Kind::Float && !value.text.empty());
  return llvm::is_contained({Kind::None, Kind::Int, Kind::Float, Kind::Bool, Kind::String},
                            value.kind) &&
         !isNamed;
}

static bool isNumber(const Argument &value) {
  using Kind = Argument::Kind;
  return llvm::is_contained({Kind::Int, Kind::Float, Kind::Bool}, value.kind);
}

/// The input or the buffer that an output of the graph is written to, or null.
const FunctionArgument *Importer::findWritten(const OutputSpec &spec) const {
  auto *argument = llvm::find_if(arguments, [&](const FunctionArgument &argument) {
    return argument.isWritable &&
           (argument.isWeight
                ? spec.kind == "buffer_mutation" && argument.name == spec.target
                : spec.kind == "user_input_mutation" && argument.value == spec.target);
  });
  return argument == arguments.end() ? nullptr : argument;
}

llvm::Error Importer::readSignature() {
  SmallVector<FunctionArgument> ofUser, ofModule;
  for (const InputSpec &spec : program.inputs) {
    bool isWeight = llvm::is_contained({"parameter", "buffer", "tensor_constant"}, spec.kind);
    bool isOfUser = spec.kind == "user_input" || spec.kind == "constant_input";
    if (!isWeight && !isOfUser)
      return invalid(
          "expected inputs that are tensors, parameters, buffers or constants, got '{0}'",
          spec.kind);
    // A constant input is not an argument: the graph contains the value that the input had when torch traced the model.
    if (isOfUser && isConstant(spec.value))
      continue;
    if (spec.value.kind == Argument::Kind::Int && !spec.value.integers.empty())
      return invalid("expected inputs that are tensors or known when the model is exported, got the "
                     "number '{0}': pass a tensor such as torch.tensor({0}), or export without "
                     "dynamic_shapes for '{0}'",
                     spec.value.integers.front().name);
    if (!spec.isTensor())
      return invalid("expected inputs that are tensors or known when the model is exported, got "
                     "'{0}'",
                     spec.value.spelling);
    StringRef value = spec.value.names.front(), name = isWeight ? StringRef(spec.target) : value;
    auto meta = program.tensors.find(value.str());
    if (meta == program.tensors.end())
      return invalid("expected the type of input '{0}'", value);
    bool isWritable = !isWeight || spec.kind == "buffer";
    (isWeight ? ofModule : ofUser)
        .push_back({value, name.str(), isWeight, isWritable, &meta->second});
  }
  // If an input has the name of a weight, rename the input: files store weights by name, so a weight must keep its
  // name.
  llvm::StringSet<> names;
  for (const FunctionArgument &argument : ofModule)
    if (!names.insert(argument.name).second)
      return invalid("expected one weight named '{0}', got two", argument.name);
  for (FunctionArgument &argument : ofUser) {
    if (names.contains(argument.name))
      argument.name += ".input";
    if (!names.insert(argument.name).second)
      return invalid("expected one argument named '{0}', got two", argument.name);
  }
  arguments = ofUser;
  arguments.append(ofModule);
  for (const OutputSpec &spec : program.outputs) {
    if (!spec.isTensor() && (!spec.target.empty() || !isNumber(spec.value)) &&
        (spec.kind != "user_output" || !isConstant(spec.value)))
      return invalid("expected results that are tensors, numbers or constants, got '{0}'",
                     spec.kind == "user_output" ? spec.value.spelling : spec.kind);
    if (!spec.target.empty() && !findWritten(spec))
      return invalid("expected '{0}', which the graph writes to, to be an input or a buffer",
                     spec.target);
  }
  return llvm::Error::success();
}

llvm::Error Importer::readSizes() {
  std::vector<Input> inputs;
  for (const FunctionArgument &argument : arguments) {
    if (argument.isWeight) {
      for (const Size &size : argument.meta->sizes)
        if (!size.constant())
          return invalid("expected each size of '{0}' to be a number, got {1}", argument.name,
                         size.str());
      continue;
    }
    inputs.push_back({argument.name, argument.meta->passedSizes()});
  }
  llvm::Expected<SizeRules> ruled = ruleSizes(program, inputs);
  if (!ruled)
    return ruled.takeError();
  rules = std::move(*ruled);
  values.conditions = rules.conditions;
  for (const Dimension &dimension : rules.dimensions)
    values.facts.addSymbol(dimension.name, {dimension.min, dimension.max});
  values.endsOfWeight = [&](unsigned i) { return endsOfWeight(arguments[i]); };
  return llvm::Error::success();
}

/// The least and the greatest element of an argument, if it is a weight that holds integers and that stays as it is.
std::optional<std::pair<int64_t, int64_t>>
Importer::endsOfWeight(const FunctionArgument &argument) {
  if (!argument.isWeight || llvm::any_of(program.outputs, [&](const OutputSpec &spec) {
        return findWritten(spec) == &argument;
      }))
    return std::nullopt;
  llvm::Expected<NamedTensor> loaded = weights.load(argument.name, *argument.meta, context);
  if (loaded)
    return endsOf(*loaded);
  llvm::consumeError(loaded.takeError()); // reported when all weights are loaded
  return std::nullopt;
}

/// Moves the buffers and constants that hold a band of a matrix, and the constants that hold one number, from
/// `arguments` to `bands`. Those to which the graph writes stay in `arguments`.
llvm::Error Importer::readBands() {
  llvm::StringSet<> written;
  for (const OutputSpec &spec : program.outputs)
    written.insert(spec.target);
  // The results of a node may be views of its first argument, so a write to a result counts as a write to this
  // argument, and to all values of which this argument may be a view.
  llvm::StringMap<StringRef> sources;
  llvm::StringSet<> changed;
  for (const Node &node : program.nodes) {
    if (node.inputs.empty() || node.inputs.front().value.kind != Argument::Kind::Tensor)
      continue;
    StringRef first = node.inputs.front().value.names.front();
    for (const Argument &output : node.outputs)
      for (const std::string &name : output.names)
        sources.try_emplace(name, first);
    if (worksInPlace(node.target))
      for (StringRef value = first; !value.empty(); value = sources.lookup(value))
        if (!changed.insert(value).second)
          break;
  }
  for (const InputSpec &spec : program.inputs) {
    if (!llvm::is_contained({"buffer", "tensor_constant"}, spec.kind) ||
        written.contains(spec.target) || changed.contains(spec.value.names.front()))
      continue;
    auto *argument = llvm::find_if(arguments, [&](const FunctionArgument &argument) {
      return argument.isWeight && argument.name == spec.target;
    });
    if (argument->meta->isComplex)
      continue;
    llvm::Expected<NamedTensor> loaded = weights.load(argument->name, *argument->meta, context);
    if (!loaded)
      return loaded.takeError();
    // A number in the code of the model, as in torch.tensor(0.5), is not a weight.
    std::optional<Band> band = spec.kind == "tensor_constant" ? findNumber(*loaded) : std::nullopt;
    if (!band)
      band = findBand(*loaded);
    if (!band)
      continue;
    bands.push_back({*argument, *band, {}});
    arguments.erase(argument);
  }
  return llvm::Error::success();
}

/// The name of the symbol for `size`, which is not constant. This is a dimension of an input that has this size or, if
/// there is none, a new symbol that is computed from the inputs.
StringRef Importer::symbolFor(const Size &size) {
  for (const Dimension &dimension : rules.dimensions)
    if (dimension.size == size || dimension.name == size.str())
      return dimension.name;
  return *computed.insert(size.str()).first;
}

/// The attribute attn.dims of a tensor of `sizes`; null if all sizes are constant.
ArrayAttr Importer::dimsAttr(ArrayRef<Size> sizes) {
  if (llvm::all_of(sizes, [](const Size &size) { return size.constant().has_value(); }))
    return ArrayAttr();
  SmallVector<StringRef> dims;
  for (const Size &size : sizes)
    dims.push_back(size.constant() ? StringRef() : symbolFor(size));
  return b.getStrArrayAttr(dims);
}

//===----------------------------------------------------------------------===//
// Function
//===----------------------------------------------------------------------===//

/// Names the dynamic dimensions of input `i`.
void Importer::bindDimensions(size_t i, BlockArgument value) {
  SmallVector<StringRef> dims;
  for (auto [axis, dimension] : llvm::enumerate(rules.axes[i])) {
    dims.push_back(dimension ? StringRef(rules.dimensions[*dimension].name) : "");
    if (dimension)
      b.bindSymbol(dims.back(), value, axis);
  }
  if (!llvm::all_of(dims, [](StringRef dim) { return dim.empty(); }))
    function.setArgAttr(i, AttnDialect::kDimsAttr, b.getStrArrayAttr(dims));
}

void Importer::createFunction() {
  module = ModuleOp::create(b.getLoc());
  (*module)->setAttr(AttnDialect::kVersionAttr, b.getI64IntegerAttr(AttnDialect::kVersion));
  SmallVector<Type> types;
  for (const FunctionArgument &argument : arguments)
    types.push_back(b.typeOf(argument.meta->passedSizes(), argument.meta->dtype));
  b.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(b, "forward", b.getFunctionType(types, {}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToEnd(entry);
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    BlockArgument value = entry->getArgument(i);
    value.setLoc(NameLoc::get(b.getStringAttr(argument.name)));
    function.setArgAttr(i, AttnDialect::kNameAttr, b.getStringAttr(argument.name));
    if (argument.isWeight)
      function.setArgAttr(i, AttnDialect::kWeightAttr, b.getUnitAttr());
    if (argument.meta->dtype == DType::U8)
      function.setArgAttr(i, AttnDialect::kUnsignedAttr, b.getUnitAttr());
    if (!argument.isWeight)
      bindDimensions(i, value);
    if (!argument.isWritable)
      values.constants.insert(argument.value);
    Tensor tensor{value, argument.meta->dtype, argument.meta->passedSizes()};
    if (argument.meta->isComplex) {
      int64_t last = tensor.rank() - 1;
      values.imaginary.try_emplace(argument.value, b.select(tensor, last, 1));
      tensor = b.select(tensor, last, 0);
    }
    values.tensors.try_emplace(argument.value, tensor);
  }
  for (KnownBuffer &known : bands) {
    b.setLoc(NameLoc::get(b.getStringAttr(known.buffer.name)));
    known.tensor = createBand(b, known.band, known.buffer.meta->sizes, known.buffer.meta->dtype);
    values.tensors.try_emplace(known.buffer.value, known.tensor);
  }
}

/// Replaces the sizes of the graph by sizes in terms of dimensions of the inputs.
LogicalResult Importer::replaceSizes() {
  auto replace = [&](Size &size) {
    std::optional<Size> replaced = size.substitute([&](StringRef symbol) -> std::optional<Size> {
      auto found = rules.symbols.find(symbol.str());
      return found == rules.symbols.end() ? std::nullopt : std::optional(found->second);
    });
    size = replaced ? values.facts.decided(*replaced) : size;
    return replaced.has_value();
  };
  // The runtime cannot compute a size that does not follow from the inputs.
  auto refuse = [&](Location line, StringRef value, const Size &size) {
    return emitError(line) << "expected sizes that follow from those of the inputs, got "
                           << size.str() << " of '" << value
                           << "': export again without sizes that depend on elements";
  };
  // The first op with such a size, in the order of the graph, is the one that computes it.
  for (const Node &node : program.nodes)
    for (const Argument &output : node.outputs)
      for (const std::string &name : output.names) {
        auto meta = program.tensors.find(name);
        if (meta == program.tensors.end())
          continue;
        for (Size size : meta->second.sizes)
          if (Size known = size; !replace(known)) {
            if (StringRef(node.target).contains("repeat_interleave"))
              return emitError(locationOf(node, &context))
                     << "expected 'output_size', because the size of the result would depend on "
                        "elements; pass output_size=... to repeat_interleave";
            StringRef op = node.target;
            op.consume_front("torch.ops.");
            return refuse(locationOf(node, &context), op, size);
          }
      }
  for (auto &[name, meta] : program.tensors) {
    for (Size &size : meta.sizes)
      if (!replace(size))
        return refuse(UnknownLoc::get(&context), name, size);
    // Drop strides that do not follow from the inputs: the importer uses strides only to tell views from copies.
    if (!llvm::all_of(meta.strides, replace))
      meta.strides.clear();
  }
  for (auto &symInt : program.symInts) {
    StringRef name = symInt.first;
    if (replace(symInt.second))
      continue;
    Location line = UnknownLoc::get(&context);
    for (const Node &node : program.nodes)
      for (const Argument &output : node.outputs)
        if (llvm::any_of(output.integers,
                         [&](const SymInt &integer) { return integer.name == name; }))
          line = locationOf(node, &context);
    return refuse(line, name, symInt.second);
  }
  return success();
}

/// Reports all ops that attn does not import in one message, at the line of the first one.
LogicalResult Importer::checkOps() {
  const Node *first = nullptr;
  SmallVector<StringRef> names;
  for (const Node &node : program.nodes) {
    if (AtenOps::all().find(node.target))
      continue;
    first = first ? first : &node;
    StringRef name = node.target;
    name.consume_front("torch.ops.");
    if (!llvm::is_contained(names, name))
      names.push_back(name);
  }
  if (!first)
    return success();
  InFlightDiagnostic error = emitError(locationOf(*first, &context))
                             << "expected ops that attn imports (docs/ops.md), got '"
                             << names.front() << "'";
  for (auto [i, name] : llvm::enumerate(ArrayRef(names).drop_front()))
    error << (i == 0 ? "; other ops that attn does not import: '" : ", '") << name << "'";
  return error;
}

LogicalResult Importer::importNodes() {
  for (const Node &node : program.nodes) {
    b.setLoc(locationOf(node, &context));
    Call call(program, node, b, values);
    const AtenOp &op = *AtenOps::all().find(node.target);
    const auto &import = call.isComplex() ? op.importComplex : op.import;
    if (!import || (call.isComplex() && worksInPlace(node.target)))
      return call.error() << "expected real numbers in '" << node.target << "', got complex ones";
    bool isImported = succeeded(import(call));
    // Only the arithmetic on sizes fails without an error message.
    if (!isImported && !call.failed())
      return call.error() << "expected sizes that fit into 64 bits in '" << node.target << "'";
    if (!isImported || call.failed() || failed(call.finish()))
      return failure();
  }
  for (const OutputSpec &output : program.outputs)
    for (StringRef name : output.value.names)
      if (failed(refresh(program, name, b, values)))
        return failure();
  return success();
}

/// A result as a tensor; a number becomes a tensor of rank 0.
llvm::Expected<Tensor> Importer::resultOf(const Argument &argument) {
  using Kind = Argument::Kind;
  if (argument.kind == Kind::Tensor) {
    StringRef value = argument.names.front();
    auto found = values.tensors.find(value);
    if (found == values.tensors.end())
      return invalid("expected result '{0}' to be computed", value);
    auto imaginary = values.imaginary.find(value);
    return imaginary == values.imaginary.end() ? found->second
                                               : pairOf(b, found->second, imaginary->second);
  }
  auto numberOf = [&](Value number, DType dtype) {
    return Tensor{tensor::FromElementsOp::create(b, b.typeOf({}, dtype), number), dtype, {}};
  };
  if (argument.kind == Kind::Bool)
    return numberOf(b.scalar(DType::Bool, int64_t(argument.flag)), DType::Bool);
  if (argument.kind == Kind::Float) {
    Value number = argument.text.empty() ? b.scalar(DType::F64, argument.number)
                                         : values.floats.lookup(argument.text);
    if (!number)
      return invalid("expected result '{0}' to be computed", argument.text);
    return numberOf(number, DType::F64);
  }
  const SymInt &integer = argument.integers.front();
  auto found = values.integers.find(integer.name);
  if (!integer.name.empty() && found == values.integers.end())
    return invalid("expected result '{0}' to be computed", integer.name);
  return b.number(integer.name.empty() ? integer.value : found->second);
}

/// The names of the results of the user's module, including results that are None: "out", or "out.logits" and
/// "out.past.0" if it returns {"logits": ..., "past": (..., ...)}. If the file does not say how results are nested:
/// "out.0", "out.1" and so on.
std::vector<std::string> Importer::namesOfResults() {
  size_t count =
      llvm::count_if(program.outputs, [](const OutputSpec &spec) { return spec.target.empty(); });
  std::vector<TreePath> leaves = leavesOf(program.outputTree);
  std::vector<std::string> names;
  llvm::StringSet<> distinct;
  for (const TreePath &leaf : leaves) {
    std::string name = "out";
    for (const TreeKey &key : leaf)
      name += "." + key.text;
    distinct.insert(name);
    names.push_back(std::move(name));
  }
  // Two leaves can have one name: the keys 1 and "1" of a dictionary give the same name.
  if (names.size() == count && distinct.size() == count)
    return names;
  names.clear();
  for (size_t i = 0; i < count; ++i)
    names.push_back(count == 1 ? "out" : "out." + std::to_string(i));
  return names;
}

llvm::Error Importer::createReturn() {
  b.setLoc(UnknownLoc::get(&context));
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> attrs;
  // Outputs of the graph that are written to arguments. Ops that work in place have already changed `values`.
  llvm::StringMap<StringRef> written; // key: the value of the argument
  std::vector<std::string> names = namesOfResults();
  size_t ofUser = 0;
  for (const OutputSpec &spec : program.outputs) {
    if (!spec.target.empty()) {
      written[findWritten(spec)->value] = spec.value.names.front();
      continue;
    }
    StringRef name = names[ofUser++];
    // None and strings are not results of the function.
    if (!spec.isTensor() && !isNumber(spec.value))
      continue;
    llvm::Expected<Tensor> result = resultOf(spec.value);
    if (!result)
      return result.takeError();
    Tensor passed = *result;
    NamedAttrList list;
    list.set(AttnDialect::kNameAttr, b.getStringAttr(name));
    if (ArrayAttr dims = dimsAttr(passed.sizes))
      list.set(AttnDialect::kDimsAttr, dims);
    if (passed.dtype == DType::U8)
      list.set(AttnDialect::kUnsignedAttr, b.getUnitAttr());
    attrs.push_back(list.getDictionary(&context));
    results.push_back(passed.value);
  }
  for (const KnownBuffer &known : bands)
    if (values.tensors[known.buffer.value].value != known.tensor.value)
      return invalid(
          "expected '{0}', whose values are compiled in, to stay as it is, got a write to it",
          known.buffer.name);
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (argument.meta->isComplex) {
      if (written.contains(argument.value))
        return invalid("expected '{0}', of complex numbers, to stay as it is, got a write to it",
                       argument.name);
      continue;
    }
    auto change = written.find(argument.value);
    const Tensor &left = values.tensors[change == written.end() ? argument.value : change->second];
    if (left.value == function.getArgument(i))
      continue;
    if (left.dtype != argument.meta->dtype || left.sizes != argument.meta->sizes)
      return invalid("expected {0}{1} to be written to '{2}', got {3}{4}",
                     str(argument.meta->dtype), str(argument.meta->sizes), argument.name,
                     str(left.dtype), str(left.sizes));
    argument.isWeight = false;
    function.removeArgAttr(i, AttnDialect::kWeightAttr);
    function.setArgAttr(i, AttnDialect::kInOutAttr, b.getI64IntegerAttr(results.size()));
    attrs.push_back(b.getDictionaryAttr(
        b.getNamedAttr(AttnDialect::kNameAttr, b.getStringAttr(argument.name))));
    results.push_back(left.value);
  }
  if (results.empty())
    return invalid("expected a result");
  func::ReturnOp::create(b, results);
  function.setType(b.getFunctionType(function.getArgumentTypes(), ValueRange(results).getTypes()));
  function.setAllResultAttrs(attrs);
  return llvm::Error::success();
}

/// Sets the bounds of the elements of arguments.
void Importer::setBounds() {
  auto attrOf = [&](const Size &size) -> Attribute {
    if (std::optional<int64_t> number = size.constant())
      return b.getI64IntegerAttr(*number);
    return b.getStringAttr(symbolFor(size));
  };
  for (const auto &[number, bounds] : values.bounds) {
    function.setArgAttr(number, AttnDialect::kBoundAttr, attrOf(bounds.bound));
    if (bounds.below != Size(0))
      function.setArgAttr(number, AttnDialect::kBelowAttr, attrOf(bounds.below));
  }
}

/// Sets the symbols: the sizes of the inputs, then the sizes of results and the conditions, which are computed from the
/// sizes of the inputs.
llvm::Error Importer::setSymbols() {
  for (const auto &[size, least] : b.assumptions())
    if (!values.requireAtMost(Size(least), size))
      return invalid("expected a size of at least {0}, got {1}", least, size.str());
  SmallVector<Attribute> attrs;
  auto add = [&](StringRef name, int64_t min, int64_t max) {
    attrs.push_back(SymbolAttr::get(&context, name, min, max));
  };
  for (const Dimension &dimension : rules.dimensions) {
    SizeRange range = values.facts.rangeOf(StringRef(dimension.name));
    add(dimension.name, range.min, range.max);
  }
  for (StringRef size : computed)
    add(size, 0, std::numeric_limits<int64_t>::max());
  for (StringRef condition : values.conditions)
    add(condition, 1, 1);
  for (Attribute attr : ArrayRef(attrs).drop_front(rules.dimensions.size()))
    if (StringRef name = cast<SymbolAttr>(attr).getName(); !Formula::parse(name))
      return invalid("expected sizes that attn can compute, got '{0}'", name);
  if (!attrs.empty())
    function->setAttr(AttnDialect::kSymbolsAttr, b.getArrayAttr(attrs));
  return llvm::Error::success();
}

llvm::Expected<Model> Importer::run() {
  FirstError reported(context, /*path=*/"");
  if (failed(inlineWrappers(program, context)))
    return reported.take();
  dropElementAssertions(program, context);
  if (llvm::Error error = readSignature())
    return error;
  if (llvm::Error error = readSizes())
    return error;
  if (llvm::Error error = readBands())
    return error;
  if (failed(replaceSizes()))
    return reported.take();
  createFunction();
  if (failed(checkOps()) || failed(importNodes()))
    return reported.take();
  if (llvm::Error error = createReturn())
    return error;
  setBounds();
  if (llvm::Error error = setSymbols())
    return error;
  if (failed(module->verify()))
    return reported.take();

  Model model;
  for (const FunctionArgument &argument : arguments) {
    if (!argument.isWeight)
      continue;
    llvm::Expected<NamedTensor> weight = weights.load(argument.name, *argument.meta, context);
    if (!weight)
      return weight.takeError();
    model.weights.push_back(std::move(*weight));
  }
  model.module = std::move(module);
  return model;
}

llvm::Expected<Model> attn::importPt2(StringRef path, MLIRContext &context,
                                      ArrayRef<std::string> names) {
  if (!names.empty())
    return invalid("expected no names of arguments, which a .pt2 file has, got '{0}'",
                   llvm::join(names, ","));
  llvm::Expected<Archive> archive = Archive::open(path);
  if (!archive)
    return archive.takeError();
  if (archive->contains("byteorder")) {
    auto order = archive->read("byteorder");
    if (!order)
      return order.takeError();
    if ((*order)->getBuffer() != "little")
      return invalid("expected little-endian data, got byte order '{0}'", (*order)->getBuffer());
  }
  auto text = archive->read(kModelEntry);
  if (!text)
    return text.takeError();
  llvm::Expected<Program> program = parseProgram((*text)->getBuffer(), kModelEntry);
  if (!program)
    return program.takeError();
  llvm::Expected<Weights> weights = Weights::open(*archive);
  if (!weights)
    return weights.takeError();
  return Importer(std::move(*program), *weights, context).run();
}
