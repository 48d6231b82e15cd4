//===- LaunchOps.cpp - launch kernels for ops outside of tasks -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @forward(%x: memref<64xf32>, %y: memref<64xf32>, ...) {
//     linalg.generic ... ins(%x) outs(%y)            // on elements in GPU memory, outside of tasks
// becomes
//   func.func @forward(%x: memref<64xf32>, %y: memref<64xf32>, ...) {
//     scf.forall (%task) in (1) { linalg.generic ... ins(%x) outs(%y) }
//
// Each task gets its own copies of the memref.get_global ops that it uses; OutlineKernels makes their arrays constants
// in GPU memory. The entry itself runs on the CPU, which cannot access GPU memory. If an op outside of tasks accesses
// elements, but no pass can lower it for threads, the pass reports an error at the op's line in the user's model.
// Test: test/codegen/gpu/launch-ops.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_LAUNCHOPS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
struct LaunchOps : attn::impl::LaunchOpsBase<LaunchOps> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto kernel = function->getAttrOfType<StringAttr>(AttnDialect::kKernelAttr);
    if (function.isDeclaration() || (kernel && kernel == "pack"))
      return;
    WalkResult walk = function.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
      if (auto task = dyn_cast<scf::ForallOp>(op)) {
        cloneConstants(task);
        return WalkResult::skip();
      }
      if (isa<linalg::LinalgOp, PackMaskOp>(op)) {
        cloneConstants(launch(op));
        return WalkResult::skip();
      }
      auto effects = dyn_cast<MemoryEffectOpInterface>(op);
      bool accesses = effects && (effects.hasEffect<MemoryEffects::Read>() ||
                                  effects.hasEffect<MemoryEffects::Write>());
      if (accesses && !isa<CountTilesOp>(op))
        return op->emitError() << "expected an op that runs on a GPU, got '" << op->getName()
                               << "'";
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }

  /// Clones the memref.get_global ops that `task` uses into `task`, because the arrays of the entry are in CPU
  /// memory.
  static void cloneConstants(scf::ForallOp task) {
    llvm::SetVector<Value> used;
    getUsedValuesDefinedAbove(task.getRegion(), used);
    OpBuilder builder = OpBuilder::atBlockBegin(task.getBody());
    for (Value value : used)
      if (auto constant = value.getDefiningOp<memref::GetGlobalOp>())
        replaceAllUsesInRegionWith(value, builder.clone(*constant)->getResult(0), task.getRegion());
  }

  /// Moves `op` into a new task.
  static scf::ForallOp launch(Operation *op) {
    OpBuilder builder(op);
    auto task = scf::ForallOp::create(builder, op->getLoc(),
                                      ArrayRef<OpFoldResult>{builder.getIndexAttr(1)}, ValueRange{},
                                      std::nullopt);
    op->moveBefore(task.getTerminator());
    return task;
  }
};
} // namespace
