//===- Tosa.cpp - TOSA becomes linalg --------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Upstream converts the ops. Test: test/frontend/mlir/tosa.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/mlir/LinalgForm.h"

#include "mlir/Conversion/TosaToArith/TosaToArith.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Conversion/TosaToTensor/TosaToTensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

bool attn::hasTosa(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isa_and_nonnull<tosa::TosaDialect>(op->getDialect()) ? WalkResult::interrupt()
                                                                    : WalkResult::advance();
      })
      .wasInterrupted();
}

void attn::addTosaPasses(OpPassManager &manager) {
  tosa::addTosaToLinalgPasses(manager, TosaToLinalgOptions(), TosaToLinalgNamedOptions(),
                              /*validationOptions=*/std::nullopt);
  manager.addNestedPass<func::FuncOp>(createTosaToTensorPass());
  manager.addNestedPass<func::FuncOp>(createTosaToArithPass());
  manager.addNestedPass<func::FuncOp>(
      createCanonicalizerPass()); // erases shapes that nothing reads any more
}
