//===- CloneTargets.cpp - one nested module for each ISA level -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   module attributes {attn.targets = [#attn.cpu<"x86-64-v4", ...>, #attn.cpu<"x86-64", ...>]} {
//     func.func @forward(%x: tensor<...>) -> tensor<...> { ... }
//   }
// becomes
//   module {
//     func.func private @forward(tensor<...>) -> tensor<...>
//     module @"x86-64-v4" attributes {attn.target = #attn.cpu<"x86-64-v4", ...>} { func.func @forward ... }
//     module @"x86-64" attributes {attn.target = #attn.cpu<"x86-64", ...>} { func.func @forward ... }
//   }
//
// The module is cloned in this stage because tile sizes differ between ISA levels. The declarations keep the signature
// that users see. A target gets no module if its code would be the same as the code for a later target of the list. A
// module without targets stays unchanged. Test: test/passes/plan/clone-targets.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"
#include "passes/plan/Planner.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_CLONETARGETS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
struct CloneTargets : attn::impl::CloneTargetsBase<CloneTargets> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto targets = module->getAttrOfType<ArrayAttr>(AttnDialect::kTargetsAttr);
    if (!targets)
      return;
    module->removeAttr(AttnDialect::kTargetsAttr);
    auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    for (auto [i, attribute] : llvm::enumerate(targets)) {
      auto target = cast<TargetInterface>(attribute);
      auto planner = dyn_cast<PlannerInterface>(attribute);
      bool isRepeated =
          planner && llvm::any_of(targets.getValue().drop_front(i + 1), [&](Attribute other) {
            return planner.makesSameCode(cast<TargetInterface>(other), module);
          });
      if (isRepeated)
        continue;
      auto level = ModuleOp::create(builder, module.getLoc(), target.getLevel());
      level->setAttr(AttnDialect::kTargetAttr, target);
      OpBuilder inner = OpBuilder::atBlockEnd(level.getBody());
      for (func::FuncOp function : functions)
        inner.clone(*function);
    }
    for (func::FuncOp function : functions) {
      function.eraseBody();
      function.setPrivate();
    }
  }
};
} // namespace
