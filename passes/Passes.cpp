//===- Passes.cpp - the pipelines of the machine-independent stages --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void attn::registerPipelines() {
  PassPipelineRegistration<>("attn-simplify", "head-major projections, no views between them and attention",
                             addSimplifyPipeline);
}
