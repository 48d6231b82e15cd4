//===- Conditions.h - conditions as parts of a mask ----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_CONDITIONS_H
#define ATTN_PASSES_RAISE_CONDITIONS_H

#include "dialect/Attn.h"

namespace attn {

/// A value of the region that must be nonzero, if `truth`, or zero for a pair to be kept.
struct Part {
  mlir::Value value;
  bool truth;
};

/// Conditions that all hold for a pair that is kept.
struct Kept {
  std::optional<int64_t> upper, lower; // k <= q + upper, k >= q - lower
  llvm::SmallVector<Part> lowerParts;  // the comparisons that state `lower`
  llvm::SmallVector<mlir::Attribute> masks;
  llvm::SmallVector<Part> rest; // what neither the bounds nor `masks` state

  void add(const Kept &other) {
    auto tighten = [](std::optional<int64_t> &bound, std::optional<int64_t> by) {
      if (by)
        bound = std::min(bound.value_or(*by), *by);
    };
    tighten(upper, other.upper);
    tighten(lower, other.lower);
    llvm::append_range(lowerParts, other.lowerParts);
    llvm::append_range(masks, other.masks);
    llvm::append_range(rest, other.rest);
  }
};

/// Splits the condition that `condition`, a boolean of the score region, is `truth` into parts. Computes and captures
/// numbers of kept keys. A number of kept keys that the graph gives can be used directly if `boundsLengths`: a call then
/// refuses numbers that are negative or larger than the number of keys.
Kept readCondition(AttentionOp op, mlir::Value condition, bool truth, bool boundsLengths);

} // namespace attn

#endif // ATTN_PASSES_RAISE_CONDITIONS_H
