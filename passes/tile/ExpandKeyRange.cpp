//===- ExpandKeyRange.cpp - key ranges as affine functions of the tile -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %lo, %full_lo, %full_hi, %hi = attn.key_range rows(%q, %rows) keys(%n) step 128
//                                             mask(#attn.causal)
// becomes
//   %lo = %full_lo = 0
//   %hi      = affine.min(%q + %rows, %n)
//   %full_hi = affine.min(%q + 1, %hi) floordiv 128 * 128
//
// The bounds come from dialect/KeyBounds.h, which KeyRangeOp::fold() uses too.
// Every attn.key_range is expanded. Test: test/passes/tile/expand-key-range.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/KeyBounds.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_EXPANDKEYRANGE
#include "passes/Passes.h.inc"
} // namespace attn

namespace {
struct ExpandKeyRange : attn::impl::ExpandKeyRangeBase<ExpandKeyRange> {
  void runOnOperation() override {
    getOperation()->walk([](KeyRangeOp op) {
      OpBuilder builder(op);
      KeyBounds bounds =
          KeyBounds::get(op.getContext(), op.getMaskAttr(), op.getBatch().size(), op.getStep());
      auto expanded = bounds.build(builder, op.getLoc(), getAsOpFoldResult(op->getOperands()));
      op->replaceAllUsesWith(getValueOrCreateConstantIndexOp(builder, op.getLoc(), expanded));
      op.erase();
    });
  }
};
} // namespace
