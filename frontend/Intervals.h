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

/// An interval that contains integers. Each integer is the sum of two numbers: an element of `argument`, or 0 if
/// `argument` is null, and a number in [least, most].
struct Interval {
  mlir::BlockArgument argument;
  int64_t least, most;
};

/// The greatest absolute value of a number that is added to an argument, and the greatest number of rows of a tensor
/// that the sum indexes. The sum of such a number and an index fits into 32 bits.
inline constexpr int64_t kMostOffset = 1 << 20, kMostRows = 1 << 30;

/// Returns the interval of the elements of `value`. `value` is a tensor, or a scalar in the body of the op that
/// computes the elements. Returns none if the interval is not known. Follows chains of at most `depth` producers.
std::optional<Interval> intervalOf(mlir::Value value, int depth = 12);

/// Returns true if the induction variable of `loop` grows from iteration to iteration, as a signed integer.
bool countsUp(mlir::scf::ForOp loop);

} // namespace attn

#endif // ATTN_FRONTEND_INTERVALS_H
