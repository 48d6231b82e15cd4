//===- Cpu.cpp - the family of CPUs ----------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Cpu.h"

#include "codegen/Codegen.h"
#include "codegen/cpu/Choose.h"
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/RegisterBlocks.h"
#include "passes/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

namespace attn::targets {
extern const CpuTarget x86_64, x86_64_v3, x86_64_v4, x86_64_v4_bf16, x86_64_amx;
extern const CpuTarget aarch64, aarch64_fp16_bf16;
} // namespace attn::targets

/// The levels, better ones first.
static const Target *const kTargets[] = {
    &targets::x86_64_amx,        // AVX-512, products of bf16 by tiles
    &targets::x86_64_v4_bf16,    // AVX-512, products of bf16 by pairs
    &targets::x86_64_v4,         // AVX-512
    &targets::x86_64_v3,         // AVX2
    &targets::x86_64,            // SSE2
    &targets::aarch64_fp16_bf16, // NEON, products of f16 and bf16
    &targets::aarch64,           // NEON
};

TargetInterface CpuTarget::makeCpuAttr(const Target &target, MLIRContext *context) {
  const auto &cpu = static_cast<const CpuTarget &>(target);
  auto pipelines = PipelinesAttr::get(context);
  if (const Pipelines *own = cpu.pipelines)
    pipelines = PipelinesAttr::get(context, own->multiplies, own->loads, own->stores, own->latency,
                                   own->exponential);
  return CpuAttr::get(context, cpu.level, cpu.vector, cpu.registers, cpu.spare, cpu.l1, cpu.l2,
                      cpu.has, pipelines);
}

//===----------------------------------------------------------------------===//
// The pipeline
//===----------------------------------------------------------------------===//

static void addPasses(StringRef stage, OpPassManager &level) {
  if (stage == "plan") // later stages fuse ops into tasks, whose shares nobody could read
    level.addNestedPass<func::FuncOp>(createNoteSlowLoops());
  if (stage == "bufferize") {
    level.addNestedPass<func::FuncOp>(createPadRows());
    level.addPass(createPlanWorkspace());
    level.addPass(createOutlineTasks());
    level.addPass(createCanonicalizerPass());
    level.addPass(createCSEPass());
    level.addPass(createShareTasks());
    level.addPass(createOutlineRepeated());
  }
  if (stage == "vectorize") {
    OpPassManager &functions = level.nest<func::FuncOp>();
    functions.addPass(createMergeRows());
    functions.addPass(createCSEPass()); // code generation finds the start of a sum by its buffer
    functions.addPass(createMaskToVector());
    functions.addPass(createOnlineToVector());
    functions.addPass(createContractToVector());
    functions.addPass(createPackToVector());
    functions.addPass(createSoftmaxToVector());
    // The remaining ops are elementwise ops and reductions: they become plain loops, which LLVM may vectorise.
    functions.addPass(createReassociateSums());
    functions.addPass(createConvertLinalgToLoopsPass());
    functions.addPass(createExpandHalves());
    functions.addPass(createExpandMath());
    functions.addPass(createCanonicalizerPass());
    functions.addPass(createCSEPass());
  }
}

//===----------------------------------------------------------------------===//
// The code of a level
//===----------------------------------------------------------------------===//

/// Sets the attributes that the conversion of func.func copies to llvm.func.
static void setTarget(func::FuncOp function, const CpuTarget &target) {
  Builder builder(function.getContext());
  function->setAttr("target_cpu", builder.getStringAttr(target.cpu));
  if (!target.features.empty()) {
    SmallVector<std::string> present;
    for (StringRef feature : target.features)
      present.push_back("+" + feature.str());
    function->setAttr("target_features",
                      LLVM::TargetFeaturesAttr::get(builder.getContext(),
                                                    llvm::to_vector_of<StringRef>(present)));
  }
  auto pair = [&](StringRef name, const Twine &value) -> Attribute {
    return builder.getArrayAttr({builder.getStringAttr(name), builder.getStringAttr(value)});
  };
  // LLVM must not replace loops with calls of the C library, because kernels are not linked with it. Vectors keep the
  // width that they have in the IR.
  SmallVector<Attribute> attributes = {
      builder.getStringAttr("no-builtins"), builder.getStringAttr("nounwind"),
      pair("uwtable", "2"), pair("prefer-vector-width", Twine(target.vector)),
      pair("min-legal-vector-width", Twine(target.vector))};
  if (function.getNoInline()) // MLIR's conversion drops it
    attributes.push_back(builder.getStringAttr("noinline"));
  function->setAttr("passthrough", builder.getArrayAttr(attributes));
}

