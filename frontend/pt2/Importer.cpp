//===- Importer.cpp - a .pt2 file -> a module ------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// torch.export.save writes a graph of aten ops on named values, with the size of every value as an
// expression over symbols:
//   linear[s0, s1, 48] = aten.linear.default(x[s0, s1, 16], p_qkv_weight[48, 16])
// becomes a function of the user's inputs, then the weights, in linalg on tensors:
//   func.func @forward(%x: tensor<?x?x16xf32> {attn.name = "x", attn.dims = ["x.0", "x.1", ""]},
//                      %w: tensor<48x16xf32> {attn.name = "qkv.weight", attn.weight}) -> (...) {
//     %0 = linalg.contract ... ins(%x, %w) ...
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "frontend/FirstError.h"
#include "frontend/Frontend.h"
#include "frontend/pt2/Archive.h"
#include "frontend/pt2/AtenOps.h"
#include "frontend/pt2/Guards.h"
#include "frontend/pt2/Weights.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
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
  StringRef value; // in the graph
  StringRef name;  // as users know it
  bool isWeight;
  const TensorMeta *meta;
};

class Importer {
public:
  Importer(Program program, Weights &weights, MLIRContext &context)
      : program(std::move(program)), weights(weights), context(context),
        b(UnknownLoc::get(&context), &context) {}

  llvm::Expected<Model> run();

private:
  llvm::Error readSignature();
  llvm::Error nameSymbols();
  llvm::Error checkGuards();
  void createFunction();
  LogicalResult checkOps();
  void findUnknownOps(const Graph &graph, SmallVectorImpl<const Node *> &unknown);
  llvm::Error renameSizes(Graph &graph, const std::map<std::string, std::string> &names);
  LogicalResult importNodes(const Graph &graph, Values &values);
  LogicalResult importSubgraph(const Graph &graph, const Node &node, Values &values);
  llvm::Error createReturn();
  llvm::Error setSymbolRanges();
  FailureOr<ArrayAttr> dimsAttr(ArrayRef<Size> sizes);

  Program program;
  Weights &weights;
  MLIRContext &context;
  TensorBuilder b;
  SmallVector<FunctionArgument> arguments; // the user's, then weights
  std::vector<std::string> symbols;        // in the order of the arguments that carry them
  Values values;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};
} // namespace

//===----------------------------------------------------------------------===//
// Signature
//===----------------------------------------------------------------------===//

llvm::Error Importer::readSignature() {
  SmallVector<FunctionArgument> ofUser, ofModule;
  llvm::StringSet<> names;
  for (const InputSpec &spec : program.inputs) {
    bool isWeight = llvm::is_contained({"parameter", "buffer", "tensor_constant"}, spec.kind);
    if (!isWeight && spec.kind != "user_input")
      return invalid(
          "expected inputs that are tensors, parameters, buffers or constants, got '{0}'",
          spec.kind);
    if (spec.value.kind != Argument::Kind::Tensor)
      return invalid("expected inputs that are tensors, got '{0}'", spec.value.spelling);
    StringRef value = spec.value.names.front(), name = isWeight ? StringRef(spec.target) : value;
    auto meta = program.tensors.find(value.str());
    if (meta == program.tensors.end())
      return invalid("expected the type of input '{0}'", value);
    if (!names.insert(name).second)
      return invalid("expected one argument named '{0}', got another", name);
    (isWeight ? ofModule : ofUser).push_back({value, name, isWeight, &meta->second});
  }
  arguments = ofUser;
  arguments.append(ofModule);
  for (const OutputSpec &spec : program.outputs)
    if (spec.kind != "user_output" || spec.value.kind != Argument::Kind::Tensor)
      return invalid("expected results that are tensors, got '{0}'",
                     spec.kind == "user_output" ? spec.value.spelling : spec.kind);
  if (program.outputs.empty())
    return invalid("expected a result");
  return llvm::Error::success();
}

/// Names each symbol after the first argument and axis that carry it, everywhere.
llvm::Error Importer::nameSymbols() {
  std::map<std::string, std::string> names;
  std::map<std::string, SymbolRange> ranges;
  for (const FunctionArgument &argument : arguments) {
    for (auto [axis, size] : llvm::enumerate(argument.meta->sizes)) {
      if (size.constant())
        continue;
      if (!size.symbol() || argument.isWeight)
        return invalid("expected each size of '{0}' to be a number{1}, got {2}", argument.name,
                       argument.isWeight ? "" : " or a symbol", size.str());
      std::string symbol = size.symbol()->str();
      auto [name, isNew] =
          names.try_emplace(symbol, llvm::formatv("{0}.{1}", argument.name, axis).str());
      if (!isNew)
        continue;
      symbols.push_back(name->second);
      if (auto range = program.ranges.find(symbol); range != program.ranges.end())
        ranges.try_emplace(name->second, range->second);
    }
  }
  program.ranges = std::move(ranges);
  return renameSizes(program, names);
}

