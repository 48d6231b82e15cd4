//===- TileAndFuse.h - one level of loops around an op -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_SCHEDULE_TILEANDFUSE_H
#define ATTN_PASSES_SCHEDULE_TILEANDFUSE_H

#include "dialect/Attn.h"

#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/TilingInterface.h"

namespace attn {

/// Decides whether the producer of a tile moves into the loops. The arguments are the slice of the producer's result,
/// and that result.
using FuseControl = llvm::function_ref<bool(mlir::tensor::ExtractSliceOp, mlir::OpResult)>;

/// Tiles `op` by `tileSizes` (0: not tiled) and fuses the producers that `control` allows, and their producers in turn.
/// If the result of a fused producer has other uses, the loops return it, so that it is not computed twice. A producer
/// that reaches `op` on several paths stays outside, unless `mayRepeat` allows fusing it on each path; its tiles on all
/// paths must then be equal, and become one tile. Returns the tiled op and erases `op`, or fails and leaves `op` in
/// place.
mlir::FailureOr<mlir::Operation *>
tileAndFuse(mlir::IRRewriter &rewriter, mlir::TilingInterface op, mlir::ArrayRef<int64_t> tileSizes,
            mlir::scf::SCFTilingOptions::LoopType loopType, FuseControl control,
            llvm::function_ref<bool(mlir::OpResult)> mayRepeat = {});

/// Tiles `op` into a task for each batch item and each query tile of its plan. No producer moves into the tasks.
mlir::FailureOr<mlir::Operation *> tileByQuery(mlir::IRRewriter &rewriter, AttentionOp op);

/// Gives a loop over tasks the mapping that the planner of its target chooses. No pass folds a loop of one iteration
/// that has a mapping.
void mapTasks(mlir::scf::ForallOp tasks);

/// True if `slice` is an input of a contraction. A producer inside the loops would compute such a slice again for every
/// tile of the contraction's other dimensions.
bool feedsContraction(mlir::tensor::ExtractSliceOp slice);

/// The attentions that have one of `schedules` and are not yet in a task.
llvm::SmallVector<AttentionOp> findUnscheduled(mlir::Operation *root,
                                               llvm::ArrayRef<Schedule> schedules);

} // namespace attn

#endif // ATTN_PASSES_SCHEDULE_TILEANDFUSE_H
