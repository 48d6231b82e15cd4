//===- NoteSlowLoops.cpp - say which ops become slow loops -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Emits a remark at each op that makes a loop slow. If the body of a linalg op reads memory at indices that are data,
// the op becomes a loop over scalars. If the body computes a function in f64 (DoubleMath.h), the vectors of the loop
// have half as many lanes. The report lists the remarks. The pass does not change the IR.
// Test: test/codegen/cpu/note-slow-loops.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/DoubleMath.h"
#include "codegen/cpu/Passes.h"
#include "dialect/Finding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_NOTESLOWLOOPS
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

namespace {
struct NoteSlowLoops : attn::impl::NoteSlowLoopsBase<NoteSlowLoops> {
  void runOnOperation() override {
    getOperation().walk([](linalg::LinalgOp op) {
      // Ops from several source lines may be fused into this op; the inner op has the location of its own line.
      op.getBlock()->walk([](Operation *inner) {
        if (isa<memref::LoadOp>(inner))
          emitFinding(inner->getLoc(), Finding::SlowLoop)
              << "loop over scalars: reads memory at indices that are data";
        if (isComputedInDouble(inner))
          emitFinding(inner->getLoc(), Finding::SlowLoop)
              << "loop in f64: computes " << inner->getName();
      });
    });
  }
};
} // namespace
