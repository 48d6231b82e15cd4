//===- Importer.cpp - import MLIR text or bytecode -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "frontend/FirstError.h"
#include "frontend/Frontend.h"
#include "frontend/mlir/Calls.h"
#include "frontend/mlir/Divisions.h"
#include "frontend/mlir/Indices.h"
#include "frontend/mlir/LinalgForm.h"
#include "frontend/mlir/Sizes.h"
#include "frontend/mlir/StateSizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace attn;

/// Names of ops in error messages are no longer than this.
static constexpr size_t kLongestName = 200;

/// The error of the parser, `parsed`, or a better one: if the parser stopped at an op, a type or an attribute of a dialect
/// that attn does not know, says which. `at` is the place where the parser stopped.
static llvm::Error parserError(llvm::Error parsed, StringRef path, FileLineColLoc at,
                               MLIRContext &context) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!at || !text)
    return parsed;
  llvm::SmallVector<StringRef> lines;
  (*text)->getBuffer().split(lines, '\n', /*MaxSplit=*/at.getLine());
  if (at.getLine() == 0 || lines.size() < at.getLine() || at.getColumn() == 0)
    return parsed;
  // The parser stops at the name of an op or behind it.
  StringRef line = lines[at.getLine() - 1].take_front(at.getColumn() + kLongestName);
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; };
  StringRef dialect;
  for (size_t begin = 0; begin < std::min<size_t>(line.size(), at.getColumn());) {
    StringRef word = line.drop_front(begin).take_while(isPart);
    if (word.contains('.') && (begin == 0 || !StringRef("%@").contains(line[begin - 1])))
      dialect = word.split('.').first;
    begin += word.size() + 1;
  }
  if (dialect.empty() || !llvm::isAlpha(dialect.front()) ||
      llvm::is_contained(context.getAvailableDialects(), dialect))
    return parsed;
  llvm::consumeError(std::move(parsed));
  return llvm::createStringError(llvm::Twine(at.getLine()) + ":" + llvm::Twine(at.getColumn()) +
                                 ": expected a file in linalg or TOSA, got the dialect '" +
                                 dialect + "'");
}

/// Checks that `op` can become a function of a library: it must be a public function on ranked tensors, and its body
/// must be one block. A private function that is left, for example because it calls itself, is rejected, because callers
/// of a library cannot reach it.
static LogicalResult verifyCompilable(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function || !function.isPublic() || function.isDeclaration())
    return op->emitError() << "expected nothing but public functions with a body in a module, got '"
                           << op->getName() << "'";
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (!isTensor(type))
      return op->emitError() << "expected argument " << i << " to be a ranked tensor, got " << type;
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (!isTensor(type))
      return op->emitError() << "expected result " << i << " to be a ranked tensor, got " << type;
  if (!function.getBody().hasOneBlock())
    return op->emitError() << "expected a body of one block, got " << function.getBlocks().size();
  WalkResult calls = function.walk([](CallOpInterface call) -> WalkResult {
    return call->emitError(
        "expected calls that can be inlined, of functions that do not call themselves");
  });
  if (calls.wasInterrupted())
    return failure();
  // Other dialects and ops can access memory beyond a tensor. These ops are in bounds, or are made so below.
  auto isTensorOp = [](Operation *op) {
    return isa<tensor::BitcastOp, tensor::CastOp, tensor::CollapseShapeOp, tensor::ConcatOp,
               tensor::DimOp, tensor::EmptyOp, tensor::ExpandShapeOp, tensor::ExtractOp,
               tensor::ExtractSliceOp, tensor::FromElementsOp, tensor::GenerateOp, tensor::InsertOp,
               tensor::InsertSliceOp, tensor::PadOp, tensor::ParallelInsertSliceOp, tensor::RankOp,
               tensor::ReshapeOp, tensor::SplatOp, tensor::YieldOp>(op);
  };
  WalkResult ops = function.walk([&](Operation *op) -> WalkResult {
    StringRef dialect = op->getName().getDialectNamespace();
    bool isKnown = llvm::is_contained({"affine", "arith", "attn", "cf", "complex", "func", "linalg",
                                       "math", "scf", "tensor"},
                                      dialect) &&
                   (dialect != "tensor" || isTensorOp(op));
    if (!isKnown)
      return op->emitError() << "expected ops of affine, arith, attn, cf, complex, linalg, math, "
                                "scf or tensor, got '"
                             << op->getName() << "'";
    if (auto slice = dyn_cast<OffsetSizeAndStrideOpInterface>(op))
      for (OpFoldResult stride : slice.getMixedStrides())
        if (getConstantIntValue(stride).value_or(0) < 1)
          return op->emitError("expected strides that are constants of at least 1");
    return WalkResult::advance();
  });
  if (ops.wasInterrupted())
    return failure();
  // In MLIR, the size of a dimension that does not exist is undefined.
  WalkResult dims = function.walk([](ShapedDimOpInterface dim) -> WalkResult {
    auto type = dyn_cast<RankedTensorType>(dim.getShapedValue().getType());
    std::optional<int64_t> axis = getConstantIntValue(dim.getDimension());
    if (!type || !axis || (*axis >= 0 && *axis < type.getRank()))
      return WalkResult::advance();
    return dim->emitError() << "expected a dimension of " << type << ", got " << *axis;
  });
  return failure(dims.wasInterrupted());
}

