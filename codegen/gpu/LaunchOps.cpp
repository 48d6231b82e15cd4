//===- LaunchOps.cpp - every op on elements runs on the GPU ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @forward(%x: memref<64xf32>, %y: memref<64xf32>, ...) {
//     linalg.generic ... ins(%x) outs(%y)            // on elements in memory of the GPU, outside of tasks
// becomes
//   func.func @forward(%x: memref<64xf32>, %y: memref<64xf32>, ...) {
//     scf.forall (%task) in (1) { linalg.generic ... ins(%x) outs(%y) }
//
// The entry itself runs on the CPU, which cannot read such memory. An op that is not lowered for threads and accesses
// elements there is an error, at the line of the user's model. Test: test/codegen/gpu/launch-ops.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

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
      if (isa<scf::ForallOp>(op))
        return WalkResult::skip(); // a task
      if (isa<linalg::LinalgOp, PackMaskOp>(op)) {
        launch(op);
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

  static void launch(Operation *op) {
    OpBuilder builder(op);
    auto task = scf::ForallOp::create(builder, op->getLoc(),
                                      ArrayRef<OpFoldResult>{builder.getIndexAttr(1)}, ValueRange{},
                                      std::nullopt);
    op->moveBefore(task.getTerminator());
  }
};
} // namespace
