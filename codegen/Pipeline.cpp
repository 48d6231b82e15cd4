//===- Pipeline.cpp - the stages and their order ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Only this file defines the order of stages and passes. Comments beside the passes give the reasons for the order.
//
//===----------------------------------------------------------------------===//

#include "codegen/Pipeline.h"
#include "codegen/TargetPasses.h"
#include "passes/Passes.h"

#include "frontend/mlir/LinalgForm.h"

#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

/// Computes the sizes of results from operands, so that a `tensor.dim` does not keep a producer alive.
static void addResolveSizes(OpPassManager &manager) {
  manager.addPass(memref::createResolveShapedTypeResultDimsPass());
  manager.addPass(createCanonicalizerPass());
}

static void buildRaise(OpPassManager &manager, const PipelineOptions &) {
  manager.addNestedPass<func::FuncOp>(createFillInits());
  addResolveSizes(manager);
  manager.addNestedPass<func::FuncOp>(createUnifyDims());
  manager.addPass(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createFoldUniform());
  manager.addNestedPass<func::FuncOp>(createFoldGathers());
  manager.addNestedPass<func::FuncOp>(createRaiseSoftmax());
  manager.addNestedPass<func::FuncOp>(createSplitMergedBatch());
  manager.addNestedPass<func::FuncOp>(createMergeGrids());
  manager.addNestedPass<func::FuncOp>(createRowsAfterValues());
  manager.addNestedPass<func::FuncOp>(createMergeValues());
  addResolveSizes(manager); // for the results of these passes
  manager.addNestedPass<func::FuncOp>(createRaiseAttention());
  manager.addNestedPass<func::FuncOp>(createExtractMask());
  manager.addNestedPass<func::FuncOp>(createFoldScale());
  manager.addPass(createCanonicalizerPass());
}

static void buildSimplify(OpPassManager &manager, const PipelineOptions &) {
  auto cleanUp = [&] {
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
  };
  // Resolve sizes first: a tensor.dim of a product is a use, and products with a second use are not rewritten.
  addResolveSizes(manager);
  manager.addNestedPass<func::FuncOp>(createUnifyDims());
  cleanUp();
  manager.addNestedPass<func::FuncOp>(createFoldBiasIntoInit());
  manager.addNestedPass<func::FuncOp>(createTransposeCaptures());
  manager.addNestedPass<func::FuncOp>(createHoistViews());
  cleanUp();
  // FoldTransposes runs after HoistViews, which moves a transposition into the product before it. HoistViews could not
  // move a transposition that is already part of the maps of an attention.
  manager.addNestedPass<func::FuncOp>(createFoldTransposes());
  manager.addNestedPass<func::FuncOp>(createMultiplyBeforeGather());
  manager.addNestedPass<func::FuncOp>(createDecomposeConcat());
  manager.addPass(memref::createResolveShapedTypeResultDimsPass());
  cleanUp();
  manager.addNestedPass<func::FuncOp>(createFuseElementwise());
  manager.addNestedPass<func::FuncOp>(createGroupsToQueries());
  manager.addNestedPass<func::FuncOp>(createUnshareInits());
}

static void buildPlan(OpPassManager &manager, const PipelineOptions &options) {
  manager.addNestedPass<func::FuncOp>(createBoundLengths());
  manager.addPass(createCloneTargets());
  OpPassManager &level = manager.nest<ModuleOp>();
  level.addNestedPass<func::FuncOp>(createOneQuery());
  level.addNestedPass<func::FuncOp>(createGroupsToQueries()); // those of the new attentions
  level.addNestedPass<func::FuncOp>(createPadDepth());
  level.addNestedPass<func::FuncOp>(createRoundFactors({options.schedule}));
  level.addNestedPass<func::FuncOp>(createPlan({options.schedule, options.workers}));
  level.addNestedPass<func::FuncOp>(createFillInRegion());
  level.addNestedPass<func::FuncOp>(createJoinHeads());
  level.addNestedPass<func::FuncOp>(createPackMasks());
  level.addNestedPass<func::FuncOp>(createPackOperands());
  level.addPass(createCanonicalizerPass());
  // Canonicalise first: packing leaves dead ops, and these would count as uses of the weights.
  level.addPass(createOutlineWeights());
  level.addPass(createCanonicalizerPass());
  level.addNestedPass<func::FuncOp>(createPlanProducts());
  level.addNestedPass<func::FuncOp>(createGroupRows());
  level.addNestedPass<func::FuncOp>(createCopyRows()); // for products without a group
}

static void buildSchedule(OpPassManager &manager, const PipelineOptions &) {
  OpPassManager &level = manager.nest<ModuleOp>();
  level.addNestedPass<func::FuncOp>(createDecomposeAttention());
  // The products that DecomposeAttention made also need their biases folded and their operands packed.
  level.addNestedPass<func::FuncOp>(createFoldBiasIntoInit());
  level.addNestedPass<func::FuncOp>(createPackOperands());
  level.addNestedPass<func::FuncOp>(createPlanProducts());
  addResolveSizes(level);
  level.addNestedPass<func::FuncOp>(createBoundFills());
  level.addNestedPass<func::FuncOp>(createPerHead());
  level.addNestedPass<func::FuncOp>(createDecomposeAttention()); // attentions inside tasks
  level.addNestedPass<func::FuncOp>(
      createFoldBiasIntoInit()); // the products that compute their scores
  level.addNestedPass<func::FuncOp>(createBoundFills()); // those of attentions inside tasks
  level.addNestedPass<func::FuncOp>(createPhased());
  level.addNestedPass<func::FuncOp>(createDecode());
  addResolveSizes(level);
  level.addNestedPass<func::FuncOp>(createRowGroups());
  level.addNestedPass<func::FuncOp>(createPhases());
  addResolveSizes(level);
}