/// Gives every symbol of the graph, and of the graphs in it, the name of a dimension.
llvm::Error Importer::renameSizes(Graph &graph, const std::map<std::string, std::string> &names) {
  auto rename = [&](StringRef value, Size &size) -> llvm::Error {
    std::optional<Size> renamed =
        size.rename([&](const std::string &symbol) -> std::optional<std::string> {
          auto found = names.find(symbol);
          return found == names.end() ? std::nullopt : std::optional(found->second);
        });
    // What no argument carries has no value at a call.
    if (!renamed)
      return invalid("expected sizes that follow from those of the arguments, got {0} of '{1}'",
                     size.str(), value);
    size = *renamed;
    return llvm::Error::success();
  };
  for (auto &[name, meta] : graph.tensors) {
    for (Size &size : meta.sizes)
      if (llvm::Error error = rename(name, size))
        return error;
    // Strides that depend on other symbols are dropped: they only say whether a reshape is a view.
    for (Size &stride : meta.strides)
      if (llvm::Error error = rename(name, stride)) {
        llvm::consumeError(std::move(error));
        meta.strides.clear();
        break;
      }
  }
  for (auto &[name, size] : graph.symInts)
    if (llvm::Error error = rename(name, size))
      return error;
  for (Node &node : graph.nodes)
    for (NamedArgument &input : node.inputs)
      if (input.value.graph)
        if (llvm::Error error = renameSizes(*input.value.graph, names))
          return error;
  return llvm::Error::success();
}

llvm::Error Importer::checkGuards() {
  std::map<std::string, TensorMeta> metas;
  for (const FunctionArgument &argument : arguments)
    if (!argument.isWeight)
      metas.try_emplace(argument.name.str(), *argument.meta);
  for (const std::string &guard : program.guards)
    if (!isImplied(guard, metas, program.ranges))
      return invalid(
          "expected a graph that holds for all sizes in its ranges, got the condition '{0}'",
          guard);
  return llvm::Error::success();
}

/// attn.dims of a tensor: null where it is static, failure where a size is neither a number nor one
/// symbol.
FailureOr<ArrayAttr> Importer::dimsAttr(ArrayRef<Size> sizes) {
  if (llvm::all_of(sizes, [](const Size &size) { return size.constant().has_value(); }))
    return ArrayAttr();
  SmallVector<StringRef> dims;
  for (const Size &size : sizes) {
    if (!size.constant() && !size.symbol())
      return failure();
    dims.push_back(size.constant() ? StringRef() : *size.symbol());
  }
  return b.getStrArrayAttr(dims);
}

//===----------------------------------------------------------------------===//
// Function
//===----------------------------------------------------------------------===//

void Importer::createFunction() {
  module = ModuleOp::create(b.getLoc());
  (*module)->setAttr(AttnDialect::kVersionAttr, b.getI64IntegerAttr(AttnDialect::kVersion));
  SmallVector<Type> types;
  for (const FunctionArgument &argument : arguments)
    types.push_back(b.typeOf(argument.meta->sizes, argument.meta->dtype));
  b.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(b, "forward", b.getFunctionType(types, {}));
  Block *entry = function.addEntryBlock();
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    BlockArgument value = entry->getArgument(i);
    value.setLoc(NameLoc::get(b.getStringAttr(argument.name)));
    function.setArgAttr(i, AttnDialect::kNameAttr, b.getStringAttr(argument.name));
    // nameSymbols has seen to it that sizes are numbers or symbols.
    if (ArrayAttr dims = *dimsAttr(argument.meta->sizes))
      function.setArgAttr(i, AttnDialect::kDimsAttr, dims);
    if (argument.isWeight)
      function.setArgAttr(i, AttnDialect::kWeightAttr, b.getUnitAttr());
    if (argument.meta->dtype == DType::U8)
      function.setArgAttr(i, AttnDialect::kUnsignedAttr, b.getUnitAttr());
    for (auto [axis, size] : llvm::enumerate(argument.meta->sizes))
      if (std::optional<StringRef> symbol = size.symbol())
        b.bindSymbol(*symbol, value, axis);
    values.arguments.insert(argument.value);
    values.tensors.try_emplace(argument.value,
                               Tensor{value, argument.meta->dtype, argument.meta->sizes});
  }
  b.setInsertionPointToEnd(entry);
}

