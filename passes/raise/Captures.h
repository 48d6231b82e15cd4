//===- Captures.h - captured operands as formulas -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_CAPTURES_H
#define ATTN_PASSES_RAISE_CAPTURES_H

#include "dialect/Attn.h"
#include "passes/Access.h"

namespace attn {

/// Computes the element of captured operand `capture` at the start of the score region, which is added where there
/// is none, from what its tensor is computed from: coordinates, constants, and elements of tensors without the
/// query or without the key, which become captured operands. Null, and nothing is changed, where the tensor varies
/// with query or key alone, is not computed elementwise from such, or would cost a division or a function for each
/// pair.
mlir::Value computeCapture(AttentionOp op, unsigned capture);

/// The captured operand that is the element of `read`, added where there is none yet.
unsigned captureElement(AttentionOp op, const Access &read);

} // namespace attn

#endif // ATTN_PASSES_RAISE_CAPTURES_H
