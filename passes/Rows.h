//===- Rows.h - which dimensions are rows --------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Rows are independent of each other: each row of a result depends on one row of some operands and on all elements of
// the other operands, as in a product with weights, a normalisation or an activation. If ops have the same rows, tasks
// can each compute some rows of all these ops.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_ROWS_H
#define ATTN_PASSES_ROWS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn {

/// The dimensions of a value that hold rows, or the loops of an op that run over rows: batch dimensions first.
using Rows = llvm::SmallVector<int64_t, 2>;

/// Whether tasks of rows can compute `op` together with other ops: `op` reads tensors only through its indexing maps.
bool canShareRows(mlir::linalg::LinalgOp op);

/// The loops over rows: for a product, the loops of the left operand that the right operand lacks; for a reduction, all
/// parallel loops. None for an elementwise op, because the ops before or after it determine its rows.
std::optional<Rows> findRowLoops(mlir::linalg::LinalgOp op);

/// The loops over rows of a product that lie at equal distances in its left operand and in its result, which has the
/// dimensions of `out`: the innermost loop over rows, and the loops before it if both tensors have them side by side in
/// this order. The outermost loop comes first; loops of one iteration are left out.
Rows findEvenRowLoops(mlir::linalg::LinalgOp product, mlir::AffineMap out);
Rows findEvenRowLoops(mlir::linalg::LinalgOp product);

/// The dimensions of an operand, read through `map`, that `loops` run over; none if the operand lacks one of the loops.
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
