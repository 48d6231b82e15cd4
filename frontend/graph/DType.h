//===- DType.h - element types -----------------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_GRAPH_DTYPE_H
#define ATTN_FRONTEND_GRAPH_DTYPE_H

#include "mlir/IR/BuiltinTypes.h"

namespace attn::graph {

/// Element types.
enum class DType { U8, I8, I16, I32, I64, F16, F32, F64, Bool, BF16 };

mlir::Type elementType(DType dtype, mlir::MLIRContext *context);
/// The dtype of signed numbers or of booleans with elements of `type`; none if there is none.
std::optional<DType> dtypeOf(mlir::Type type);
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
