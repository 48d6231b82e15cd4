//===- Rounding.h - roundings that an attention leaves out --------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A graph of f16 or bf16 computes each op in f32 and rounds its result. An attention rounds its outputs only; scores
// and the softmax are f32.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_ROUNDING_H
#define ATTN_PASSES_RAISE_ROUNDING_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn {

/// Returns the op that rounds each element of `value` to f16 or bf16, if no other op reads `value`; else null.
mlir::linalg::LinalgOp findRounding(mlir::Value value);

/// Makes the scalar ops of `region` compute `score`, an f32, without rounding values to f16 or bf16 in between. Returns
/// the new score. Ops that lose their uses stay in the region.
mlir::Value dropRoundings(mlir::Region &region, mlir::Value score);

} // namespace attn

#endif // ATTN_PASSES_RAISE_ROUNDING_H
