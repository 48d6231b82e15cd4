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

/// Like findFill(), but for other finite constants, such as -1e9. Then hidden pairs may count in the sum of their row.
/// If the constant is large, the scores of the other pairs must be computed from products of query and key and from small
/// numbers, because createScoreOfHidden() cannot count pairs beside it: it only decides for scores that are as large,
/// whose products have errors as large.
std::optional<ConstantFill> findFiniteFill(Element condition, bool hides, const Element &score);

/// Pairs that the op which computes the scores hides: those for which an element of a tensor is `hides`.
struct HiddenByTensor {
  Access condition; ///< read at the coordinates of the scores
  bool hides;
};

/// The pairs to which operand `fill` of a select, the last op that computes `scores`, gives their score; none if no tensor
/// holds the condition of the select, or if the condition does not vary along `keyDim`.
std::optional<HiddenByTensor> findHidden(mlir::Value scores, unsigned fill, unsigned keyDim);

/// One more score for each row, which stands for the hidden pairs of the row: `fill` plus the logarithm of their number,
/// so that its exponential is the sum of theirs; -inf if the row has none. `scores` gives the sizes.
Access createScoreOfHidden(mlir::OpBuilder &b, mlir::Location loc, mlir::Value scores,
                           const HiddenByTensor &hidden, double fill, unsigned keyDim);

} // namespace attn

#endif // ATTN_PASSES_RAISE_HIDDENPAIRS_H