/// The innermost line of the user's own code, as in
///   File "generate.py", line 198, in forward
///     qkv = self.qkv_proj(x)
///   File "torch/nn/modules/linear.py", line 134, in forward
static Location locationOf(const Node &node, MLIRContext &context) {
  Location line = UnknownLoc::get(&context);
  SmallVector<StringRef> lines;
  StringRef(node.stackTrace).split(lines, '\n');
  for (StringRef text : lines) {
    text = text.trim();
    if (!text.consume_front("File \""))
      continue;
    auto [file, rest] = text.split("\", line ");
    unsigned number;
    if (rest.consumeInteger(10, number) || file.starts_with("torch/") || file.contains("/torch/"))
      continue;
    line = FileLineColLoc::get(&context, file, number, /*column=*/0);
  }
  return NameLoc::get(StringAttr::get(&context, node.name), line);
}

/// Ops that only say how gradients are recorded, or in which type autocast computes, round a graph of others.
static bool isWrapper(const Node &node) {
  return node.target == "torch.ops.higher_order.wrap_with_set_grad_enabled" ||
         node.target == "torch.ops.higher_order.wrap_with_autocast";
}

void Importer::findUnknownOps(const Graph &graph, SmallVectorImpl<const Node *> &unknown) {
  for (const Node &node : graph.nodes) {
    if (!isWrapper(node) && !AtenOps::all().find(node.target))
      unknown.push_back(&node);
    for (const NamedArgument &input : node.inputs)
      if (isWrapper(node) && input.value.graph)
        findUnknownOps(*input.value.graph, unknown);
  }
}

/// Names all ops that attn does not know in one message, at the line of the first.
LogicalResult Importer::checkOps() {
  SmallVector<const Node *> unknown;
  findUnknownOps(program, unknown);
  if (unknown.empty())
    return success();
  SmallVector<StringRef> names;
  for (const Node *node : unknown) {
    StringRef name = node->target;
    name.consume_front("torch.ops.");
    if (!llvm::is_contained(names, name))
      names.push_back(name);
  }
  InFlightDiagnostic error = emitError(locationOf(*unknown.front(), context))
                             << "expected ops that attn knows (docs/ops.md), got '" << names.front()
                             << "'";
  for (auto [i, name] : llvm::enumerate(ArrayRef(names).drop_front()))
    error << (i == 0 ? "; others of the graph that it does not know: '" : ", '") << name << "'";
  return error;
}

/// The graph of a wrapper in place of its node.
LogicalResult Importer::importSubgraph(const Graph &graph, const Node &node, Values &values) {
  auto refuse = [&](const Twine &what) -> LogicalResult {
    return emitError(b.getLoc()) << "expected '" << node.target << "' with " << what.str();
  };
  const Graph *inner = nullptr;
  SmallVector<const Argument *> operands;
  bool isAutocast = StringRef(node.target).ends_with("autocast"), isEnabled = false;
  for (const NamedArgument &input : node.inputs) {
    if (inner)
      operands.push_back(&input.value);
    else if (input.value.graph)
      inner = input.value.graph.get();
    else if (input.value.kind == Argument::Kind::Bool && isAutocast && operands.empty())
      isEnabled |= input.value.flag && input.name != "cache_enabled";
  }
  if (!inner || inner->arguments.size() != operands.size())
    return refuse("a graph and its arguments");
  if (isEnabled)
    return refuse("autocast disabled");
  Values own;
  for (auto [argument, operand] : llvm::zip_equal(inner->arguments, operands)) {
    using Kind = Argument::Kind;
    if (argument.kind == Kind::Tensor && operand->kind == Kind::Tensor) {
      auto found = values.tensors.find(operand->names.front());
      if (found == values.tensors.end())
        return refuse("arguments that are computed before");
      own.tensors[argument.names.front()] = found->second;
    } else if (argument.kind == Kind::Int && operand->kind == Kind::Int &&
               !argument.integers.front().name.empty()) {
      const SymInt &integer = operand->integers.front();
      own.integers[argument.integers.front().name] =
          integer.name.empty() ? integer.value : values.integers.lookup(integer.name);
    } else {
      return refuse("arguments that are tensors and sizes");
    }
  }
  if (failed(importNodes(*inner, own)))
    return failure();
  for (const Argument &argument : inner->arguments)
    if (argument.kind == Argument::Kind::Tensor)
      for (const auto &[part, view] : own.views)
        if (!view.node && view.base == argument.names.front())
          return refuse("a graph that leaves its arguments as they are");
  for (const auto &[symbol, least] : own.minimum)
    values.minimum[symbol] = std::max(values.minimum.lookup(symbol), least);
  for (const auto &[symbol, greatest] : own.maximum) {
    auto [known, isNew] = values.maximum.try_emplace(symbol, greatest);
    known->second = std::min(known->second, greatest);
  }
  SmallVector<StringRef> names, results;
  for (const Argument &output : node.outputs)
    llvm::append_range(names, output.names);
  for (const Argument &result : inner->results)
    llvm::append_range(results, result.names);
  if (names.size() != results.size())
    return refuse("as many results as its graph");
  for (auto [name, result] : llvm::zip_equal(names, results)) {
    auto found = own.tensors.find(result);
    if (found == own.tensors.end() || !values.tensors.try_emplace(name, found->second).second)
      return refuse("results that its graph computes");
  }
  return success();
}

