//===- Models.cpp - imports that a fuzz target checks ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/Frontend.h"
#include "test/fuzz/Fuzz.h"

#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

using namespace mlir;
using namespace attn;

/// The dialects and extensions that attnc's context can load.
static const DialectRegistry &registry() {
  static const DialectRegistry registry = [] {
    DialectRegistry all;
    registerAllDialects(all);
    registerAllExtensions(all);
    return all;
  }();
  return registry;
}

/// Returns the context for the next import. Creating a context takes longer than most imports, so kRuns imports share
/// one context. A new context then replaces it, because a context never frees its types and attributes.
static MLIRContext &context() {
  constexpr unsigned kRuns = 128;
  static std::unique_ptr<MLIRContext> context;
  static unsigned runs = 0;
  if (runs++ % kRuns == 0)
    context = std::make_unique<MLIRContext>(registry(), MLIRContext::Threading::DISABLED);
  return *context;
}

void fuzz::importModel(llvm::StringRef path) {
  llvm::Expected<Model> model = importFile(path, context());
  if (!model) {
    std::string error = textOf(model.takeError());
    return expect(StringRef(error).starts_with(path) && !StringRef(error).contains('\n'),
                  "an error of one line that names the file, got '" + error + "'");
  }
  expect(succeeded(verify(*model->module)), "a module that is valid");
  for (const NamedTensor &weight : model->weights) {
    size_t bytes = llvm::divideCeil(weight.elementType.getIntOrFloatBitWidth(), 8);
    for (int64_t size : weight.shape)
      bytes *= size;
    expect(weight.bytes->getBufferSize() == bytes, "weights whose sizes fit their shapes");
  }
}
