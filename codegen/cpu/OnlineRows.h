//===- OnlineRows.h - the online softmax with queries in rows ---*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_ONLINEROWS_H
#define ATTN_CODEGEN_CPU_ONLINEROWS_H

#include "dialect/Attn.h"

#include "mlir/IR/PatternMatch.h"

namespace attn {

/// Each function lowers an op with the attribute `rows`, whose operands have queries in rows, to loops over vectors.
/// The caller verifies the operands before the call, and erases the op after it. The output of attn.online_finish must
/// have a contiguous last dimension.
void lowerRows(mlir::IRRewriter &rewriter, OnlineInitOp op, CpuAttr cpu);
llvm::LogicalResult lowerRows(mlir::IRRewriter &rewriter, OnlineStepOp op, CpuAttr cpu);
llvm::LogicalResult lowerRows(mlir::IRRewriter &rewriter, OnlineProbabilitiesOp op, CpuAttr cpu);
void lowerRows(mlir::IRRewriter &rewriter, OnlineMergeOp op, CpuAttr cpu);
void lowerRows(mlir::IRRewriter &rewriter, OnlineFinishOp op, CpuAttr cpu);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_ONLINEROWS_H
