//===- DecomposeConcat.cpp - concatenated results are written in place -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %c = tensor.concat dim(2) %a, %b
// becomes
//   %e = tensor.empty
//   %0 = tensor.insert_slice %a into %e[0, 0, 0] ...
//   %copy = linalg.copy ins(%b) outs(%empty)
//   %c = tensor.insert_slice %copy into %0[0, 0, 4] ...
//
// eliminate-empty-tensors then gives the ops that compute what is inserted their part of %e to write to. An attention
// that nothing else reads, such as %a, computes straight into it. Whatever else is concatenated is copied, as the graph
// says.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Access.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_DECOMPOSECONCAT
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;

using namespace attn;

/// Whether `part` is computed where it is concatenated: heads in a list are.
static bool computesInPlace(Value part) {
  return part.hasOneUse() && part.getDefiningOp<AttentionOp>();
}

namespace {

struct DecomposeConcat : attn::impl::DecomposeConcatBase<DecomposeConcat> {
  void runOnOperation() override {
    getOperation().walk([](tensor::ConcatOp concat) {
      OpBuilder builder(concat);
      for (OpOperand &part : concat->getOpOperands()) {
        if (computesInPlace(part.get()))
          continue;
        auto type = cast<RankedTensorType>(part.get().getType());
        SmallVector<OpFoldResult> sizes;
        for (int64_t i = 0; i < type.getRank(); ++i)
          sizes.push_back(dimOf(builder, concat.getLoc(), part.get(), i));
        Value empty =
            tensor::EmptyOp::create(builder, concat.getLoc(), sizes, type.getElementType());
        part.set(
            linalg::CopyOp::create(builder, concat.getLoc(), part.get(), empty).getResult(0));
      }
    });
    RewritePatternSet patterns(&getContext());
    tensor::populateDecomposeTensorConcatPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
