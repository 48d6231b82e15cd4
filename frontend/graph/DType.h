//===- DType.h - element types -----------------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_GRAPH_DTYPE_H
#define ATTN_FRONTEND_GRAPH_DTYPE_H

#include "mlir/IR/BuiltinTypes.h"

namespace attn::graph {

/// Element types. The numbers are those of torch's schema of .pt2 files.
enum class DType {
  U8 = 1,
  I8 = 2,
  I16 = 3,
  I32 = 4,
  I64 = 5,
  F16 = 6,
  F32 = 7,
  F64 = 8,
  Bool = 12,
  BF16 = 13
};

mlir::Type elementType(DType dtype, mlir::MLIRContext *context);
llvm::StringRef str(DType dtype);
/// The number of bytes of an element in a file.
unsigned byteSize(DType dtype);
inline bool isFloat(DType dtype) {
  return dtype == DType::F16 || dtype == DType::F32 || dtype == DType::F64 || dtype == DType::BF16;
}
/// Whether values of the type may be negative.
inline bool isSigned(DType dtype) { return dtype != DType::Bool && dtype != DType::U8; }
/// The type in which torch computes: float32 for float16 and bfloat16, otherwise the type itself.
inline DType computeType(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
}

} // namespace attn::graph

#endif // ATTN_FRONTEND_GRAPH_DTYPE_H
