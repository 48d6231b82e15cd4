//===- TilePrefetch.h - what a tile needs next comes meanwhile ---*- C++ -*-===//
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

/// A tile of queries is packed, and one of outputs written, in one go between two long computations, and
/// nothing there hides the way to memory. Keys and values are new to the caches where a head begins. So the
/// steps of the products ask for them, one line or a few at a time: a cache has few lines under way, and what
/// asks for more at once waits, with all that follows.
///
/// A tile asks for its outputs, for the next queries, which lie behind its own, and for its share of the keys and
/// values of the next head, if the head has other tiles of queries: once in each loop over keys. Otherwise each
/// block of keys asks for the values that belong to it and for the keys as far behind as the tile of keys is
/// long.
class TilePrefetch {
public:
  /// For what is packed for `product`, the scores of `update`, before it or the loop over keys around it,
  /// and finished behind, as far as rows are contiguous.
  static TilePrefetch create(OnlineUpdateOp update, mlir::linalg::LinalgOp product);

  /// Asks for what is due in `steps` of the `length` steps, from `step` on, of the products of the keys
  /// `[key, key + height)` of the update.
  void createShare(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value key, int64_t height,
                   mlir::Value step, int64_t steps, int64_t length) const;

private:
  /// Rows of a buffer, `count` of them from `first` on.
  struct Rows {
    mlir::Value buffer;
    mlir::Value first;
    int64_t count;

    int64_t getLines() const; // of a row
    /// Where row `first + row` begins, an LLVM pointer.
    mlir::Value createPointer(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value row) const;
    mlir::Value createStride(mlir::OpBuilder &builder, mlir::Location loc) const; // in bytes
  };
  /// Keys and values that no other tile of queries reads.
  void addKeys(OnlineUpdateOp update, int64_t numKeys);
  /// A share of the keys and values of the head behind this one.
  void addNextHead(OnlineUpdateOp update, int64_t numKeys, mlir::Value queries, int64_t tile);

  mlir::scf::ForOp loop;          // null for a single tile of keys
  std::optional<int64_t> numKeys; // of all tiles
  llvm::SmallVector<Rows, 2> ofKeys;
  llvm::SmallVector<Rows, 4> ofTile;
};

} // namespace attn

#endif // ATTN_CODEGEN_CPU_TILEPREFETCH_H
