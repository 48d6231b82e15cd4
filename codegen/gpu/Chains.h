//===- Chains.h - loops over tiles of keys and values -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_CHAINS_H
#define ATTN_CODEGEN_GPU_CHAINS_H

#include "codegen/gpu/TileCopies.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace attn {

/// The operands of an attn.online_step or an attn.online_probabilities. The latter has no value, so `value` is null.
struct StepTiles {
  mlir::Operation *op;
  mlir::OpOperand *query, *key, *value;

  llvm::SmallVector<mlir::OpOperand *> keyAndValue() const {
    return value ? llvm::SmallVector<mlir::OpOperand *>{key, value}
                 : llvm::SmallVector<mlir::OpOperand *>{key};
  }
  /// The number of queries of a full tile, which is the size of the buffer that contains the maxima.
  int64_t getTileQueries() const;
};

/// The steps inside `op`, in order.
llvm::SmallVector<StepTiles> findSteps(mlir::Operation *op);

/// Consecutive loops over the tiles of keys of one attention, or one op that is not a loop. Each loop begins at the
/// upper bound of the previous loop. All loops use the same buffers for tiles in shared memory.
struct Chain {
  llvm::SmallVector<mlir::Operation *> ops; // scf.for, or one other op
  llvm::SmallVector<StepTiles> steps;

  mlir::scf::ForOp loop(unsigned i) { return mlir::dyn_cast<mlir::scf::ForOp>(ops[i]); }
  bool hasLoops() { return mlir::isa<mlir::scf::ForOp>(ops.front()); }
  /// The number of keys of a tile in shared memory, rounded up to a multiple of 16, because matrix instructions read 16
  /// keys at a time.
  int64_t getTileKeys();
  /// Whether a block of `threads` threads multiplies the tiles with wgmma.
  bool isByWarpgroups(int64_t threads);
  /// Fails with an error if queries, keys and values do not have one type and static head sizes, or if keys or values
  /// in a loop are not views of buffers.
  llvm::LogicalResult verify();
};

/// The chains of `block`, in order.
llvm::SmallVector<Chain> findChains(mlir::Block &block);

/// Clones the ops inside `scope` that `value` depends on to the insertion point of `b`, and returns the clone of
/// `value`. `mapping` has the clones of earlier calls, and replacements for loop variables.
mlir::Value cloneSlice(ThreadBuilder &b, mlir::Value value, mlir::Operation *scope,
                       mlir::IRMapping &mapping);

/// The argument of `task` that `buffer` is a view of. Null if there is none, or if the task writes to the argument.
mlir::BlockArgument findConstantArgument(mlir::func::FuncOp task, mlir::Value buffer);

/// The op in the body of `loop` that skips hidden tiles of a packed mask: all steps of an iteration are in its first
/// branch. Null if there is no such op.
mlir::scf::IfOp findTileTest(mlir::scf::ForOp loop);

/// Whether `value` can be computed a second time at another place of `task`: it depends only on arguments of the task,
/// on the variable of `loop`, which may be null, and on no memory that the task writes.
bool canClone(mlir::func::FuncOp task, mlir::Value value, mlir::scf::ForOp loop);

/// The place in shared memory of a tile that steps read.
struct StagedTile {
  /// Allocates memory at `top` for `stages` tiles like `operand`, with `rows` rows, and emits code at `b` that clears
  /// the padding.
  static StagedTile create(ThreadBuilder &top, ThreadBuilder &b, mlir::Value operand, int64_t rows,
                           int64_t stages, bool isSwizzled, int64_t threads);

  SharedTile tile;
  mlir::Value buffer;
};

/// Emits code at `b` in which `threads` threads together copy the tile `query` to `staged`. Returns a view of the rows
/// of `staged` that hold `query`.
mlir::Value copyQueries(ThreadBuilder &b, mlir::Value query, const StagedTile &staged,
                        int64_t threads);

} // namespace attn

#endif // ATTN_CODEGEN_GPU_CHAINS_H
