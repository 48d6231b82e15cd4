//===- Phased.cpp - one task for each tile of queries ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %q = linalg.contract ... ins(%x, %wq)   %k = ... ins(%x, %wk)   %v = ... ins(%x, %wv)
//   %o = attn.attention ins(%q, %k, %v) outs(%e) plan(<phased, q = 48, k = 96>)
// becomes
//   %q = linalg.contract ... ins(%x, %wq)   %k = ... ins(%x, %wk)   %v = ... ins(%x, %wv)
//   %o = scf.forall (%b, %h, %i) = (0, 0, 0) to (2, 12, %s) step (1, 1, 48) shared_outs(%e) {
//     attn.attention ins(%qi, %kh, %vh) outs(...) at(%b, %h, %i, 0) plan(...)
//
// Projections stay where they are, and Phases.cpp divides them into tasks. There are many small tasks instead of one
// task for each head, but queries, keys and values are written to memory and read again. An attention with another
// schedule stays unchanged. Test: test/passes/schedule/phased.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/schedule/TileAndFuse.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PHASED
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
struct Phased : attn::impl::PhasedBase<Phased> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (AttentionOp op : findUnscheduled(getOperation(), Schedule::Phased)) {
      rewriter.setInsertionPoint(op);
      if (succeeded(tileByQuery(rewriter, op)))
        continue;
      op.emitError() << "expected an attention that tiles by query, got one that does not";
      return signalPassFailure();
    }
  }
};
} // namespace
