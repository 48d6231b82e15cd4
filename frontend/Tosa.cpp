//===- Tosa.cpp - TOSA becomes linalg --------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Upstream converts the ops. Test: test/frontend/tosa.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/LinalgForm.h"

#include "mlir/Conversion/TosaToArith/TosaToArith.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Conversion/TosaToTensor/TosaToTensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

LogicalResult attn::convertTosa(ModuleOp module) {
  auto isTosa = [](Operation *op) {
    return isa_and_nonnull<tosa::TosaDialect>(op->getDialect()) ? WalkResult::interrupt()
                                                                : WalkResult::advance();
  };
  if (!module.walk(isTosa).wasInterrupted())
    return success();
  PassManager manager(module.getContext());
  tosa::addTosaToLinalgPasses(manager, TosaToLinalgOptions(), TosaToLinalgNamedOptions(),
                              /*validationOptions=*/std::nullopt);
  manager.addNestedPass<func::FuncOp>(createTosaToTensorPass());
  manager.addNestedPass<func::FuncOp>(createTosaToArithPass());
  manager.addNestedPass<func::FuncOp>(createCanonicalizerPass()); // erases shapes that nothing reads any more
  return manager.run(module);
}
