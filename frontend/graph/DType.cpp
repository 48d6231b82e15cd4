//===- DType.cpp - element types -------------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/graph/DType.h"

#include "mlir/IR/Builders.h"

using namespace llvm;
using namespace attn::graph;

mlir::Type attn::graph::elementType(DType dtype, mlir::MLIRContext *context) {
  mlir::Builder builder(context);
  switch (dtype) {
  case DType::U8:
  case DType::I8:
  case DType::I16:
  case DType::I32:
  case DType::I64:
    return builder.getIntegerType(8 * byteSize(dtype));
  case DType::Bool:
    return builder.getI1Type();
  case DType::F16:
    return builder.getF16Type();
  case DType::BF16:
    return builder.getBF16Type();
  case DType::F32:
    return builder.getF32Type();
  case DType::F64:
    return builder.getF64Type();
  }
  llvm_unreachable("checked when parsed");
}

std::optional<DType> attn::graph::dtypeOf(mlir::Type type) {
  for (DType dtype : {DType::I8, DType::I16, DType::I32, DType::I64, DType::F16, DType::F32,
                      DType::F64, DType::Bool, DType::BF16})
    if (elementType(dtype, type.getContext()) == type)
      return dtype;
  return std::nullopt;
}

StringRef attn::graph::str(DType dtype) {
  switch (dtype) {
  case DType::U8:
    return "uint8";
  case DType::I8:
    return "int8";
  case DType::I16:
    return "int16";
  case DType::I32:
    return "int32";
  case DType::I64:
    return "int64";
  case DType::Bool:
    return "bool";
  case DType::F16:
    return "float16";
  case DType::BF16:
    return "bfloat16";
  case DType::F32:
    return "float32";
  case DType::F64:
    return "float64";
  }
  llvm_unreachable("checked when parsed");
}

unsigned attn::graph::byteSize(DType dtype) {
  switch (dtype) {
  case DType::U8:
  case DType::I8:
  case DType::Bool:
    return 1;
  case DType::I16:
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::I32:
  case DType::F32:
    return 4;
  case DType::I64:
  case DType::F64:
    return 8;
  }
  llvm_unreachable("checked when parsed");
}
