//===- Passes.td - passes of the emit stage --------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_PASSES_TD
#define ATTN_CODEGEN_EMIT_PASSES_TD

include "mlir/Pass/PassBase.td"

def FlattenLevels : Pass<"attn-flatten-levels", "::mlir::ModuleOp"> {
  let summary = "move the functions of all level modules into one module";
  let description = [{
    Every symbol of a level gets the name of the level as a suffix, and every function of a level for CPUs gets the
    features of the level, so that one object file can hold the code of several levels. The module around the
    levels also declares the functions of the model; the pass removes these declarations. For the IR before and after,
    see the header of `codegen/emit/FlattenLevels.cpp`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def LowerKernelAbi : Pass<"attn-lower-kernel-abi", "::mlir::ModuleOp"> {
  let summary = "give kernels the signatures of attn_kernel.h";
  let description = [{
    Kernels are functions of four kinds: an entry executes one call of a compiled function, a workspace function
    computes the size of the workspace of such a call, a pack function packs the weights, and a task does one unit of
    parallel work. The pass makes these functions take pointers, and build their memrefs from the pointers.
    `attn.parallel_for` becomes a call of the `parallel_for` that the runtime passes in, with a context on the stack.
    For the IR before and after, see the header of `codegen/emit/LowerKernelAbi.cpp`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ExpandDynamicShapes : Pass<"attn-expand-dynamic-shapes", "::mlir::ModuleOp"> {
  let summary = "lower each memref.expand_shape that splits one dimension into several dynamic ones";
  let description = [{
    Takes the sizes from the operands of `memref.expand_shape`. MLIR's own lowering computes a dynamic size by division,
    and cannot do so for several dynamic sizes. For the IR before and after, see the header of
    `codegen/emit/ExpandDynamicShapes.cpp`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect"];
}

def SeparateScratch : Pass<"attn-separate-scratch", "::mlir::ModuleOp"> {
  let summary = "tell LLVM that the temporaries of a task do not overlap";
  let description = [{
    Loads and stores get alias scopes that depend on the offset of their temporary in the workspace of the worker. For
    the IR before and after, see the header of `codegen/emit/SeparateScratch.cpp`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ReadBooleans : Pass<"attn-read-booleans", "::mlir::ModuleOp"> {
  let summary = "read each boolean as a byte that is compared with 0";
  let description = [{
    A load of i1 in the LLVM dialect is undefined for a byte that is neither 0 nor 1, and a mask may hold such bytes.
    For the IR before and after, see the header of `codegen/emit/ReadBooleans.cpp`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def StoreBF16AsI16 : Pass<"attn-store-bf16-as-i16", "::mlir::ModuleOp"> {
  let summary = "replace the type bf16 by i16 in the LLVM dialect";
  let description = [{
    Without this pass, LLVM may call a library function where the code only moves bf16. Constants keep their bits. For
    the IR before and after, see the header of `codegen/emit/StoreBF16AsI16.cpp`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // ATTN_CODEGEN_EMIT_PASSES_TD
