//===- TilePrefetch.h - the edges of a tile come while it is computed -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_TILEPREFETCH_H
#define ATTN_CODEGEN_CPU_TILEPREFETCH_H

#include "dialect/Attn.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// A tile of queries is packed, and one of outputs written, in one go between two long
/// computations, and nothing there hides the way to memory. So the computation asks for them a row
/// at a time: for the outputs of this tile, and the next queries, which lie behind those of this
/// tile.
class TilePrefetch {
public:
  /// What is packed before and finished after the loop over keys around `update`, as far as rows
  /// are contiguous.
  static TilePrefetch create(OnlineUpdateOp update);

  /// Asks for one row, the n-th that is asked for of a tile at the `n * keysPerRow`-th key.
  void createNext(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value key,
                  int64_t keysPerRow);

private:
  struct Rows {
    mlir::Value buffer;
    int64_t ahead; // rows behind those of the tile
    bool isWrite;
  };
  mlir::scf::ForOp loop;
  mlir::OpFoldResult numRows;
  llvm::SmallVector<Rows, 2> all;
};

} // namespace attn

#endif // ATTN_CODEGEN_CPU_TILEPREFETCH_H
