//===- Indices.h - indices that stay within their tensors -------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_MLIR_INDICES_H
#define ATTN_FRONTEND_MLIR_INDICES_H

#include "frontend/mlir/FunctionSizes.h"

namespace attn {

/// Whether `index` is computed from an element of a tensor or from the number of an iteration. Other indices are
/// computed from constants and from sizes alone.
bool varies(mlir::Value index);

/// Clamps the indices of tensor.extract and tensor.insert, the offsets of insertions of slices, and the offsets of
/// tensor.extract_slice that vary, to the nearest ones in bounds, unless they are proved to be in bounds.
mlir::LogicalResult clampIndices(FunctionSizes &sizes);

} // namespace attn

#endif // ATTN_FRONTEND_MLIR_INDICES_H
