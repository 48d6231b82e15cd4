//===- Outlining.h - what passes that create functions share -----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_BUFFERIZE_OUTLINING_H
#define ATTN_PASSES_BUFFERIZE_OUTLINING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// The values that ops use and that are defined outside of these ops. The function that gets the ops also gets copies of
/// the constants; the other values become its arguments.
struct Captures {
  explicit Captures(mlir::ValueRange used);

  llvm::SmallVector<mlir::Operation *> constants;
  llvm::SmallVector<mlir::Value> arguments;
};

/// One word that says what `op` and the ops inside it compute, for the name of a function. Profilers show these names.
/// Returns "map" for elementwise ops.
llvm::StringRef nameOfWork(mlir::Operation *op);

/// Whether two functions have the same signature and body. Their names and source locations may differ.
bool areEqual(mlir::func::FuncOp left, mlir::func::FuncOp right);

} // namespace attn

#endif // ATTN_PASSES_BUFFERIZE_OUTLINING_H
