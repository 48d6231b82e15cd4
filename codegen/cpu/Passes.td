//===- Passes.td - passes of the vectorize stage ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_PASSES_TD
#define ATTN_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def OnlineToVector : Pass<"attn-online-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lower the online softmax to vectors with queries in lanes";
  let description = [{
    Lowers `attn.online_init`, `attn.online_update`, `attn.online_weights` and `attn.online_finish` on buffers to
    loops over vectors of exactly the target's lanes, with masks where the lanes do not divide the queries.
    Exponentials are polynomials; nothing becomes a call.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // ATTN_CODEGEN_CPU_PASSES_TD
