//===- TilePipeline.h - tiles that other warps copy ---------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// One thread, the producer, copies boxes of a tensor to a circular buffer of tiles in shared memory. The warps that
// compute, the consumers, read the tiles. Each stage of the buffer has two barriers in shared memory (PTX manual,
// "mbarrier"): `full`, at which the copy arrives, and `empty`, at which each consumer warp arrives when it has read the
// tile. In turn n, a thread copies or reads tile n, in stage n mod s of s stages. A consumer waits until phase n / s of
// `full` is over, and the producer waits until the previous phase of `empty` is over. Only the parity of a phase is
// tested.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_TILEPIPELINE_H
#define ATTN_CODEGEN_GPU_TILEPIPELINE_H

#include "codegen/gpu/Chains.h"

namespace attn {

/// The number of tiles of queries in shared memory if a block runs several tasks: one is copied while another is read.
inline constexpr int64_t kQueryStages = 2;

/// The bytes of shared memory for barriers and the alignment of tiles.
inline constexpr int64_t kBarrierBytes = 1024;

class TilePipeline {
public:
  /// Allocates, at `top`, a circular buffer of `stages` tiles like `operand` with `rows` rows.
  TilePipeline(ThreadBuilder &top, mlir::Value operand, int64_t rows, int64_t stages);

  /// Emits code that initializes the barriers. One thread must run it before other threads use the barriers. `warps`
  /// warps consume each tile.
  void initialize(ThreadBuilder &b, int64_t warps) const;

  /// Emits code for a thread that counts its turns in `turn`: it waits until the tile of this turn is empty, and starts
  /// to copy the box of `map`, a tensor map, at `coordinates` to the tile. The first coordinate is that of the first
  /// dimension.
  void produce(ThreadBuilder &b, mlir::Value turn, mlir::Value map,
               mlir::ArrayRef<mlir::Value> coordinates) const;

  /// Emits code for a warp that counts its turns in `turn`: it waits until the tile of this turn is full.
  void wait(ThreadBuilder &b, mlir::Value turn) const;
  /// The tile of this turn, with `rows` rows.
  mlir::Value view(ThreadBuilder &b, mlir::Value turn, mlir::OpFoldResult rows) const;
  /// Emits code that signals to the producer that this warp has read the tile, and increments `turn`.
  void release(ThreadBuilder &b, mlir::Value turn) const;

  /// Creates a counter of turns that each thread keeps in a register.
  static mlir::Value createTurn(ThreadBuilder &top);

  const SharedTile &getTile() const { return tile; }

private:
  mlir::Value stageOf(ThreadBuilder &b, mlir::Value turn) const;
  mlir::Value barrier(ThreadBuilder &b, mlir::Value barriers, mlir::Value stage) const;
  /// Emits code that waits until phase `turn` / stages + `add` of the barrier of this turn is over.
  void waitFor(ThreadBuilder &b, mlir::Value barriers, mlir::Value turn, int64_t add) const;

  SharedTile tile;
  int64_t stages;
  mlir::Value tiles, full, empty;
};

} // namespace attn

#endif // ATTN_CODEGEN_GPU_TILEPIPELINE_H
