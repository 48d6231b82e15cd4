//===- Conditions.h - conditions as parts of a mask ----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_CONDITIONS_H
#define ATTN_PASSES_RAISE_CONDITIONS_H

#include "dialect/Attn.h"

namespace attn {

/// Conditions that all hold for a pair that is kept.
struct Kept {
  std::optional<int64_t> upper, lower; // k <= q + upper, k >= q - lower
  llvm::SmallVector<mlir::Attribute> masks;

  void add(const Kept &other) {
    auto tighten = [](std::optional<int64_t> &bound, std::optional<int64_t> by) {
      if (by)
        bound = std::min(bound.value_or(*by), *by);
    };
    tighten(upper, other.upper);
    tighten(lower, other.lower);
    llvm::append_range(masks, other.masks);
  }
};

/// Adds to `kept` the parts that must hold for `condition`, a boolean of the score region, to be `truth`. Computes and
/// captures numbers of kept keys. After a failure, the parts in `kept` are necessary but not sufficient.
llvm::LogicalResult readCondition(AttentionOp op, mlir::Value condition, bool truth, Kept &kept);

} // namespace attn

#endif // ATTN_PASSES_RAISE_CONDITIONS_H
