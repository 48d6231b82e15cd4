//===- Compare.cpp - compare outputs with expected values -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/Compare.h"
#include "dialect/Attn.h"
#include "driver/Interpreter.h"
#include "frontend/FirstError.h"
#include "frontend/Frontend.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace llvm;
using namespace attn;

ReferenceTensor attn::toReference(const Array &array) {
  ReferenceTensor tensor(array.shape);
  for (auto [e, element] : llvm::enumerate(tensor.elements))
    element = array.at(e);
  return tensor;
}

static Array toArray(const ReferenceTensor &tensor) {
  Array array;
  array.bits = 64;
  array.shape.assign(tensor.shape.begin(), tensor.shape.end());
  auto *bytes = reinterpret_cast<const char *>(tensor.elements.data());
  array.data.assign(bytes, bytes + tensor.elements.size() * sizeof(double));
  return array;
}

std::optional<int64_t> attn::findDifference(const Array &got, const Array &expected,
                                            double tolerance) {
  for (int64_t e = 0; e < expected.getNumElements(); ++e) {
    double want = expected.at(e), is = got.at(e);
    bool isSame = std::isfinite(want) ? std::abs(want - is) <= tolerance
                                      : want == is || (std::isnan(want) && std::isnan(is));
    if (!isSame)
      return e;
  }
  return std::nullopt;
}

/// Interprets `function` of `module`. Returns its outputs, then the results of in-out arguments. `error` collects the
/// errors.
static Expected<std::vector<Array>>
interpretModule(mlir::ModuleOp module, const Twine &name, FirstError &error, StringRef function,
                ArrayRef<Array> inputs, ArrayRef<std::pair<std::string, Array>> weights) {
  StringMap<ReferenceTensor> byName;
  for (const auto &[name, array] : weights)
    byName[name] = toReference(array);
  ReferenceResults results =
      interpret(module, function, map_to_vector(inputs, toReference), byName);
  if (failed(results))
    return createStringError(name + ": " + toString(error.take()));
  mlir::func::FuncOp callee = findEntry(module, function);
  std::vector<Array> arrays;
  for (auto [i, result] : llvm::enumerate(*results))
    if (!getInOutArgument(callee, i))
      arrays.push_back(toArray(result));
  for (unsigned i = 0; i < callee.getNumArguments(); ++i)
    if (std::optional<unsigned> result = getInOutResult(callee, i))
      arrays.push_back(toArray((*results)[*result]));
  return arrays;
}

Expected<std::vector<Array>> attn::interpretStage(StringRef text, StringRef stage,
                                                  StringRef function, ArrayRef<Array> inputs,
                                                  ArrayRef<std::pair<std::string, Array>> weights) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  registry.insert<AttnDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  loadFrontendDialects(context);
  FirstError error(context, stage);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context, stage);
  if (!module)
    return createStringError("stage " + stage + ": " + toString(error.take()));
  return interpretModule(*module, "stage " + stage, error, function, inputs, weights);
}

Expected<std::vector<Array>>
attn::computeReference(StringRef path, StringRef function, ArrayRef<Array> inputs,
                       ArrayRef<std::pair<std::string, Array>> weights) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  Expected<Model> model = importFile(path, context);
  if (!model)
    return model.takeError();
  FirstError error(context, path);
  return interpretModule(*model->module, path, error, function, inputs, weights);
}
