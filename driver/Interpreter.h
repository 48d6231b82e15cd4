//===- Interpreter.h - what a module computes -------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The modules of every stage on tensors, from `import` to `tile`, by the reference of each op
// (dialect/Reference.h) and plain loops over doubles for what upstream has. From `plan` on the
// weights are packed by the function beside, as at run time, and the first level is meant.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DRIVER_INTERPRETER_H
#define ATTN_DRIVER_INTERPRETER_H

#include "dialect/Reference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// The function `entry` of `module`, of its first level where it has levels, or null.
mlir::func::FuncOp findEntry(mlir::ModuleOp module, llvm::StringRef entry);

/// The results of the function `entry` of `module`, given its inputs in order and its weights by
/// name. Sizes that no tensor.empty states follow from the inputs; elements that an op has not
/// written are NaN. Fails, with an error, where the reference does not know an op.
ReferenceResults interpret(mlir::ModuleOp module, llvm::StringRef entry,
                           llvm::ArrayRef<ReferenceTensor> inputs,
                           const llvm::StringMap<ReferenceTensor> &weights = {});

} // namespace attn

#endif // ATTN_DRIVER_INTERPRETER_H
