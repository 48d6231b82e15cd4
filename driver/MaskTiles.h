//===- MaskTiles.h - which tiles of each attention are computed --*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// For pictures: the tiles that compiled code visits at given sizes, by the bounds that it computes itself
// (dialect/KeyBounds.h), and the pairs that the mask keeps.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DRIVER_MASKTILES_H
#define ATTN_DRIVER_MASKTILES_H

#include "dialect/Reference.h"

#include "llvm/Support/Error.h"

#include <functional>

namespace attn {

/// The pairs of one attention, for one batch coordinate.
struct MaskTiles {
  /// Keys that a tile of queries computes, [lo, hi), and those of whole tiles that need no test.
  struct Row {
    int64_t lo, fullLo, fullHi, hi;
  };
  struct Counts {
    int64_t full = 0, partial = 0, skipped = 0;
  };

  std::string source; ///< "file:line"
  std::string schedule;
  std::string mask;  ///< as an attribute, or "none"
  std::string batch; ///< the coordinate, where the mask depends on it
  /// What is not known before the call and how it is shown, or empty.
  std::string note;
  int64_t queries, keys, queryTile, keyTile;
  int64_t copies;        ///< how many batch coordinates look like this one
  std::vector<Row> rows; ///< one for each tile of queries
  /// Whether a pair is kept; null where that depends on values that are not known.
  std::function<bool(int64_t query, int64_t key)> keeps;

  /// Tiles as the kernel counts them.
  Counts count() const;
};

/// The share of its tiles that `op`, which has a plan, skips in every call, and whether sizes or lengths of a call may
/// make it skip more.
struct SkippedShare {
  double least;
  bool mayGrow;
};
SkippedShare getSkippedShare(AttentionOp op);

/// What a call gives: a tensor for each input, and, if `hasValues`, what inputs and weights hold.
struct MaskCall {
  llvm::ArrayRef<ReferenceTensor> inputs;
  const llvm::StringMap<ReferenceTensor> &weights;
  bool hasValues;
};

/// The tiles of the attentions of function `entry` of the first level in `planned`, the text of a module as stage
/// `plan` leaves it. The function is the first if `entry` is empty.
llvm::Expected<std::vector<MaskTiles>> findMaskTiles(llvm::StringRef planned, llvm::StringRef entry,
                                                     const MaskCall &call);

/// Inputs of the function `entry` of `planned`, all zero, where each dynamic dimension has the size that `sizes` gives.
llvm::Expected<std::vector<ReferenceTensor>> makeZeroInputs(llvm::StringRef planned,
                                                            llvm::StringRef entry,
                                                            const llvm::StringMap<int64_t> &sizes);

} // namespace attn

#endif // ATTN_DRIVER_MASKTILES_H
