//===- PossibleValues.h - values that follow from booleans ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_POSSIBLEVALUES_H
#define ATTN_PASSES_RAISE_POSSIBLEVALUES_H

#include "mlir/IR/Operation.h"

namespace attn {

/// The result of `op`, which has one result, if its operands are the constants `operands`; null if MLIR cannot fold it.
mlir::Attribute foldOp(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> operands);

/// The values that a scalar can have if it is computed from booleans and constants alone: 1 - uitofp(i1) has the values 1
/// and 0. The booleans count as independent of each other, so the scalar need not take all of these values. Returns
/// nothing for other scalars, and for those with more than four values.
std::optional<llvm::SmallVector<mlir::Attribute>> findPossibleValues(mlir::Value value);

} // namespace attn

#endif // ATTN_PASSES_RAISE_POSSIBLEVALUES_H
