//===- Interpreter.h - interpret a module on tensors ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Interprets a module of a stage from `import` to `tile`. In these stages, values are tensors. Ops of attn are computed
// by their references (dialect/Reference.h), and ops of upstream dialects by simple loops over doubles. From stage
// `plan` on, the function `<entry>.pack` packs the weights, as at run time, and the code of the first ISA level is
// interpreted.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DRIVER_INTERPRETER_H
#define ATTN_DRIVER_INTERPRETER_H

#include "dialect/Reference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// Returns the function `entry` of `module`, or null if there is none. If the module has ISA levels, returns the
/// function of the first level.
mlir::func::FuncOp findEntry(mlir::ModuleOp module, llvm::StringRef entry);

/// Computes the results of the function `entry` of `module` from the inputs, in the order of the arguments, and the
/// weights, by name. Elements that no op has written are NaN. Emits an error and fails if an input or a weight is
/// missing or has wrong sizes, or if the interpreter does not support an op.
ReferenceResults interpret(mlir::ModuleOp module, llvm::StringRef entry,
                           llvm::ArrayRef<ReferenceTensor> inputs,
                           const llvm::StringMap<ReferenceTensor> &weights = {});

} // namespace attn

#endif // ATTN_DRIVER_INTERPRETER_H
