//===- attn-opt.cpp - mlir-opt with attn registered ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/Registry.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  attn::registerEveryDialect(registry);
  attn::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "attn optimizer\n", registry));
}
