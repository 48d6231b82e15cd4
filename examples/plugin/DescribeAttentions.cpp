//===- DescribeAttentions.cpp - print the size of every attention -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn-opt --load-pass-plugin=libdescribe-attentions.so
//     --pass-pipeline='builtin.module(describe-attentions)'
//
// emits a remark at every attn.attention:
//
//   remark: attention of 16 heads, 14 queries and 14 keys
//
// The number of heads is that of the whole batch: here 2 batch elements of 8 heads each.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/plan/Planner.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {
struct DescribeAttentions : PassWrapper<DescribeAttentions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DescribeAttentions)

  StringRef getArgument() const final { return "describe-attentions"; }
  StringRef getDescription() const final { return "Emit a remark with the size of every attention"; }

  void runOnOperation() final {
    getOperation().walk([](attn::AttentionOp op) {
      attn::AttentionShape shape = attn::AttentionShape::get(op);
      op.emitRemark() << "attention of " << shape.heads * shape.groups << " heads, "
                      << shape.queries << " queries and " << shape.keys << " keys";
    });
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "describe-attentions", "0.1",
          [] { PassRegistration<DescribeAttentions>(); }};
}
