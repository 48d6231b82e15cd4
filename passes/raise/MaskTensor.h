//===- MaskTensor.h - conditions as a boolean tensor --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Computes the tensors that attn-extract-mask captures. Test: test/passes/raise/extract-mask.mlir
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_MASKTENSOR_H
#define ATTN_PASSES_RAISE_MASKTENSOR_H

#include "passes/raise/Conditions.h"

namespace attn {

/// Whether computeMaskTensor can compute `part`: it varies with the key, does not depend on the scores,
/// and the tensor is not too large.
bool canComputeTensor(AttentionOp op, Part part);

/// Replaces parts in `kept.rest` by one mask: computes and captures a boolean tensor that is true where the parts hold.
/// The tensor has only the loops that its parts name, so heads, batch items and layers can share it. The tests in
/// `kept.masks` of captured operands become parts too, so that a pair needs one test, and so that a tile is skipped if
/// the parts together hide it.
void computeMaskTensor(AttentionOp op, Kept &kept);

} // namespace attn

#endif // ATTN_PASSES_RAISE_MASKTENSOR_H