/// Callers identify arguments and results by their names, so the names must be unique. They must be UTF-8 too, because
/// the manifest contains them as JSON.
static LogicalResult verifyNames(func::FuncOp function) {
  llvm::StringSet<> arguments, results;
  auto verify = [&](StringAttr name, StringRef kind, llvm::StringSet<> &seen) -> LogicalResult {
    if (!llvm::json::isUTF8(name))
      return function.emitError() << "expected the name of each " << kind << " in UTF-8, got "
                                  << name;
    if (!seen.insert(name).second)
      return function.emitError() << "expected one " << kind << " named " << name << ", got two";
    return success();
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto name = function.getArgAttrOfType<StringAttr>(i, AttnDialect::kNameAttr);
        failed(verify(name, "argument", arguments)))
      return failure();
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto name = function.getResultAttrOfType<StringAttr>(i, AttnDialect::kNameAttr);
        failed(verify(name, "result", results)))
      return failure();
  return success();
}

/// Gives the arguments of the only function the names `names`, in order.
static LogicalResult setNames(ModuleOp module, ArrayRef<std::string> names) {
  auto functions = module.getOps<func::FuncOp>();
  if (!llvm::hasSingleElement(functions))
    return module.emitError() << "expected one function in a file whose arguments get names, got "
                              << llvm::range_size(functions);
  func::FuncOp function = *functions.begin();
  std::string given = llvm::join(names, ",");
  if (names.size() != function.getNumArguments())
    return function.emitError() << "expected " << function.getNumArguments()
                                << " names for the arguments, got '" << given << "'";
  if (llvm::is_contained(names, ""))
    return function.emitError() << "expected no empty name of an argument, got '" << given << "'";
  Builder builder(module.getContext());
  for (auto [i, name] : llvm::enumerate(names))
    function.setArgAttr(i, AttnDialect::kNameAttr, builder.getStringAttr(name));
  return success();
}

/// Names unnamed arguments arg0, arg1, ... If the function has no symbols (names of sizes), gives each dynamic
/// dimension of an argument its own symbol.
static void nameArguments(func::FuncOp function) {
  Builder builder(function.getContext());
  SmallVector<Attribute> symbols;
  bool hasSymbols = function->hasAttr(AttnDialect::kSymbolsAttr);
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto name = function.getArgAttrOfType<StringAttr>(i, AttnDialect::kNameAttr);
    if (!name) {
      name = builder.getStringAttr("arg" + Twine(i));
      function.setArgAttr(i, AttnDialect::kNameAttr, name);
    }
    auto tensor = cast<RankedTensorType>(type);
    if (hasSymbols || tensor.hasStaticShape())
      continue;
    SmallVector<Attribute> dims;
    for (int64_t axis = 0; axis < tensor.getRank(); ++axis) {
      auto dim = builder.getStringAttr(
          tensor.isDynamicDim(axis) ? name.getValue() + "." + Twine(axis) : Twine());
      dims.push_back(dim);
      if (tensor.isDynamicDim(axis))
        symbols.push_back(SymbolAttr::get(builder.getContext(), dim, 0, kMaxDim));
    }
    function.setArgAttr(i, AttnDialect::kDimsAttr, builder.getArrayAttr(dims));
  }
  if (!symbols.empty())
    function->setAttr(AttnDialect::kSymbolsAttr, builder.getArrayAttr(symbols));
}

/// The symbol of a dynamic dimension of `result`; null if its size is not known.
static StringAttr symbolOfResult(FunctionSizes &sizes, Value result, int64_t axis) {
  Size size = sizes.reduced(sizes.namedSizeOf(result, axis));
  return FunctionSizes::isKnown(size) ? sizes.symbolFor(size) : nullptr;
}

