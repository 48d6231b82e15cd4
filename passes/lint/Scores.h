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

/// Whether `op` computes tensors element by element or views them.
bool isElementwiseOrView(mlir::Operation *op);

/// The tensors between a product and the softmax: the result of the product, and the tensors computed from it
/// elementwise, up to the input of the softmax. Empty if the softmax reads no product.
llvm::SetVector<mlir::Value> scoresOf(mlir::linalg::SoftmaxOp softmax);

/// The ops that a result of the function depends on.
llvm::DenseSet<mlir::Operation *> liveOps(mlir::func::FuncOp function);

} // namespace attn

#endif // ATTN_PASSES_LINT_SCORES_H
