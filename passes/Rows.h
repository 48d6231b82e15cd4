//===- Rows.h - which dimensions are rows --------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Rows are independent of each other: each row of a result needs one row of some operands and all of the others, as in
// a product with weights, a normalisation or an activation. Ops that agree on what a row is can share tasks of rows.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_ROWS_H
#define ATTN_PASSES_ROWS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn {

/// The dimensions of a value that hold rows, or the loops of an op that run over rows: batch dimensions first.
using Rows = llvm::SmallVector<int64_t, 2>;

/// Whether tasks of rows can compute `op` beside other ops: it reads tensors at its loop variables only.
bool canShareRows(mlir::linalg::LinalgOp op);

/// The loops over rows of a product or of a reduction: those of the left operand that the right one lacks, or all
/// parallel loops. None for an elementwise op, whose rows are those of its neighbours.
std::optional<Rows> findRowLoops(mlir::linalg::LinalgOp op);

/// The dimensions of an operand, read through `map`, that the loops run over; none if the operand lacks one of them.
std::optional<Rows> rowsOfLoops(mlir::AffineMap map, llvm::ArrayRef<int64_t> loops);

/// The loops that run over the dimensions `rows` of an operand that is read through `map`.
std::optional<Rows> loopsOfRows(mlir::AffineMap map, llvm::ArrayRef<int64_t> rows);

/// Whether `op` is a tensor.expand_shape or tensor.collapse_shape.
bool isReshape(mlir::Operation *op);

/// The rows of the result of a reshape whose source has the rows `rows`; none if the reshape splits or merges rows.
std::optional<Rows> rowsOfReshape(mlir::Operation *reshape, llvm::ArrayRef<int64_t> rows);

/// The rows of the source of a reshape whose result has the rows `rows`; none if the reshape splits or merges rows.
std::optional<Rows> rowsOfReshaped(mlir::Operation *reshape, llvm::ArrayRef<int64_t> rows);

} // namespace attn

#endif // ATTN_PASSES_ROWS_H
