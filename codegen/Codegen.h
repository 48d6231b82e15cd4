//===- Codegen.h - targets that generate code --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CODEGEN_H
#define ATTN_CODEGEN_CODEGEN_H

#include "codegen/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include "codegen/CodegenInterface.h.inc"

namespace mlir {
class LLVMTypeConverter;
}

namespace attn {

/// Moves the symbols of module `level` into module `library`, and appends "." and the name of the level to each name.
/// Calls `change` on each function. Reports an error if an op in the body of `level` is not a symbol, or if an op
/// of an unregistered dialect in `level` might be a symbol table, because it has a region.
llvm::LogicalResult moveSymbols(mlir::ModuleOp level, mlir::ModuleOp library,
                                llvm::function_ref<void(mlir::func::FuncOp)> change);

/// Returns the name of the GPU kernel that runs `task`. `number` is the number of the kernel in its module. The name
/// consists of letters, digits and underscores.
std::string getKernelName(llvm::StringRef task, int64_t number);

/// The struct that a task reads its captured values from: a pointer if `hasPointer`, and then the captured values,
/// whose types are `captured`. The caller of attn.parallel_for writes the struct, and the task on a CPU, or the kernel
/// on a GPU, reads it.
mlir::LLVM::LLVMStructType getContextType(const mlir::LLVMTypeConverter &converter, bool hasPointer,
                                          mlir::TypeRange captured);

} // namespace attn

#endif // ATTN_CODEGEN_CODEGEN_H
