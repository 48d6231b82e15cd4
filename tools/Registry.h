//===- Registry.h - dialects and passes of developer tools ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_REGISTRY_H
#define ATTN_TOOLS_REGISTRY_H

#include "mlir/IR/DialectRegistry.h"

namespace attn {

/// Registers all dialects and extensions of upstream and of attn.
void registerEveryDialect(mlir::DialectRegistry &registry);

/// Registers the passes and pipelines of attn, and upstream's passes on the dialects that attn's stages contain.
void registerPasses();

/// Adds the version of attn to the output of --version.
void registerVersion();

} // namespace attn

#endif // ATTN_TOOLS_REGISTRY_H