//===----------------------------------------------------------------------===//
// The interfaces of #attn.cpu
//===----------------------------------------------------------------------===//

namespace {
struct Planner : PlannerInterface::ExternalModel<Planner, CpuAttr> {
  SmallVector<Prediction> predictPlans(Attribute cpu, const AttentionShape &shape,
                                       std::optional<Schedule> only) const {
    return attn::predictPlans(cast<CpuAttr>(cpu), shape, only);
  }
  double predictPlan(Attribute cpu, const AttentionShape &shape, PlanAttr plan) const {
    return attn::predictPlan(cast<CpuAttr>(cpu), shape, plan);
  }
  std::optional<double> predictPlanOfWorkers(Attribute cpu, const AttentionShape &shape,
                                             PlanAttr plan, int64_t workers) const {
    return attn::predictPlan(cast<CpuAttr>(cpu), shape, plan, workers);
  }
  Attribute planProduct(Attribute cpu, const ProductShape &shape) const {
    return planBlock(cast<CpuAttr>(cpu), shape);
  }
  TaskSize planTask(Attribute cpu, const ProductShape &shape, BlockAttr block) const {
    return attn::planTask(cast<CpuAttr>(cpu), shape, block);
  }
  bool mergesRows(Attribute) const { return true; } // MergeRows.cpp
  bool separatesOneQuery(Attribute) const { return true; }
  int64_t getLanes(Attribute cpu) const { return cast<CpuAttr>(cpu).getLanes(); }
  int64_t getCacheBytes(Attribute cpu) const { return cast<CpuAttr>(cpu).getL2(); }
  bool sharesCacheSets(Attribute attribute, int64_t bytes) const {
    // With 32 registers, or without fused multiply-adds, a block multiplies for longer than the next cache line of each
    // of its rows takes to arrive from L2.
    auto cpu = cast<CpuAttr>(attribute);
    return bytes % kWayBytes == 0 && cpu.getRegisters() <= 16 && cpu.can(CpuCapabilities::FMA);
  }
  Panel choosePanel(Attribute cpu, const ProductShape &shape) const {
    return attn::choosePanel(cast<CpuAttr>(cpu), shape);
  }
  bool multipliesFaster(Attribute cpu, Type type, int64_t depth) const {
    return attn::multipliesFaster(cast<CpuAttr>(cpu), type, depth);
  }
  bool isFasterRounded(Attribute cpu, const AttentionShape &shape, Type type,
                       std::optional<Schedule> only) const {
    return attn::isFasterRounded(cast<CpuAttr>(cpu), shape, type, only);
  }
  bool hasRegisters(Attribute cpu, const ProductShape &shape, BlockAttr block) const {
    return attn::hasRegisters(cast<CpuAttr>(cpu), shape, block);
  }
  bool makesSameCode(Attribute cpu, TargetInterface other, ModuleOp graph) const {
    auto otherCpu = dyn_cast<CpuAttr>(other);
    return otherCpu && attn::makesSameCode(cast<CpuAttr>(cpu), otherCpu, graph);
  }
};

struct Codegen : CodegenInterface::ExternalModel<Codegen, CpuAttr> {
  void addPasses(Attribute, StringRef stage, OpPassManager &manager) const {
    ::addPasses(stage, manager);
  }
  llvm::Expected<const Target *> getDescription(Attribute cpu) const {
    return lookupTarget(kTargets, cast<CpuAttr>(cpu).getLevel());
  }
  LogicalResult embed(Attribute cpu, ModuleOp level, ModuleOp library) const {
    llvm::Expected<const Target *> target = getDescription(cpu);
    if (!target)
      return level.emitError(llvm::toString(target.takeError()));
    return moveSymbols(level, library, [&](func::FuncOp function) {
      setTarget(function, static_cast<const CpuTarget &>(**target));
    });
  }
};
} // namespace

static void registerInterfaces(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    CpuAttr::attachInterface<Planner, Codegen>(*context);
  });
}

const TargetFamily attn::kCpuFamily = {kTargets, registerInterfaces, addPasses};
