//===- Transpose.h - L vectors of L lanes, transposed ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_TRANSPOSE_H
#define ATTN_CODEGEN_CPU_TRANSPOSE_H

#include "mlir/IR/Builders.h"

namespace attn {

/// Lane i of result j is lane j of row i: L rows of L lanes, in L log2(L) shuffles.
llvm::SmallVector<mlir::Value> createTranspose(mlir::OpBuilder &builder, mlir::Location loc,
                                               llvm::ArrayRef<mlir::Value> rows);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_TRANSPOSE_H
