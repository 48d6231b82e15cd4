//===- SplitSoftmax.cpp - split softmaxes outside of attention -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %y = linalg.softmax dimension(1) ins(%x : tensor<8x512xf32>) outs(%init)
// becomes
//   %max = linalg.generic {"parallel", "reduction"} ins(%x)      the maximum of each row
//   %p = linalg.generic ins(%x, %max)                            exp(x - max)
//   %sum = linalg.generic {"parallel", "reduction"} ins(%p)      the sum of each row
//   %y = linalg.generic ins(%p, %sum)                            p / sum
//
// Test: test/codegen/gpu/split-softmax.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_SPLITSOFTMAX
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
struct SplitSoftmax : attn::impl::SplitSoftmaxBase<SplitSoftmax> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::SoftmaxOp> softmaxes;
    getOperation().walk([&](linalg::SoftmaxOp op) { softmaxes.push_back(op); });
    for (linalg::SoftmaxOp op : softmaxes) {
      rewriter.setInsertionPoint(op);
      FailureOr<SmallVector<Value>> results = op.decomposeOperation(rewriter);
      if (failed(results)) {
        op.emitError() << "expected a softmax that runs on a GPU, got one that cannot be split";
        return signalPassFailure();
      }
      rewriter.replaceOp(op, *results);
    }
  }
};
} // namespace