// No CSE from here to bufferization: CSE would merge the inits of two products, and bufferization would then copy the
// merged init.
static void buildTile(OpPassManager &manager, const PipelineOptions &) {
  OpPassManager &level = manager.nest<ModuleOp>();
  level.addNestedPass<func::FuncOp>(createTileKeys());
  level.addNestedPass<func::FuncOp>(createExpandKeyRange());
  addResolveSizes(level);
}

static void buildBufferize(OpPassManager &manager, const PipelineOptions &) {
  OpPassManager &level = manager.nest<ModuleOp>();
  level.addNestedPass<func::FuncOp>(createCopyOverwritten());
  level.addNestedPass<func::FuncOp>(createOutParams());
  level.addNestedPass<func::FuncOp>(createCopyInserted());
  // After attn-copy-inserted: only values that are computed for one insertion may be computed in the buffer.
  level.addNestedPass<func::FuncOp>(createWriteParts());
  level.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion = bufferization::LayoutMapOption::IdentityLayoutMap;
  level.addPass(bufferization::createOneShotBufferizePass(options));
  level.addNestedPass<func::FuncOp>(createKeepUnitDims());
  // CSE first: a copy of a buffer to itself folds only after CSE has merged its two subviews.
  level.addPass(createCSEPass());
  level.addPass(createCanonicalizerPass());
  level.addPass(createVerifyBuffers());
  level.addNestedPass<func::FuncOp>(createNoteExtraWork());
  level.addNestedPass<func::FuncOp>(createLowerCopies());
}

/// All passes of this stage depend on the target: addStage() adds them.
static void buildVectorize(OpPassManager &, const PipelineOptions &) {}

ArrayRef<Stage> attn::getStages() {
  static constexpr Stage kStages[] = {
      {"raise", "attn.attention in place of the ops that computed an attention", buildRaise},
      {"simplify", "head-major projections, biases in products, no views between ops",
       buildSimplify},
      {"plan", "one module per target level, plans on attentions, packed weights", buildPlan},
      {"schedule", "scf.forall loops over tasks, each with the ops that produce its inputs",
       buildSchedule},
      {"tile", "key loops with exact bounds, an online softmax step in each", buildTile},
      {"bufferize", "buffers, a planned workspace, tasks as functions", buildBufferize},
      {"vectorize", "vectors as long as the target's registers, in register blocks",
       buildVectorize},
  };
  return kStages;
}

void attn::addStage(OpPassManager &manager, const Stage &stage, const PipelineOptions &options) {
  stage.build(manager, options);
  // Each target adds its passes to the end of the stage. Before `plan`, no module has a target, so no passes are added.
  manager.nest<ModuleOp>().addPass(createTargetPasses(stage.name));
  manager.addPass(createMarkStage({stage.name.str()}));
}

void attn::addTargetEmission(OpPassManager &manager) {
  manager.nest<ModuleOp>().addPass(createTargetPasses("emit"));
}

void attn::addLintRules(OpPassManager &manager, StringRef stage) {
  OpPassManager &functions = manager.nest<func::FuncOp>();
  if (stage == "import") { // no pass has removed anything yet
    functions.addPass(createLintDroppedMask());
    functions.addPass(createLintSoftmaxAxis());
    functions.addPass(createLintUnusedProbabilities());
  }
  if (stage == "raise") { // scales and masks are attributes
    functions.addPass(createLintScale());
    functions.addPass(createLintEmptyRow());
  }
}

namespace {
/// Begins the pipelines below: refuses a file of another stage than import, because they begin with the stage after it,
/// and brings the ops of other producers into the form of this stage, as importers do.
struct AcceptFile : PassWrapper<AcceptFile, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AcceptFile)

  StringRef getArgument() const override { return "attn-accept-file"; }
  StringRef getDescription() const override {
    return "Bring ops of other producers into the form of the stage import; refuse later stages";
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager manager(ModuleOp::getOperationName());
    addTosaPasses(manager);
    manager.getDependentDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpPassManager manager(ModuleOp::getOperationName());
    addTosaPasses(manager);
    if (failed(verifyStage(module, "import", module.getLoc())) ||
        (hasTosa(module) && failed(runPipeline(manager, module))))
      return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>())
      if (failed(bringIntoForm(function)))
        return signalPassFailure();
  }
};
} // namespace

void attn::registerStagePipelines() {
  PassRegistration<AcceptFile>();
  struct Options : PassPipelineOptions<Options> {
    Option<std::string> schedule{*this, "schedule", llvm::cl::desc("How attentions become loops")};
    Option<int64_t> workers{*this, "workers",
                            llvm::cl::desc("How many threads compute the tasks; 0 if unknown"),
                            llvm::cl::init(0)};
  };
  for (size_t last = 0; last < getStages().size(); ++last) {
    const Stage &stage = getStages()[last];
    PassPipelineRegistration<Options>(("attn-to-" + stage.name).str(),
                                      ("the stages up to this one; result: " + stage.leaves).str(),
                                      [last](OpPassManager &manager, const Options &options) {
                                        manager.addPass(std::make_unique<AcceptFile>());
                                        for (const Stage &step : getStages().take_front(last + 1))
                                          addStage(manager, step,
                                                   {options.schedule, options.workers});
                                      });
  }
}
