//===- MaskTensors.h - conditions as boolean tensors --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_MASKTENSORS_H
#define ATTN_PASSES_RAISE_MASKTENSORS_H

#include "passes/raise/Conditions.h"

namespace attn {

/// Whether computeMaskTensors can compute a tensor that states `part`: it varies with the key, and does not depend on the
/// scores.
bool canComputeTensor(AttentionOp op, Part part);

/// Replaces parts in `kept.rest` by masks: computes and captures boolean tensors that are true where the parts hold. A
/// tensor has only the loops that its parts name, so heads, batch items and layers can share it. A test in
/// `kept.masks` of a captured operand becomes part of a tensor that has the loops of the operand, so that a pair needs
/// one test.
void computeMaskTensors(AttentionOp op, Kept &kept);

} // namespace attn

#endif // ATTN_PASSES_RAISE_MASKTENSORS_H
