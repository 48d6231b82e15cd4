//===- FlattenLevels.cpp - move the code of all levels into one module -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func private @f(tensor<4xf32> {attn.name = "x"}) -> tensor<4xf32>
//   module @"x86-64-v3" attributes {attn.target = #attn.cpu<"x86-64-v3", ...>} {
//     func.func @f(%call: !llvm.ptr, %x: memref<4xf32> {attn.name = "x"}, ...) { func.call @f.rows(...) }
//     func.func private @f.rows(...) {...}
//   }
// ==>
//   func.func @f.x86-64-v3(%call: !llvm.ptr, %x: memref<4xf32> {attn.name = "x"}, ...) attributes {
//       target_cpu = "x86-64-v3", target_features = #llvm.target_features<["+avx", ...]>,
//       passthrough = ["no-builtins", ...]} { func.call @f.rows.x86-64-v3(...) }
//   func.func private @f.rows.x86-64-v3(...) attributes {target_cpu = ...} {...}
//
// The target of each nested module moves its code (CodegenInterface::embed); the module of the example is for a CPU.
// The new attributes of the functions are attributes of llvm.func, to which the conversion of func.func copies them.
// Nested modules without attn.target stay unchanged.
// Test: test/codegen/emit/flatten-levels.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"
#include "codegen/emit/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace attn {
#define GEN_PASS_DEF_FLATTENLEVELS
#include "codegen/emit/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
struct FlattenLevels : attn::impl::FlattenLevelsBase<FlattenLevels> {
  void runOnOperation() override {
    ModuleOp top = getOperation();
    for (auto function : llvm::make_early_inc_range(top.getOps<func::FuncOp>()))
      if (function.isDeclaration())
        function.erase();
    for (ModuleOp level : llvm::make_early_inc_range(top.getOps<ModuleOp>())) {
      auto target = level->getAttrOfType<TargetInterface>(AttnDialect::kTargetAttr);
      if (!target)
        continue;
      auto codegen = dyn_cast<CodegenInterface>(target);
      if (!codegen) {
        level.emitError() << "expected a target with code generation, got " << target;
        return signalPassFailure();
      }
      if (failed(codegen.embed(level, top)))
        return signalPassFailure();
    }
  }
};
} // namespace
