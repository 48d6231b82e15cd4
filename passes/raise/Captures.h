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

/// Computes the element of captured operand `capture` at the start of the score region, from the values that its
/// tensor is computed from: coordinates, constants, and elements of tensors that do not vary with both query and key.
/// These tensors become captured operands. Adds a score region if the attention has none. Returns null and changes
/// nothing if the tensor varies with query or key alone or is not computed elementwise from such values, or if the
/// region would need a division, a math function or too many instructions for each pair.
mlir::Value computeCapture(AttentionOp op, unsigned capture);

/// The number of the captured operand with the tensor and the map of `read`; adds such an operand if there is none. No
/// operand can be added to an attention that is `bounded`: the last captured operand is its bound.
unsigned captureElement(AttentionOp op, const Access &read);

/// Computes a tensor with the loops `dims` of the attention and captures it. `compute` returns an element of type `type`
/// from the elements of the captured operands `captures`; these must not vary with other loops. Returns the number of
/// the new captured operand.
unsigned captureComputed(
    AttentionOp op, llvm::ArrayRef<unsigned> dims, llvm::ArrayRef<unsigned> captures,
    mlir::Type type,
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)> compute);

} // namespace attn

#endif // ATTN_PASSES_RAISE_CAPTURES_H
