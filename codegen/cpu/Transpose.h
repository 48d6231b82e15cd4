//===- Transpose.h - L vectors of L lanes, transposed ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_TRANSPOSE_H
#define ATTN_CODEGEN_CPU_TRANSPOSE_H

#include "codegen/cpu/Lanes.h"

namespace attn {

/// Lane i of result j is lane j of row i: L rows of L lanes, in L log2(L) shuffles.
llvm::SmallVector<mlir::Value> createTranspose(mlir::OpBuilder &builder, mlir::Location loc,
                                               llvm::ArrayRef<mlir::Value> rows);

/// Lane i of the result is the sum of the lanes of row i: L rows of L lanes, in 2 (L - 1) shuffles.
mlir::Value createSumsOfLanes(mlir::OpBuilder &builder, mlir::Location loc,
                              llvm::ArrayRef<mlir::Value> rows);

/// Copies element [row, column] of the input to element [column, row] of the output. `load` returns
/// elements of a row, starting at the offset of the lanes; `store` receives elements of a column. The
/// copy uses whole blocks of L x L, and masked blocks at the edges. In masked blocks, the last row
/// replaces the missing rows.
void createTransposedCopy(
    mlir::OpBuilder &builder, mlir::Location loc, int64_t lanes, mlir::OpFoldResult numRows,
    mlir::OpFoldResult numColumns,
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value row, const Lanes &)> load,
    llvm::function_ref<void(mlir::OpBuilder &, mlir::Value column, const Lanes &, mlir::Value)>
        store);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_TRANSPOSE_H
