//===- OnlineStart.h - the state of an attention before its first key -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Creates the state of an online softmax before the first key, for attn-tile-keys and attn-decode.
// Test: test/passes/tile/tile-keys.mlir, test/passes/schedule/decode.mlir
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_ONLINESTART_H
#define ATTN_PASSES_ONLINESTART_H

#include "dialect/Attn.h"

namespace attn {

/// The state of an online softmax over a tile of queries: max (q), sum (q), and acc, which is (e, q) or, with `rows`,
/// (q, e).
struct OnlineState {
  mlir::Value max, sum, acc;
};

/// Writes the state of `op` before its first key to `outs`. `sink` is the sink of the tile, (q) or a scalar, or null.
/// The score of the sink is the initial maximum, and its exponential relative to this maximum, 1, is the initial sum. A
/// sink has no value, so the accumulator stays 0. `numKeys` is the number of all keys of `op`. Without keys, the
/// output is an empty sum, 0, even if `empty_row` is NaN.
OnlineState createOnlineStart(mlir::OpBuilder &builder, mlir::Location loc, AttentionOp op,
                              const OnlineState &outs, mlir::Value sink, mlir::OpFoldResult numKeys,
                              bool rows);

} // namespace attn

#endif // ATTN_PASSES_ONLINESTART_H
