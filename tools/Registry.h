//===- Registry.h - what tools for developers know --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_REGISTRY_H
#define ATTN_TOOLS_REGISTRY_H

#include "mlir/IR/DialectRegistry.h"

namespace attn {

/// Every dialect and extension, upstream's and ours.
void registerEveryDialect(mlir::DialectRegistry &registry);

/// Every pass and pipeline, upstream's and ours.
void registerEveryPass();

} // namespace attn

#endif // ATTN_TOOLS_REGISTRY_H
