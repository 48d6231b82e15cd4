//===- HiddenPairs.h - conditions that hide scores -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_HIDDENPAIRS_H
#define ATTN_PASSES_RAISE_HIDDENPAIRS_H

#include "passes/raise/Element.h"

namespace attn {

/// About half the lowest float. If all other scores of a row are at most half the greatest float in magnitude, a score
/// of at most this number gets probability 0.
inline constexpr double kGreatestFiniteFill = -0x1p127;

/// Whether `condition` holds in exactly those rows of `scores` along `dim` that are all -inf:
/// not any(s != -inf), or all(s == -inf).
bool holdsInEmptyRows(Element condition, mlir::Value scores, unsigned dim);

/// The number that replaces NaN, if `value` is `probability` where this is not NaN, as from nan_to_num; none otherwise.
std::optional<Element> findNaNReplacement(const Element &value, const Element &probability);

/// A select that gives hidden pairs the constant score `value`, which is operand number `operand` of the select.
struct ConstantFill {
  double value;
  unsigned operand;
};

/// Finds the constant score of hidden pairs. `score` must be a select that gives the constant to exactly the pairs
/// where `condition` is `hides`. The constant must be at most kGreatestFiniteFill, and the scores of the other pairs
/// must be computed from products and from numbers above kGreatestFiniteFill. Then a hidden pair has probability 0 if
/// its row has a pair that is not hidden, and a row whose scores all equal the constant has only hidden pairs.
std::optional<ConstantFill> findFill(Element condition, bool hides, const Element &score);

} // namespace attn

#endif // ATTN_PASSES_RAISE_HIDDENPAIRS_H
