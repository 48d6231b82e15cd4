//===- RunPasses.h - run a pipeline of the compiler --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_RUNPASSES_H
#define ATTN_SUPPORT_RUNPASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

namespace attn {

/// Runs `manager` on `module` and verifies the result once. Verification after each pass, which attn-opt and the tests
/// of stages do, would take a third of the time of lowering.
inline mlir::LogicalResult runPasses(mlir::PassManager &manager, mlir::ModuleOp module) {
  manager.enableVerifier(false);
  return mlir::success(mlir::succeeded(manager.run(module)) && mlir::succeeded(verify(module)));
}

} // namespace attn

#endif // ATTN_SUPPORT_RUNPASSES_H
