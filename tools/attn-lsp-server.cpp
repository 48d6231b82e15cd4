//===- attn-lsp-server.cpp - mlir-lsp-server with attn registered ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// An editor starts this server for .mlir files. The server reports errors, and shows definitions and
// types at the cursor.
//
//===----------------------------------------------------------------------===//

#include "tools/Registry.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  attn::registerVersion();
  mlir::DialectRegistry registry;
  attn::registerEveryDialect(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
