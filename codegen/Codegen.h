//===- Codegen.h - targets that generate code --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CODEGEN_H
#define ATTN_CODEGEN_CODEGEN_H

#include "codegen/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include "codegen/CodegenInterface.h.inc"

namespace attn {

/// Moves the symbols of module `level` into module `library`, and appends "." and the name of the level to each name.
/// Calls `change` on each function. Reports an error if `level` has ops that are not symbols.
llvm::LogicalResult moveSymbols(mlir::ModuleOp level, mlir::ModuleOp library,
                                llvm::function_ref<void(mlir::func::FuncOp)> change);

/// The name of the kernel with this number, which runs `task`, in the code of a GPU: letters, digits and underscores.
std::string getKernelName(llvm::StringRef task, int64_t number);

} // namespace attn

#endif // ATTN_CODEGEN_CODEGEN_H
