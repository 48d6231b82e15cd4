//===- attn-opt.cpp - mlir-opt with attn registered ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/Pipeline.h"
#include "codegen/cpu/Passes.h"
#include "codegen/emit/Passes.h"
#include "dialect/Attn.h"
#include "passes/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<attn::AttnDialect>();
  attn::registerBufferization(registry);
  mlir::registerAllPasses();
  attn::registerAttnPasses();
  attn::registerAttnCpuPasses();
  attn::registerStagePipelines();
  attn::registerAttnEmitPasses();
  attn::registerLowerToLLVMPipeline();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "attn optimizer\n", registry));
}
