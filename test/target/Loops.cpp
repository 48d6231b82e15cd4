//===- Loops.cpp - a family of machines without vectors, for tests ---------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// In each of its decisions, this family of targets differs from the family of CPUs: attentions are unfused, products
// have no register blocks, weights are not packed, tasks are sequential loops in their function, and code consists of
// scalar loops. This file adds the family to the tools that are linked with it. No other source of these tools mentions
// the family.
//
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"
#include "codegen/cpu/Passes.h"
#include "passes/Passes.h"
#include "passes/plan/Planner.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

#include "test/target/Dialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "test/target/Attributes.h.inc"

#include "test/target/Dialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "test/target/Attributes.cpp.inc"

using namespace mlir;
using namespace attn;

void loops::LoopsDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "test/target/Attributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

double loops::TargetAttr::predictPlan(const AttentionShape &shape, PlanAttr) const {
  return double(shape.heads) * shape.groups * shape.queries * shape.keys * (shape.d + shape.e);
}

SmallVector<Prediction> loops::TargetAttr::predictPlans(const AttentionShape &shape,
                                                        std::optional<Schedule>) const {
  auto plan = PlanAttr::get(getContext(), Schedule::Unfused, /*q=*/1, /*k=*/1, /*group=*/1);
  return {{plan, predictPlan(shape, plan)}};
}

Attribute loops::TargetAttr::planProduct(const ProductShape &) const { return nullptr; }

TaskSize loops::TargetAttr::planTask(const ProductShape &, BlockAttr) const { return {96, 0}; }

int64_t loops::TargetAttr::getLanes() const { return 1; }

int64_t loops::TargetAttr::getCacheBytes() const { return 0; }

Panel loops::TargetAttr::choosePanel(const ProductShape &) const { return {0, 1}; }

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

namespace {
/// Decomposes each softmax into a maximum, exponentials, a sum and a division.
struct DecomposeSoftmax : PassWrapper<DecomposeSoftmax, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DecomposeSoftmax)

  StringRef getArgument() const override { return "loops-decompose-softmax"; }

  void runOnOperation() override {
    getOperation().walk([](linalg::SoftmaxOp softmax) {
      OpBuilder builder(softmax);
      FailureOr<SmallVector<Value>> results = softmax.decomposeOperation(builder);
      assert(succeeded(results) && "a softmax on tensors decomposes");
      softmax->replaceAllUsesWith(*results);
      softmax->erase();
    });
  }
};
} // namespace

static void addPassesTo(StringRef stage, OpPassManager &level) {
  if (stage == "tile")
    level.addNestedPass<func::FuncOp>(std::make_unique<DecomposeSoftmax>());
  if (stage == "bufferize") {
    level.addNestedPass<func::FuncOp>(createForallToForLoopPass());
    level.addPass(createPlanWorkspace());
    level.addPass(createOutlineTasks()); // without tasks, it only removes the workspace of tasks
    level.addPass(createCanonicalizerPass());
  }
  if (stage == "vectorize") {
    level.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
    level.addNestedPass<func::FuncOp>(createExpandHalves());
    level.addNestedPass<func::FuncOp>(createExpandMath());
    level.addPass(createCanonicalizerPass());
  }
}

void loops::TargetAttr::addPasses(StringRef stage, OpPassManager &manager) const {
  addPassesTo(stage, manager);
}

//===----------------------------------------------------------------------===//
// The code and the list of levels
//===----------------------------------------------------------------------===//

static TargetInterface makeAttr(const Target &target, MLIRContext *context) {
  context->loadDialect<loops::LoopsDialect>();
  return loops::TargetAttr::get(context, target.level);
}

static const Target kLoops = {"loops", "x86_64-unknown-linux-gnu", {}, makeAttr};
static const Target *const kTargets[] = {&kLoops};

llvm::Expected<const Target *> loops::TargetAttr::getDescription() const {
  return lookupTarget(kTargets, getLevel());
}

LogicalResult loops::TargetAttr::embed(ModuleOp level, ModuleOp library) const {
  return moveSymbols(level, library, [](func::FuncOp function) {
    Builder builder(function.getContext());
    function->setAttr("passthrough", builder.getStrArrayAttr({"no-builtins", "nounwind"}));
  });
}

static const TargetFamily kFamily = {
    kTargets, [](DialectRegistry &registry) { registry.insert<loops::LoopsDialect>(); },
    addPassesTo};

static const bool kIsAdded = (addFamily(kFamily), true);
