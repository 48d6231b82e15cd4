//===- Indices.h - indices that stay within their tensors -------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_INDICES_H
#define ATTN_FRONTEND_INDICES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace attn {

/// A bound on integers: each is an element of `argument` (or 0 if `argument` is null) plus a number in [least, most].
struct Interval {
  mlir::BlockArgument argument;
  int64_t least, most;
};

/// Returns the interval of the elements of `value`. `value` is a tensor, or a scalar in the body of the op that
/// computes the elements. Returns none if the interval is not known. Follows chains of at most `depth` producers.
std::optional<Interval> intervalOf(mlir::Value value, int depth = 12);

/// Whether `index` is computed from an element of a tensor or from the number of an iteration. Other indices are
/// computed from constants and from sizes alone.
bool varies(mlir::Value index);

/// Clamps the indices of tensor.extract and tensor.insert, the offsets of insertions of slices, and the offsets of
/// tensor.extract_slice that vary, to the nearest ones in bounds, unless they are proved to be in bounds.
mlir::LogicalResult clampIndices(mlir::func::FuncOp function);

} // namespace attn

#endif // ATTN_FRONTEND_INDICES_H
