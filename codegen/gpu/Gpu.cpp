//===- Gpu.cpp - the family of NVIDIA GPUs ---------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Gpu.h"

#include "codegen/Codegen.h"
#include "codegen/cpu/Passes.h"
#include "codegen/gpu/Choose.h"
#include "codegen/gpu/MatrixMultiply.h"
#include "codegen/gpu/Passes.h"
#include "passes/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

namespace attn::targets {
extern const GpuTarget sm_90a, sm_80;
} // namespace attn::targets

/// The levels, best first.
static const Target *const kTargets[] = {
    &targets::sm_90a, // wgmma
    &targets::sm_80,  // mma.sync, cp.async
};

TargetInterface GpuTarget::makeGpuAttr(const Target &target, MLIRContext *context) {
  const auto &gpu = static_cast<const GpuTarget &>(target);
  return GpuAttr::get(context, gpu.level, gpu.shared, gpu.registers, gpu.has);
}

//===----------------------------------------------------------------------===//
// The pipeline
//===----------------------------------------------------------------------===//

/// Lowers kernels to the LLVM dialect, and then to PTX.
static void addEmission(OpPassManager &level) {
  level.addPass(createOutlineKernels());
  // The functions that are left, entries and pack functions, run on the CPU.
  level.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  level.addNestedPass<func::FuncOp>(createExpandHalves());
  OpPassManager &kernels = level.nest<gpu::GPUModuleOp>();
  kernels.addPass(createConvertNVGPUToNVVMPass());
  kernels.addPass(createSCFToControlFlowPass());
  // Mem2Reg comes before the canonicalizer, which may create an arith.select of two buffers. Mem2Reg could then remove
  // neither buffer.
  kernels.addPass(createMem2Reg());
  kernels.addPass(memref::createExpandStridedMetadataPass());
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createMathToIntrinsics());
  kernels.addPass(createArithToLLVMConversionPass());
  kernels.addPass(createConvertMathToLLVMPass());
  kernels.addPass(createConvertGpuOpsToNVVMOps());
  kernels.addPass(createConvertNVVMToLLVMPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  level.addPass(createEmbedKernels());
}

static void addPasses(StringRef stage, OpPassManager &level) {
  if (stage == "plan") {
    level.addNestedPass<func::FuncOp>(createSplitSoftmax());
    level.addNestedPass<func::FuncOp>(createOrderKeys());
  }
  if (stage == "schedule")
    level.addNestedPass<func::FuncOp>(createOrderTasks());
  if (stage == "bufferize") {
    level.addNestedPass<func::FuncOp>(createLaunchOps());
    level.addNestedPass<func::FuncOp>(createPlaceTemporaries());
    level.addPass(createPlanWorkspace());
    level.addPass(createOutlineTasks());
    level.addPass(createCanonicalizerPass());
    level.addPass(createCSEPass());
    level.addPass(createShareTasks());
  }
  if (stage == "vectorize") {
    level.addPass(createAssignThreads());
    level.addPass(createProduceTiles());
    level.addNestedPass<func::FuncOp>(createStageTiles()); // tasks that ProduceTiles did not change
    level.addNestedPass<func::FuncOp>(createOnlineToFragments());
    level.addNestedPass<func::FuncOp>(createMergeToThreads());
    level.addNestedPass<func::FuncOp>(createProductToFragments());
    level.addNestedPass<func::FuncOp>(createMaskToThreads());
    level.addNestedPass<func::FuncOp>(createDistributeLoops());
    level.addNestedPass<func::FuncOp>(createExpandMath({/*keepFma=*/true}));
    level.addPass(createCanonicalizerPass());
    level.addPass(createCSEPass());
    level.addPass(createAssignShared());
  }
  if (stage == "emit")
    addEmission(level);
}

//===----------------------------------------------------------------------===//
// The interfaces of #attn.gpu
//===----------------------------------------------------------------------===//

namespace {
struct Planner : PlannerInterface::ExternalModel<Planner, GpuAttr> {
  SmallVector<Prediction> predictPlans(Attribute gpu, const AttentionShape &shape,
                                       std::optional<Schedule> only) const {
    return attn::predictPlans(cast<GpuAttr>(gpu), shape, only);
  }
  double predictPlan(Attribute gpu, const AttentionShape &shape, PlanAttr plan) const {
    return attn::predictPlan(cast<GpuAttr>(gpu), shape, plan);
  }
  Attribute planProduct(Attribute gpu, const ProductShape &shape) const {
    return planBlock(cast<GpuAttr>(gpu), shape);
  }
  TaskSize planTask(Attribute gpu, const ProductShape &shape, BlockAttr block) const {
    return attn::planTask(cast<GpuAttr>(gpu), shape, block);
  }
  bool hasRegisters(Attribute, const ProductShape &, BlockAttr block) const {
    return attn::hasRegisters(block);
  }
  ArrayAttr mapTasks(Attribute gpu, int64_t rank) const {
    SmallVector<Attribute> mapping;
    for (int64_t i = 0; i < rank; ++i)
      mapping.push_back(gpu::GPUBlockMappingAttr::get(
          gpu.getContext(), gpu::MappingId(int64_t(gpu::MappingId::LinearDim0) + i)));
    return ArrayAttr::get(gpu.getContext(), mapping);
  }
  int64_t getLanes(Attribute) const { return kMatrixColumns; }
  int64_t getCacheBytes(Attribute) const { return 0; }
  Panel choosePanel(Attribute, const ProductShape &) const { return {0, 1}; }
};

struct Codegen : CodegenInterface::ExternalModel<Codegen, GpuAttr> {
  void addPasses(Attribute, StringRef stage, OpPassManager &manager) const {
    ::addPasses(stage, manager);
  }
  llvm::Expected<const Target *> getDescription(Attribute gpu) const {
    return lookupTarget(kTargets, cast<GpuAttr>(gpu).getLevel());
  }
  LogicalResult embed(Attribute, ModuleOp level, ModuleOp library) const {
    return moveSymbols(level, library, [](func::FuncOp function) {
      Builder builder(function.getContext());
      function->setAttr("passthrough", builder.getStrArrayAttr({"no-builtins", "nounwind"}));
    });
  }
};
} // namespace

static void registerInterfaces(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    GpuAttr::attachInterface<Planner, Codegen>(*context);
    context->getOrLoadDialect<gpu::GPUDialect>(); // for mapTasks()
  });
}

const TargetFamily attn::kGpuFamily = {kTargets, registerInterfaces, addPasses};