LogicalResult Importer::importNodes(const Graph &graph, Values &values) {
  for (const Node &node : graph.nodes) {
    b.setLoc(locationOf(node, context));
    if (isWrapper(node)) {
      if (failed(importSubgraph(graph, node, values)))
        return failure();
      continue;
    }
    Call call(graph, node, b, values);
    if (failed(AtenOps::all().find(node.target)->import(call)) || call.failed() ||
        failed(call.finish()))
      return failure();
  }
  return success();
}

llvm::Error Importer::createReturn() {
  b.setLoc(UnknownLoc::get(&context));
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> attrs;
  for (auto [i, spec] : llvm::enumerate(program.outputs)) {
    auto found = values.tensors.find(spec.value.names.front());
    if (found == values.tensors.end())
      return invalid("expected result '{0}' to be computed", spec.value.names.front());
    std::string name = program.outputs.size() == 1 ? "out" : llvm::formatv("out.{0}", i).str();
    FailureOr<ArrayAttr> dims = dimsAttr(found->second.sizes);
    if (failed(dims))
      return invalid(
          "expected each size of a result to be a number or a size of an argument, got {0}",
          str(found->second.sizes));
    NamedAttrList list;
    list.set(AttnDialect::kNameAttr, b.getStringAttr(name));
    if (*dims)
      list.set(AttnDialect::kDimsAttr, *dims);
    if (found->second.dtype == DType::U8)
      list.set(AttnDialect::kUnsignedAttr, b.getUnitAttr());
    attrs.push_back(list.getDictionary(&context));
    results.push_back(found->second.value);
  }
  func::ReturnOp::create(b, results);
  function.setType(b.getFunctionType(function.getArgumentTypes(), ValueRange(results).getTypes()));
  function.setAllResultAttrs(attrs);
  return llvm::Error::success();
}

llvm::Error Importer::setSymbolRanges() {
  SmallVector<Attribute> attrs;
  for (const std::string &symbol : symbols) {
    SymbolRange range = program.ranges[symbol];
    // torch assumes at least 2 of every dynamic dimension: an artefact of how it traces, not a rule
    // of the graph.
    int64_t min = range.min.value_or(0) <= 2 ? 0 : *range.min;
    min = std::max(min, values.minimum.lookup(symbol));
    int64_t max = std::min(range.max.value_or(kMaxDim), kMaxDim);
    if (auto greatest = values.maximum.find(symbol); greatest != values.maximum.end())
      max = std::min(max, greatest->second);
    if (min > max)
      return invalid("expected a range of '{0}' that holds a size, got {1} to {2}", symbol, min,
                     max);
    attrs.push_back(SymbolAttr::get(&context, symbol, min, max));
  }
  if (!attrs.empty())
    function->setAttr(AttnDialect::kSymbolsAttr, b.getArrayAttr(attrs));
  return llvm::Error::success();
}

llvm::Expected<Model> Importer::run() {
  if (llvm::Error error = readSignature())
    return error;
  if (llvm::Error error = nameSymbols())
    return error;
  if (llvm::Error error = checkGuards())
    return error;
  createFunction();

  FirstError reported(context, /*path=*/"");
  if (failed(checkOps()) || failed(importNodes(program, values)))
    return reported.take();
  if (llvm::Error error = createReturn())
    return error;
  if (llvm::Error error = setSymbolRanges())
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

llvm::Expected<Model> attn::importPt2(StringRef path, MLIRContext &context) {
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
