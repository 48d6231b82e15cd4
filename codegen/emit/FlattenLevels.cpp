//===- FlattenLevels.cpp - several levels in one module --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func private @f(tensor<4xf32> {attn.name = "x"}) -> tensor<4xf32>
//   module @"x86-64-v3" attributes {attn.target = #attn.target<"x86-64-v3", ...>} {
//     func.func @f(%call: !llvm.ptr, %x: memref<4xf32> {attn.name = "x"}, ...) { func.call
//     @f.rows(...) } func.func private @f.rows(...) {...}
//   }
// ==>
//   func.func @f.x86-64-v3(%call: !llvm.ptr, %x: memref<4xf32> {attn.name = "x"}, ...) attributes {
//       target_cpu = "x86-64-v3", target_features = #llvm.target_features<["+avx", ...]>,
//       passthrough = ["no-builtins", ...]} { func.call @f.rows.x86-64-v3(...) }
//   func.func private @f.rows.x86-64-v3(...) attributes {target_cpu = ...} {...}
//
// The attributes are those of llvm.func; the conversion of functions copies them. Nested modules
// without attn.target stay where they are.
//
//===----------------------------------------------------------------------===//

#include "codegen/Target.h"
#include "codegen/emit/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {
#define GEN_PASS_DEF_FLATTENLEVELS
#include "codegen/emit/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static void setTarget(func::FuncOp function, const Target &target) {
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
  // LLVM must not turn an idiom into a call of the C library, which kernels do not link. Vectors keep
  // the width that the IR gives them.
  function->setAttr("passthrough", builder.getArrayAttr(
                                       {builder.getStringAttr("no-builtins"),
                                        builder.getStringAttr("nounwind"), pair("uwtable", "2"),
                                        pair("prefer-vector-width", Twine(target.vectorBits)),
                                        pair("min-legal-vector-width", Twine(target.vectorBits))}));
}

namespace {
struct FlattenLevels : attn::impl::FlattenLevelsBase<FlattenLevels> {
  void runOnOperation() override {
    ModuleOp top = getOperation();
    for (auto function : llvm::make_early_inc_range(top.getOps<func::FuncOp>()))
      if (function.isDeclaration())
        function.erase();
    for (ModuleOp level : llvm::make_early_inc_range(top.getOps<ModuleOp>())) {
      auto attr = level->getAttrOfType<TargetAttr>(AttnDialect::kTargetAttr);
      if (!attr)
        continue;
      llvm::Expected<const Target *> target = lookupTarget(attr.getLevel());
      if (!target) {
        level.emitError(llvm::toString(target.takeError()));
        return signalPassFailure();
      }
      if (failed(flatten(level, **target, top)))
        return signalPassFailure();
    }
  }

  LogicalResult flatten(ModuleOp level, const Target &target, ModuleOp top) {
    for (Operation &op : llvm::make_early_inc_range(*level.getBody())) {
      auto symbol = dyn_cast<SymbolOpInterface>(op);
      if (!symbol)
        return op.emitError() << "expected only symbols in the module of a level, got '"
                              << op.getName() << "'";
      auto name = StringAttr::get(&getContext(), symbol.getName() + "." + target.level);
      if (failed(SymbolTable::replaceAllSymbolUses(symbol, name, level)))
        return op.emitError() << "expected every use of '" << symbol.getName() << "' to be known";
      symbol.setName(name);
      if (auto function = dyn_cast<func::FuncOp>(op))
        setTarget(function, target);
    }
    top.getBody()->getOperations().splice(top.getBody()->end(), level.getBody()->getOperations());
    level.erase();
    return success();
  }
};
} // namespace
