//===- Passes.td - passes of the vectorize stage ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_PASSES_TD
#define ATTN_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // ATTN_CODEGEN_CPU_PASSES_TD
