//===- Passes.h - passes of the emit stage -----------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_PASSES_H
#define ATTN_CODEGEN_EMIT_PASSES_H

#include "mlir/Pass/Pass.h"

namespace attn {

#define GEN_PASS_DECL
#include "codegen/emit/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "codegen/emit/Passes.h.inc"

/// Lowers the result of `vectorize`, a module for each level, to one module in the LLVM dialect.
void addLowerToLLVMPipeline(mlir::OpPassManager &manager);

/// Registers this pipeline as --attn-lower-to-llvm.
void registerLowerToLLVMPipeline();

} // namespace attn

#endif // ATTN_CODEGEN_EMIT_PASSES_H
