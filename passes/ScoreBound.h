//===- ScoreBound.h - upper bounds of scores -----------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Tests: test/passes/raise/extract-mask.mlir, test/passes/schedule/bound-fills.mlir
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_SCOREBOUND_H
#define ATTN_PASSES_SCOREBOUND_H

#include "dialect/Attn.h"

namespace attn {

/// Returns a number g so that |score| <= g * max(1, |product|), where `product` is the scaled product of query and key.
/// `score` is a value of the score region of `op`. Returns nothing if the value is computed from more than the product
/// and constants, or if no bound is known.
std::optional<double> boundScore(AttentionOp op, mlir::Value score);

/// The bound of the score that the region of `op` yields; 1 without a region.
std::optional<double> boundScore(AttentionOp op);

} // namespace attn

#endif // ATTN_PASSES_SCOREBOUND_H
