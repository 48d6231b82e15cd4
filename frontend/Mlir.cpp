//===- Mlir.cpp - MLIR text or bytecode ------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "frontend/FirstError.h"
#include "frontend/Frontend.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace attn;

/// The greatest size of a dimension of which the file says nothing.
static constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();

/// Names what the file left without a name: arguments arg0, arg1, ..., results out or out.0, out.1, ..., and
/// in a function without symbols, each dynamic dimension of an argument a symbol of its own.
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
  for (unsigned i = 0, e = function.getNumResults(); i < e; ++i)
    if (!function.getResultAttr(i, AttnDialect::kNameAttr))
      function.setResultAttr(i, AttnDialect::kNameAttr,
                             builder.getStringAttr(e == 1 ? Twine("out") : "out." + Twine(i)));
}

llvm::Expected<Model> attn::importMlir(StringRef path, MLIRContext &context) {
  FirstError error(context, path);
  ParserConfig config(&context);
  Model model;
  model.module = parseSourceFile<ModuleOp>(path, config);
  if (!model.module)
    return error.take();
  model.module->walk([](func::FuncOp function) {
    if (function.isPublic() && !function.isDeclaration())
      nameArguments(function);
  });
  return model;
}
