//===- LinalgForm.h - linalg in the form that passes expect ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Other producers, such as torch-mlir and upstream's conversion of TOSA, write ops that attn's own importers do not:
// reductions that keep a dimension of size 1, and maxima together with their positions. docs/dialect.md lists what holds
// for every function of the stage `import`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_LINALGFORM_H
#define ATTN_FRONTEND_LINALGFORM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// Rewrites the ops of `function` into the form of the stage `import`. Ops that cannot be rewritten stay, and
/// verifyLinalgForm reports them.
llvm::LogicalResult bringIntoForm(mlir::func::FuncOp function);

/// Reports an error for the first op of `function` that does not have the form of the stage `import`.
llvm::LogicalResult verifyLinalgForm(mlir::func::FuncOp function);

/// Converts the ops of TOSA in `module` to linalg.
llvm::LogicalResult convertTosa(mlir::ModuleOp module);

} // namespace attn

#endif // ATTN_FRONTEND_LINALGFORM_H
