//===- HiddenPairs.h - conditions that hide scores -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_HIDDENPAIRS_H
#define ATTN_PASSES_RAISE_HIDDENPAIRS_H

#include "passes/raise/Element.h"

namespace attn {

/// Half the least float: beside scores within half the greatest float, a fill of at most this gets probability 0.
inline constexpr double kGreatestFiniteFill = -0x1p127;

/// Whether `condition` holds in exactly those rows of `scores` along `dim` that are all -inf:
/// not any(s != -inf), or all(s == -inf).
bool holdsInEmptyRows(Element condition, mlir::Value scores, unsigned dim);

/// If the scores of all pairs where `condition` is `hides` are one constant of at most half the least float, that
/// constant: beside the score of another pair, a pair with this score has probability 0.
std::optional<double> findFill(Element condition, bool hides, const Element &score);

} // namespace attn

#endif // ATTN_PASSES_RAISE_HIDDENPAIRS_H
