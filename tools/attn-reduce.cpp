//===- attn-reduce.cpp - mlir-reduce with attn registered ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Reduces a module, such as one on which a pass fails, to a smaller module that a script of the user still accepts.
//
//===----------------------------------------------------------------------===//

#include "tools/Registry.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  attn::registerVersion();
  mlir::DialectRegistry registry;
  attn::registerEveryDialect(registry);
  attn::registerPasses();
  mlir::MLIRContext context(registry);
  return failed(mlir::mlirReduceMain(argc, argv, context));
}
