//===- Pipeline.cpp - the order of the simplify stage ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void attn::addSimplifyPipeline(OpPassManager &manager) {
  auto cleanUp = [&] {
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
  };
  // Sizes first: a tensor.dim of a product is a use, and products with a second use stay as they are.
  manager.addPass(memref::createResolveShapedTypeResultDimsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createUnifyDims());
  cleanUp();
  manager.addNestedPass<func::FuncOp>(createFoldBiasIntoInit());
  manager.addNestedPass<func::FuncOp>(createHoistViews());
  cleanUp();
  // Only now: a transposition folded earlier would no longer be seen by the producer.
  manager.addNestedPass<func::FuncOp>(createFoldTransposes());
  manager.addNestedPass<func::FuncOp>(createDecomposeConcat());
  manager.addPass(memref::createResolveShapedTypeResultDimsPass());
  cleanUp();
  manager.addNestedPass<func::FuncOp>(createUnshareInits());
}
