//===- LowerCopies.cpp - copies become linalg ops --------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   memref.copy %a, %b : memref<8x4xf32> to memref<8x4xf32>
// becomes
//   linalg.copy ins(%a : memref<8x4xf32>) outs(%b : memref<8x4xf32>)
//
// Bufferization inserts memref.copy where a value is overwritten while it is still needed. MLIR has two lowerings of
// memref.copy, and both call library functions, which compiled code must not call. A linalg op becomes a loop.
// Test: test/passes/bufferize/lower-copies.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_LOWERCOPIES
#include "passes/Passes.h.inc"
} // namespace attn

namespace {
struct LowerCopies : attn::impl::LowerCopiesBase<LowerCopies> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](memref::CopyOp copy) {
      rewriter.setInsertionPoint(copy);
      rewriter.replaceOpWithNewOp<linalg::CopyOp>(copy, copy.getSource(), copy.getTarget());
    });
  }
};
} // namespace
