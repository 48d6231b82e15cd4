//===- OnlineProducts.h - the two products of an online softmax -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// OnlineToVector.cpp lowers the online ops with queries in lanes, and OnlineRows.cpp lowers those with queries in rows.
// Both use the functions of this file.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_ONLINEPRODUCTS_H
#define ATTN_CODEGEN_CPU_ONLINEPRODUCTS_H

#include "codegen/cpu/Contraction.h"
#include "codegen/cpu/Exp2.h"

namespace attn {

/// The products K Q^T of a tile as a contraction over (k, q, d), and the start of its sums, which is zero.
struct ScoreProducts {
  Contraction contraction;
  Start zero;
};

/// Creates the product of the keys and queries of `op`, an attn.online_step or attn.online_probabilities on buffers.
/// The product writes to `scores`, and gets the register block that was planned for it.
template <typename OpTy>
ScoreProducts createScoreProducts(mlir::OpBuilder &builder, OpTy op, mlir::Value scores,
                                  CpuAttr cpu);

/// Emits acc += V^T P^T, where P is the matrix of the probabilities.
llvm::LogicalResult weighValues(mlir::IRRewriter &rewriter, OnlineStepOp op, CpuAttr cpu);

/// Returns `value` with `replacement` in the lanes that equal `constant`.
mlir::Value createReplace(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          double constant, double replacement);

/// Returns the unnormalised probabilities of `scores`: powers of two with the exponents `relative.of(score)`.
llvm::SmallVector<mlir::Value> createProbabilities(mlir::OpBuilder &builder, mlir::Location loc,
                                                   mlir::ValueRange scores,
                                                   const Exponents &relative, CpuAttr cpu);

/// The output of a query without a kept key.
double valueOf(EmptyRow emptyRow);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_ONLINEPRODUCTS_H
