//===- Calls.h - functions without calls -------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_MLIR_CALLS_H
#define ATTN_FRONTEND_MLIR_CALLS_H

#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// Inlines the calls of functions in `module`, and erases private symbols that nothing uses: functions, and globals such
/// as the seed that torch-mlir writes. Calls that cannot be inlined stay. Reports an error if inlining would make a
/// module of more than a million ops.
llvm::LogicalResult inlineCalls(mlir::ModuleOp module);

} // namespace attn

#endif // ATTN_FRONTEND_MLIR_CALLS_H
