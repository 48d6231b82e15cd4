//===- MaskTiles.h - which tiles of each attention are computed --*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Computes, for pictures of masks, which tiles compiled code visits at given sizes, and which pairs the mask keeps. The
// bounds of the tiles are those of the code (dialect/KeyBounds.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DRIVER_MASKTILES_H
#define ATTN_DRIVER_MASKTILES_H

#include "dialect/Reference.h"

#include "llvm/Support/Error.h"

#include <functional>

namespace attn {

/// The tiles and pairs of one attention, for one batch coordinate.
struct MaskTiles {
  /// For one tile of queries: [lo, hi) are the keys whose scores are computed, and [fullLo, fullHi) are the keys in
  /// full tiles, for which the mask is not tested.
  struct Row {
    int64_t lo, fullLo, fullHi, hi;
    /// The numbers of full tiles, of computed tiles and of all tiles. In the schedule decode, each part of the keys
    /// begins with a new tile.
    int64_t full, run, all;
  };
  struct Counts {
    int64_t full = 0, partial = 0, skipped = 0;
  };

  std::string source; ///< "file:line"
  std::string schedule;
  std::string mask;  ///< the text of the attribute, or "none"
  std::string batch; ///< the batch coordinate, if the mask depends on it
  /// Which values are known only at the call, and how the picture shows them. Empty if all are known.
  std::string note;
  int64_t queries, keys, queryTile, keyTile;
  int64_t copies;        ///< number of batch coordinates with this picture
  std::vector<Row> rows; ///< one for each tile of queries
  /// Whether the mask keeps a pair; null if that depends on values that are not known.
  std::function<bool(int64_t query, int64_t key)> keeps;

  /// Counts the tiles as the kernel does.
  Counts count() const;
};

/// The share of the tiles of an attention that every call skips, and whether a call may skip more, depending on its
/// inputs. The attention must have a plan.
struct SkippedShare {
  double least;
  bool mayGrow;
};
SkippedShare getSkippedShare(AttentionOp op);

/// The arguments of a call. If `hasValues` is false, only the sizes of the inputs are known; the elements of inputs and
/// weights are not.
struct MaskCall {
  llvm::ArrayRef<ReferenceTensor> inputs;
  const llvm::StringMap<ReferenceTensor> &weights;
  bool hasValues;
};

/// Returns the tiles of all attentions of `entry`. `planned` is the text of a module of stage `plan`, of which the
/// first level is used. If `entry` is empty, the first function is used.
llvm::Expected<std::vector<MaskTiles>> findMaskTiles(llvm::StringRef planned, llvm::StringRef entry,
                                                     const MaskCall &call);

/// Makes inputs of zeros for the function `entry` of `planned`. `sizes` gives the sizes of dynamic dimensions by name.
llvm::Expected<std::vector<ReferenceTensor>> makeZeroInputs(llvm::StringRef planned,
                                                            llvm::StringRef entry,
                                                            const llvm::StringMap<int64_t> &sizes);

} // namespace attn

#endif // ATTN_DRIVER_MASKTILES_H
