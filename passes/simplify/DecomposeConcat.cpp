//===- DecomposeConcat.cpp - concatenated results are written in place -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %c = tensor.concat dim(2) %a, %b
// becomes
//   %e = tensor.empty
//   %0 = tensor.insert_slice %a into %e[0, 0, 0] ...
//   %c = tensor.insert_slice %b into %0[0, 0, 4] ...
//
// eliminate-empty-tensors then lets the ops that compute %a and %b write directly to their parts of %e.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_DECOMPOSECONCAT
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;

namespace {

struct DecomposeConcat : attn::impl::DecomposeConcatBase<DecomposeConcat> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    tensor::populateDecomposeTensorConcatPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
