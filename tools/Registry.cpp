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

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/Transforms/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/Transforms/Passes.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

void attn::registerEveryDialect(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<AttnDialect>();
  registerBufferization(registry);
  registerTargets(registry);
}

void attn::registerPasses() {
  // All of upstream's passes would add 15 MB to the wheel and 500 lines to the output of --help.
  mlir::registerTransformsPasses();
  mlir::affine::registerAffinePasses();
  mlir::arith::registerArithPasses();
  mlir::bufferization::registerBufferizationPasses();
  mlir::registerLinalgPasses();
  mlir::memref::registerMemRefPasses();
  mlir::registerSCFPasses();
  mlir::tensor::registerTensorPasses();
  mlir::transform::registerTransformPasses();
  mlir::vector::registerVectorPasses();
  // Conversions to the LLVM dialect.
  mlir::registerArithToLLVMConversionPass();
  mlir::registerConvertControlFlowToLLVMPass();
  mlir::registerConvertFuncToLLVMPass();
  mlir::registerConvertIndexToLLVMPass();
  mlir::registerConvertMathToLLVMPass();
  mlir::registerConvertToLLVMPass();
  mlir::registerUBToLLVMConversionPass();
  mlir::registerConvertVectorToLLVMPass();
  mlir::registerConvertVectorToSCF();
  mlir::registerFinalizeMemRefToLLVMConversionPass();
  mlir::registerLowerAffinePass();
  mlir::registerReconcileUnrealizedCastsPass();
  mlir::registerSCFToControlFlowPass();
  registerAttnPasses();
  registerAttnCpuPasses();
  registerAttnGpuPasses();
  registerStagePipelines();
  registerAttnEmitPasses();
  registerLowerToLLVMPipeline();
}

void attn::registerVersion() {
  llvm::cl::AddExtraVersionPrinter([](llvm::raw_ostream &out) { out << "attn " ATTN_VERSION "\n"; });
}
