//===- Frontend.cpp - import model files as MLIR modules -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/Frontend.h"

#include "dialect/Attn.h"
#include "frontend/FirstError.h"
#include "frontend/checks/Types.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace attn;

namespace {
struct Format {
  StringLiteral suffix;
  llvm::Expected<Model> (*import)(StringRef path, MLIRContext &context,
                                  ArrayRef<std::string> names);
};
} // namespace

static constexpr Format kFormats[] = {{".mlir", importMlir}, {".pt2", importPt2}};

void attn::loadFrontendDialects(MLIRContext &context) {
  DialectRegistry registry;
  func::registerInlinerExtension(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<AttnDialect, arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                      math::MathDialect, scf::SCFDialect, tensor::TensorDialect,
                      tosa::TosaDialect>();
}

/// Checks the functions of a module that was imported from a file of any format.
static llvm::Error verifyFunctions(ModuleOp module, StringRef path) {
  FirstError error(*module.getContext(), path);
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (failed(verifyTypes(function)))
      return error.take();
  return llvm::Error::success();
}

llvm::Expected<Model> attn::importFile(StringRef path, MLIRContext &context,
                                       ArrayRef<std::string> names) {
  std::string known;
  for (const Format &format : kFormats) {
    known += (known.empty() ? "" : " ") + format.suffix.str();
    if (llvm::sys::path::extension(path) != format.suffix)
      continue;
    llvm::sys::fs::file_status status;
    if (std::error_code error = llvm::sys::fs::status(path, status))
      return llvm::createFileError(path, error);
    if (status.type() != llvm::sys::fs::file_type::regular_file)
      return llvm::createStringError(path + ": expected a regular file");
    loadFrontendDialects(context);
    llvm::Expected<Model> model = format.import(path, context, names);
    if (model)
      if (llvm::Error error = verifyFunctions(*model->module, path))
        model = std::move(error);
    if (!model) {
      // Names in a file may contain line breaks, but the error must be one line.
      std::string message = llvm::toString(model.takeError());
      llvm::replace(message, '\n', ' ');
      return llvm::createStringError(path + ": " + message);
    }
    (*model->module)->setAttr(AttnDialect::kStageAttr, StringAttr::get(&context, "import"));
    return model;
  }
  return llvm::createStringError(
      llvm::formatv("{0}: expected a file that ends in one of {1}", path, known));
}
