//===- PossibleValues.h - values that follow from booleans ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Tests: test/passes/raise/extract-mask.mlir, test/passes/raise/fold-uniform.mlir
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_POSSIBLEVALUES_H
#define ATTN_PASSES_RAISE_POSSIBLEVALUES_H

#include "mlir/IR/Operation.h"

namespace attn {

/// The result of `op`, which has one result, if its operands have the values `operands`; null for a value that is not
/// known. The result is a constant, or an operand of `op`, or null if MLIR cannot fold the op.
mlir::OpFoldResult foldOp(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> operands);

/// The result of foldOp() for constants: an operand counts as its constant.
mlir::Attribute foldConstants(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> operands);

/// The values that a scalar can have if it is computed from booleans and constants alone: 1 - uitofp(i1) has the values 1
/// and 0. Every boolean may be true or false, whatever the others are, so the scalar need not take all of these values.
/// Returns nothing for other scalars, and for those with more than four values.
std::optional<llvm::SmallVector<mlir::Attribute>> findPossibleValues(mlir::Value value);

} // namespace attn

#endif // ATTN_PASSES_RAISE_POSSIBLEVALUES_H
