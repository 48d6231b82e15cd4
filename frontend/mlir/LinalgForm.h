//===- LinalgForm.h - linalg in the form that passes expect ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Other producers, such as torch-mlir and upstream's conversion of TOSA, write ops that attn's own importers do not
// write: reductions that keep a dimension of size 1, and maxima together with their positions. docs/dialect.md says what
// holds for each function of the stage `import`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_MLIR_LINALGFORM_H
#define ATTN_FRONTEND_MLIR_LINALGFORM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

namespace attn {

/// Rewrites the ops of `function` into the form of the stage `import`. Reports an error for an op that cannot be
/// rewritten.
llvm::LogicalResult bringIntoForm(mlir::func::FuncOp function);

/// Whether `module` has ops of TOSA.
bool hasTosa(mlir::ModuleOp module);

/// Adds upstream's passes that convert TOSA to linalg.
void addTosaPasses(mlir::OpPassManager &manager);

} // namespace attn

#endif // ATTN_FRONTEND_MLIR_LINALGFORM_H
