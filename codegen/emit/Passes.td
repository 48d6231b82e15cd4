//===- Passes.td - passes of the emit stage --------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_PASSES_TD
#define ATTN_CODEGEN_EMIT_PASSES_TD

include "mlir/Pass/PassBase.td"

def FlattenLevels : Pass<"attn-flatten-levels", "::mlir::ModuleOp"> {
  let summary = "Move the functions of all level modules into one";
  let description = [{
    Every symbol gets the name of its level as a suffix, every function the instructions that its level may use,
    so that one object holds the code of several levels. Signatures of users, declared beside the level modules,
    are dropped.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def LowerKernelAbi : Pass<"attn-lower-kernel-abi", "::mlir::ModuleOp"> {
  let summary = "Give kernels the signatures of attn_kernel.h";
  let description = [{
    Entries, workspace and pack functions and tasks take pointers and build their memrefs from them;
    attn.parallel_for becomes a call through the parallel_for of the call, with a context on the stack.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ExpandDynamicShapes : Pass<"attn-expand-dynamic-shapes", "::mlir::ModuleOp"> {
  let summary = "Expand a dimension of a buffer to several of unknown size";
  let description = [{
    The sizes are those that memref.expand_shape gives, where the upstream lowering would divide.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect"];
}

def ReadBooleans : Pass<"attn-read-booleans", "::mlir::ModuleOp"> {
  let summary = "Read a boolean as a byte compared with 0";
  let description = [{
    A load of i1 in the LLVM dialect says nothing of bytes that are neither 0 nor 1, which a mask may hold.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def StoreBF16AsI16 : Pass<"attn-store-bf16-as-i16", "::mlir::ModuleOp"> {
  let summary = "Replace the type bf16 by i16 in the LLVM dialect";
  let description = [{
    Code that only moves bf16 needs no library function for it then. Constants keep their bits.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // ATTN_CODEGEN_EMIT_PASSES_TD
