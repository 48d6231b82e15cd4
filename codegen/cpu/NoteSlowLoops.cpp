//===- NoteSlowLoops.cpp - say which ops become slow loops -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A remark at each op that is about to become a slow loop: one over scalars, because its body reads memory at indices
// that are data, or one over vectors of half the lanes, because its body calls a function that is computed in f64. The
// report lists the remarks. Nothing changes.
// Test: test/codegen/cpu/note-slow-loops.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/DoubleMath.h"
#include "codegen/cpu/Passes.h"

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
      bool reads = false;
      Operation *inDouble = nullptr;
      op.getBlock()->walk([&](Operation *inner) {
        reads |= isa<memref::LoadOp>(inner);
        if (isComputedInDouble(inner))
          inDouble = inner;
      });
      if (reads)
        op.emitRemark() << "loop over scalars: reads memory at indices that are data";
      if (inDouble)
        op.emitRemark() << "loop in f64: computes " << inDouble->getName();
    });
  }
};
} // namespace
