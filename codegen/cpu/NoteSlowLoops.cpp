//===- NoteSlowLoops.cpp - say which ops become slow loops -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A remark at each op that makes its loop slow: one over scalars, because its body reads memory at indices
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
      // Ops of several lines become one: what makes it slow knows its line.
      op.getBlock()->walk([](Operation *inner) {
        if (isa<memref::LoadOp>(inner))
          inner->emitRemark() << "loop over scalars: reads memory at indices that are data";
        if (isComputedInDouble(inner))
          inner->emitRemark() << "loop in f64: computes " << inner->getName();
      });
    });
  }
};
} // namespace
