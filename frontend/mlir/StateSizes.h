//===- StateSizes.h - sizes in terms of arguments ----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_MLIR_STATESIZES_H
#define ATTN_FRONTEND_MLIR_STATESIZES_H

#include "frontend/mlir/FunctionSizes.h"

namespace attn {

/// Computes each known integer of a function from the sizes of its arguments alone, and turns each tensor.reshape into
/// tensor.collapse_shape and tensor.expand_shape. Fails if a tensor.reshape does not only merge and split dimensions.
mlir::LogicalResult stateSizes(FunctionSizes &sizes);

} // namespace attn

#endif // ATTN_FRONTEND_MLIR_STATESIZES_H
