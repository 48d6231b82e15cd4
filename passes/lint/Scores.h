//===- Scores.h - scores of softmaxes, dead code included ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Helpers of the lint rules that read imported graphs, before other passes remove dead ops.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_LINT_SCORES_H
#define ATTN_PASSES_LINT_SCORES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn {

/// Whether `op` is an elementwise op or a view.
bool isElementwiseOrView(mlir::Operation *op);

/// The scores of a softmax: the result of the product that they come from, and the tensors that elementwise ops and
/// views compute from this result, up to the input of the softmax. Empty if the input comes from no product.
llvm::SetVector<mlir::Value> scoresOf(mlir::linalg::SoftmaxOp softmax);

/// The ops that a result of the function depends on.
llvm::DenseSet<mlir::Operation *> liveOps(mlir::func::FuncOp function);

} // namespace attn

#endif // ATTN_PASSES_LINT_SCORES_H
