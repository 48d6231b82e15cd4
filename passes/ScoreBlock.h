//===- ScoreBlock.h - score regions of attentions -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Creates and changes score regions for several passes. Tests: test/passes/plan/fill-in-region.mlir,
// test/passes/tile/tile-keys.mlir
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_SCOREBLOCK_H
#define ATTN_PASSES_SCOREBLOCK_H

#include "dialect/Attn.h"

namespace attn {

/// Creates a block in `region` that yields the score unchanged. The block has the arguments of a score region of `op`.
mlir::Block *createScoreBlock(mlir::OpBuilder &builder, AttentionOp op, mlir::Region &region);

/// Yields the fill of `op`, or its sum with the score, for pairs that its mask hides. `score` is a block with the
/// arguments of a score region of `op`.
void fillScores(mlir::OpBuilder &builder, AttentionOp op, mlir::Block &score);

} // namespace attn

#endif // ATTN_PASSES_SCOREBLOCK_H
