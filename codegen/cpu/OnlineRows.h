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

/// Each function lowers an op whose operands have queries in rows, and which was verified, to loops over vectors. It
/// leaves the op itself in place. The last dimension of the output of finish must be contiguous.
void lowerRows(mlir::IRRewriter &rewriter, OnlineInitOp op, CpuAttr cpu);
llvm::LogicalResult lowerRows(mlir::IRRewriter &rewriter, OnlineStepOp op, CpuAttr cpu);
llvm::LogicalResult lowerRows(mlir::IRRewriter &rewriter, OnlineProbabilitiesOp op, CpuAttr cpu);
void lowerRows(mlir::IRRewriter &rewriter, OnlineMergeOp op, CpuAttr cpu);
void lowerRows(mlir::IRRewriter &rewriter, OnlineFinishOp op, CpuAttr cpu);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_ONLINEROWS_H
