//===- Scores.h - what softmaxes read, dead code included ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// What the rules of lint share that look at graphs as imported.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_LINT_SCORES_H
#define ATTN_PASSES_LINT_SCORES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn {

/// Whether `op` computes tensors element by element or views them.
bool isElementwiseOrView(mlir::Operation *op);

/// The tensors from a product to the softmax of it: the product's result and what is computed from
/// it elementwise until the softmax reads it. None where the softmax reads no product.
llvm::SetVector<mlir::Value> scoresOf(mlir::linalg::SoftmaxOp softmax);

/// The ops of which a result of the function is made.
llvm::DenseSet<mlir::Operation *> liveOps(mlir::func::FuncOp function);

} // namespace attn

#endif // ATTN_PASSES_LINT_SCORES_H
