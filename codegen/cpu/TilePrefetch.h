//===- TilePrefetch.h - the edges of a tile come while it is computed -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_TILEPREFETCH_H
#define ATTN_CODEGEN_CPU_TILEPREFETCH_H

#include "codegen/cpu/Prefetch.h"
#include "dialect/Attn.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// A tile of queries is packed, and one of outputs written, in one go between two long
/// computations, and nothing there hides the way to memory. So the computation asks for them a row
/// at a time: for the outputs of this tile, and the next queries, which lie behind those of this
/// tile. Where these are all queries of a head, its keys and values are new to the caches, as a rule: then it
/// also asks for the values of this tile, and for the keys of the next, or of the next head. These, and all that the
/// only tile of keys asks for, are spread over the steps of the products: a cache has few lines under way at a time,
/// and what asks for more at once waits, with all that follows. Where many tiles of queries share the keys of a head,
/// they ask for those of the next head, each for a part.
class TilePrefetch {
public:
  /// What is packed before and finished after `update`, or the loop over keys around it, as far as
  /// rows are contiguous.
  static TilePrefetch create(OnlineUpdateOp update);

  /// In a loop over keys: asks for the queries and outputs that are due while the keys
  /// `[key, key + numKeys)` of the update are computed: rows are spread over all keys of the tile, as
  /// far as their number is known, and no thinner than one row in eight keys.
  void createNext(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value key, int64_t numKeys);

  /// Asks for keys and values, and in a single tile for the others too, as far as they are due in
  /// `steps` of the `length` steps, from `step` on, of the products of these keys.
  void createShare(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value key, int64_t numKeys,
                   mlir::Value step, int64_t steps, int64_t length) const;

private:
  struct Rows {
    mlir::Value buffer;
    int64_t ahead; // rows behind those of the tile
    bool isWrite;
    bool isKeys = false; // a row belongs to a key, not to a query

    int64_t getWidth() const;
    int64_t getElementsPerLine() const;
    void createLine(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value row,
                    mlir::Value column, Cache level) const;
    void create(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value row, Cache level) const;
  };
  /// Keys and values that no other tile of queries reads.
  void addKeys(OnlineUpdateOp update, int64_t numKeys);
  /// Keys and values of the head behind this one: each tile of `queries` asks for a share of them.
  void addNextHead(OnlineUpdateOp update, int64_t numKeys, mlir::Value queries, int64_t tile);
  void createNextHead(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value key,
                      int64_t numKeys) const;

  mlir::scf::ForOp loop; // null for a single tile of keys
  mlir::OpFoldResult numRows;
  int64_t keysPerRow = 8;
  /// Of queries and outputs. A single tile of keys asks for more than the first cache can wait for; long
  /// rows for more than it holds.
  Cache level = Cache::Second;
  llvm::SmallVector<Rows, 2> all;
  llvm::SmallVector<Rows, 2> nextHead;
  int64_t numTiles = 0;  // of queries of a head
  mlir::Value tilesLeft; // of this one
};

} // namespace attn

#endif // ATTN_CODEGEN_CPU_TILEPREFETCH_H
