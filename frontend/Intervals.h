//===- Intervals.h - bounds on the integers that a graph computes -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_INTERVALS_H
#define ATTN_FRONTEND_INTERVALS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace attn {

/// A bound on integers: each is an element of `argument` (or 0 if `argument` is null) plus a number in [least, most].
struct Interval {
  mlir::BlockArgument argument;
  int64_t least, most;
};

/// If an interval has an argument, and its integers index at most this number of rows, no sum of 32 bits wraps around.
inline constexpr int64_t kMostRows = 1 << 30;

/// Returns the interval of the elements of `value`. `value` is a tensor, or a scalar in the body of the op that
/// computes the elements. Returns none if the interval is not known. Follows chains of at most `depth` producers.
std::optional<Interval> intervalOf(mlir::Value value, int depth = 12);

/// Whether the induction variable of `loop` grows from iteration to iteration, as a signed integer.
bool countsUp(mlir::scf::ForOp loop);

} // namespace attn

#endif // ATTN_FRONTEND_INTERVALS_H
