//===- TargetPasses.cpp - the passes of the target of a module -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// With stage=vectorize,
//   module @"x86-64-v4" attributes {attn.target = #attn.cpu<...>} { linalg.contract ... }
//   module @device attributes {attn.target = #another.target<...>} { linalg.contract ... }
// becomes
//   module @"x86-64-v4" attributes {attn.target = #attn.cpu<...>} { scf.for ... vector.fma ... }
//   module @device attributes {attn.target = #another.target<...>} { the output of the passes of that target }
//
// The pass builds the pipeline when it runs on a module, because the stages are built before the targets are known.
// Test: test/target/loops.test
//
//===----------------------------------------------------------------------===//

#include "codegen/TargetPasses.h"
#include "codegen/Codegen.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace attn;

namespace {
struct TargetPasses : PassWrapper<TargetPasses, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TargetPasses)

  TargetPasses() = default;
  TargetPasses(const TargetPasses &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "attn-target-passes"; }
  StringRef getDescription() const override {
    return "Run the passes that the target of the module adds to the end of a stage";
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    for (const TargetFamily *family : getFamilies()) {
      OpPassManager manager(ModuleOp::getOperationName());
      family->addPasses(stage, manager);
      manager.getDependentDialects(registry);
    }
  }

  void runOnOperation() override {
    TargetInterface target = getTarget(getOperation());
    if (!target) // a module without code, such as the one around the levels
      return;
    auto codegen = dyn_cast<CodegenInterface>(target);
    if (!codegen) {
      getOperation().emitError() << "expected a target with code generation, got " << target;
      return signalPassFailure();
    }
    OpPassManager manager(ModuleOp::getOperationName());
    codegen.addPasses(stage, manager);
    if (failed(runPipeline(manager, getOperation())))
      signalPassFailure();
  }

  Option<std::string> stage{*this, "stage",
                            llvm::cl::desc("The stage to whose end the target adds passes")};
};
} // namespace

std::unique_ptr<Pass> attn::createTargetPasses(StringRef stage) {
  auto pass = std::make_unique<TargetPasses>();
  pass->stage = stage.str();
  return pass;
}
