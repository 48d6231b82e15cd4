//===- TilePrefetch.h - prefetching the next tile ----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_TILEPREFETCH_H
#define ATTN_CODEGEN_CPU_TILEPREFETCH_H

#include "dialect/Attn.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// A tile of queries is packed, and a tile of outputs is written, between two long computations, so no computation
/// hides the memory latency of these copies. The keys and values of a new head are not in the caches either. Therefore
/// the loops that compute products prefetch all of these buffers, one or a few cache lines in each iteration. A cache
/// can have only a few lines in flight: with too many prefetches at once, the next access waits, and so does all later
/// code.
///
/// The loop over keys for a tile of queries prefetches the tile's outputs and the next tile of queries in memory, each
/// once. If the head has other tiles of queries, the loop may also prefetch a share of the keys and values of the next
/// head. Otherwise each block of keys prefetches its own values, and the keys at the same position in the next tile of
/// keys.
class TilePrefetch {
public:
  /// Finds the buffers to prefetch. The queries are those that an attn.pack before `step`, or before the loop over keys
  /// around it, packs. The outputs are those of an attn.online_finish after `step`. Only buffers with contiguous rows
  /// are prefetched.
  static TilePrefetch create(OnlineStepOp step);

  /// Computing the products of the keys `[key, key + height)` takes `length` steps. Emits the prefetches that belong to
  /// `steps` of these steps, starting at `step`.
  void createShare(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value key, int64_t height,
                   mlir::Value step, int64_t steps, int64_t length) const;

private:
  /// `count` rows of a buffer, starting at row `first`.
  struct Rows {
    mlir::Value buffer;
    mlir::Value first;
    int64_t count;

    int64_t getLines() const; // cache lines per row
    /// The LLVM pointer to the start of row `first + row`.
    mlir::Value createPointer(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value row) const;
    mlir::Value createStride(mlir::OpBuilder &builder, mlir::Location loc) const; // in bytes
  };
  /// Adds keys and values that no other tile of queries reads.
  void addKeys(OnlineStepOp step, int64_t numKeys);
  /// Adds this tile's share of the keys and values of the next head.
  void addNextHead(OnlineStepOp step, int64_t numKeys, mlir::Value queries, int64_t tile);

  mlir::scf::ForOp loop;          // over tiles of keys; null if there is a single tile
  std::optional<int64_t> numKeys; // in all tiles of keys
  int64_t keysOfWholeTile = 0;    // used if `ofNext` is not empty
  llvm::SmallVector<Rows, 2> ofKeys;
  llvm::SmallVector<Rows, 1>
      ofNext; // the operands `prefetch` of the step; each block of keys prefetches its share
  llvm::SmallVector<Rows, 4> ofTile;
};

} // namespace attn

#endif // ATTN_CODEGEN_CPU_TILEPREFETCH_H
