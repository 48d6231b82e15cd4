//===- Mlir.cpp - MLIR text or bytecode ------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "frontend/FirstError.h"
#include "frontend/Frontend.h"
#include "frontend/Sizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace attn;

/// The greatest size of a dimension of which the file says nothing.
static constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();

/// Arguments become arg0, arg1, ...; in a function without symbols, each of their dynamic dimensions gets one.
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
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (hasSymbols || !tensor || tensor.hasStaticShape())
      continue;
    SmallVector<Attribute> dims;
    for (int64_t axis = 0; axis < tensor.getRank(); ++axis) {
      auto dim =
          builder.getStringAttr(tensor.isDynamicDim(axis) ? name.getValue() + "." + Twine(axis) : Twine());
      dims.push_back(dim);
      if (tensor.isDynamicDim(axis))
        symbols.push_back(SymbolAttr::get(builder.getContext(), dim, 0, kMaxDim));
    }
    function.setArgAttr(i, AttnDialect::kDimsAttr, builder.getArrayAttr(dims));
  }
  if (!symbols.empty())
    function->setAttr(AttnDialect::kSymbolsAttr, builder.getArrayAttr(symbols));
}

/// Results become out or out.0, out.1, ...; their dynamic dimensions are those of arguments.
static LogicalResult nameResults(func::FuncOp function) {
  Builder builder(function.getContext());
  auto terminator = dyn_cast<func::ReturnOp>(function.getBody().front().getTerminator());
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    auto name = function.getResultAttrOfType<StringAttr>(i, AttnDialect::kNameAttr);
    if (!name) {
      name = builder.getStringAttr(function.getNumResults() == 1 ? Twine("out") : "out." + Twine(i));
      function.setResultAttr(i, AttnDialect::kNameAttr, name);
    }
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!terminator || !tensor || tensor.hasStaticShape() || function.getResultAttr(i, AttnDialect::kDimsAttr))
      continue;
    SmallVector<Attribute> dims;
    for (int64_t axis = 0; axis < tensor.getRank(); ++axis) {
      StringAttr dim = tensor.isDynamicDim(axis) ? symbolOf(function, terminator.getOperand(i), axis)
                                                 : builder.getStringAttr("");
      if (!dim)
        return function.emitError() << "expected '" << AttnDialect::kDimsAttr << "' on result '" << name.getValue()
                                    << "', whose dimension " << axis << " is not known to be one of an argument";
      dims.push_back(dim);
    }
    function.setResultAttr(i, AttnDialect::kDimsAttr, builder.getArrayAttr(dims));
  }
  return success();
}

llvm::Expected<Model> attn::importMlir(StringRef path, MLIRContext &context) {
  FirstError error(context, path);
  ParserConfig config(&context);
  Model model;
  model.module = parseSourceFile<ModuleOp>(path, config);
  if (!model.module)
    return error.take();
  WalkResult named = model.module->walk([](func::FuncOp function) -> WalkResult {
    if (!function.isPublic() || function.isDeclaration())
      return WalkResult::advance();
    bool namedByFile = function->hasAttr(AttnDialect::kSymbolsAttr);
    nameArguments(function);
    return failure(failed(tieSizes(function, namedByFile)) || failed(nameResults(function)));
  });
  if (named.wasInterrupted())
    return error.take();
  return model;
}