/// Checks that `result`, which each call writes to the in-out argument `argument`, has the sizes of this argument.
static LogicalResult verifyInOutSizes(FunctionSizes &sizes, unsigned argument, Value result) {
  auto dims = sizes.function.getArgAttrOfType<ArrayAttr>(argument, AttnDialect::kDimsAttr);
  auto type = cast<RankedTensorType>(result.getType());
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (type.isDynamicDim(axis) && symbolOfResult(sizes, result, axis) != dims[axis])
      return sizes.function.emitError()
             << "expected the result that is written to argument " << argument
             << " to have the sizes of the argument, got a dimension " << axis
             << " that is not known to be " << dims[axis];
  return success();
}

/// Names unnamed results out, or out.0, out.1, ... Gives each dynamic dimension of a result the symbol of its size, which
/// is that of an argument dimension or is computed from them. A result that is written to an in-out argument gets the
/// name of the argument.
static LogicalResult nameResults(FunctionSizes &sizes) {
  func::FuncOp function = sizes.function;
  Builder builder(function.getContext());
  Operation *terminator = function.getBody().front().getTerminator();
  int64_t numOutputs = llvm::count_if(llvm::seq(function.getNumResults()),
                                      [&](unsigned i) { return !getInOutArgument(function, i); });
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    if (std::optional<unsigned> argument = getInOutArgument(function, i)) {
      if (failed(verifyInOutSizes(sizes, *argument, terminator->getOperand(i))))
        return failure();
      function.setResultAttr(i, AttnDialect::kNameAttr,
                             function.getArgAttr(*argument, AttnDialect::kNameAttr));
      continue;
    }
    auto name = function.getResultAttrOfType<StringAttr>(i, AttnDialect::kNameAttr);
    if (!name) {
      name = builder.getStringAttr(numOutputs == 1 ? Twine("out") : "out." + Twine(i));
      function.setResultAttr(i, AttnDialect::kNameAttr, name);
    }
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.hasStaticShape())
      continue;
    auto given = function.getResultAttrOfType<ArrayAttr>(i, AttnDialect::kDimsAttr);
    SmallVector<Attribute> dims;
    for (int64_t axis = 0; axis < tensor.getRank(); ++axis) {
      auto dim = builder.getStringAttr("");
      if (tensor.isDynamicDim(axis))
        dim = symbolOfResult(sizes, terminator->getOperand(i), axis);
      if (!dim)
        return function.emitError()
               << "expected result '" << name.getValue()
               << "' to have sizes that follow from those "
               << "of arguments, got a dimension " << axis << " of an unknown size";
      if (given && given[axis] != dim)
        return function.emitError()
               << "expected dimension " << axis << " of result '" << name.getValue() << "' to be "
               << dim << ", which has the same size, got " << given[axis];
      dims.push_back(dim);
    }
    function.setResultAttr(i, AttnDialect::kDimsAttr, builder.getArrayAttr(dims));
  }
  return success();
}

llvm::Expected<Model> attn::importMlir(StringRef path, MLIRContext &context,
                                       ArrayRef<std::string> names) {
  FirstError error(context, path);
  ParserConfig config(&context);
  Model model;
  model.module = parseSourceFile<ModuleOp>(path, config);
  if (!model.module)
    return parserError(error.take(), path, error.getPlace(), context);
  if (failed(verifyStage(*model.module, "import", model.module->getLoc())))
    return error.take();
  if (failed(inlineCalls(*model.module)) ||
      (!names.empty() && failed(setNames(*model.module, names))))
    return error.take();
  if (hasTosa(*model.module)) {
    PassManager manager(&context);
    addTosaPasses(manager);
    if (failed(manager.run(*model.module)))
      return error.take();
  }
  for (Operation &op : *model.module->getBody()) {
    if (auto function = dyn_cast<func::FuncOp>(op); function && failed(bringIntoForm(function)))
      return error.take();
    if (failed(verifyCompilable(&op)))
      return error.take();
    auto function = cast<func::FuncOp>(op);
    bool namedByFile = function->hasAttr(AttnDialect::kSymbolsAttr);
    nameArguments(function);
    FunctionSizes sizes(function);
    if (failed(requireSizes(sizes, namedByFile)) || failed(stateSizes(sizes)) ||
        failed(nameResults(sizes)) || failed(verifyNames(function)) || failed(clampIndices(sizes)) ||
        failed(guardDivisions(sizes)))
      return error.take();
  }
  return model;
}
