//===- Safetensors.h - write weights ------------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_SAFETENSORS_H
#define ATTN_CODEGEN_EMIT_SAFETENSORS_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// One weight. Its data is row-major, with one byte for each i1. The struct owns neither the name nor the data.
struct Weight {
  llvm::StringRef name;
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> data;
};

/// Writes `weights`, whose element types all have a DataType, as a safetensors file.
void writeSafetensors(llvm::ArrayRef<Weight> weights, llvm::raw_ostream &out);

} // namespace attn

#endif // ATTN_CODEGEN_EMIT_SAFETENSORS_H
