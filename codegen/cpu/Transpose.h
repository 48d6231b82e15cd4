//===- Transpose.h - L vectors of L lanes, transposed ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_TRANSPOSE_H
#define ATTN_CODEGEN_CPU_TRANSPOSE_H

#include "codegen/cpu/Lanes.h"

namespace attn {

/// Transposes L rows of L lanes with L log2(L) shuffles: lane i of result j is lane j of row i.
llvm::SmallVector<mlir::Value> createTranspose(mlir::OpBuilder &builder, mlir::Location loc,
                                               llvm::ArrayRef<mlir::Value> rows);

/// Adds up the lanes of each of L rows of L lanes with 2 (L - 1) shuffles: lane i of the result is the sum of row i.
mlir::Value createSumsOfLanes(mlir::OpBuilder &builder, mlir::Location loc,
                              llvm::ArrayRef<mlir::Value> rows);

/// Copies element [row, column] of the input to element [column, row] of the output. `load` returns elements of a row,
/// starting at the offset of the lanes; `store` receives elements of a column. The copy uses whole blocks of L x L
/// elements, where L is `lanes`, and masked blocks at the edges. In masked blocks, the last row takes the place of each
/// missing row.
void createTransposedCopy(
    mlir::OpBuilder &builder, mlir::Location loc, int64_t lanes, mlir::OpFoldResult numRows,
    mlir::OpFoldResult numColumns,
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value row, const Lanes &)> load,
    llvm::function_ref<void(mlir::OpBuilder &, mlir::Value column, const Lanes &, mlir::Value)>
        store);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_TRANSPOSE_H
