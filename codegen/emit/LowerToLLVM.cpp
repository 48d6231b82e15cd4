//===- LowerToLLVM.cpp - from vectors and memrefs to the LLVM dialect ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

void attn::addLowerToLLVMPipeline(OpPassManager &manager) {
  manager.addPass(createFlattenLevels());
  manager.addPass(createLowerKernelAbi());
  // Transfers of vectors with more than one dimension become transfers of rows. The remaining vector ops are lowered to
  // LLVM before control flow, because transposes become shuffles of whole registers only while the loops around them
  // are still loops.
  manager.addPass(createConvertVectorToSCFPass(VectorTransferToSCFOptions().enableFullUnroll()));
  ConvertVectorToLLVMPassOptions vectors;
  vectors.vectorTransposeLowering = vector::VectorTransposeLowering::Shuffle16x16;
  vectors.x86Vector = true;
  manager.addPass(createConvertVectorToLLVMPass(vectors));
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createExpandDynamicShapes());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createReadBooleans());
  manager.addPass(createStoreBF16AsI16());
  // Clean up only once, because LLVM's own passes clean up again.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createSeparateScratch());
  // Add line tables, so that profilers and debuggers show the lines that the code comes from.
  manager.addPass(LLVM::createDIScopeForLLVMFuncOpPass());
}

void attn::registerLowerToLLVMPipeline() {
  PassPipelineRegistration<>("attn-lower-to-llvm", "From memrefs and vectors to the LLVM dialect",
                             addLowerToLLVMPipeline);
}
