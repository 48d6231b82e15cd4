//===- Registry.cpp - dialects and passes of developer tools --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/Registry.h"

#include "codegen/Pipeline.h"
#include "codegen/Target.h"
#include "codegen/cpu/Passes.h"
#include "codegen/gpu/Passes.h"
#include "codegen/emit/Passes.h"
#include "dialect/Attn.h"
#include "passes/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"

void attn::registerEveryDialect(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<AttnDialect>();
  registerBufferization(registry);
  registerTargets(registry);
}

void attn::registerEveryPass() {
  mlir::registerAllPasses();
  registerAttnPasses();
  registerAttnCpuPasses();
  registerAttnGpuPasses();
  registerStagePipelines();
  registerAttnEmitPasses();
  registerLowerToLLVMPipeline();
}
