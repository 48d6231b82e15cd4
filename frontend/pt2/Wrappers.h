//===- Wrappers.h - graphs round which torch says how to run ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_WRAPPERS_H
#define ATTN_FRONTEND_PT2_WRAPPERS_H

#include "frontend/pt2/Graph.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"

namespace attn::pt2 {

/// Puts the nodes of the graphs that torch.no_grad() and torch.autocast() leave in the place of the nodes that hold
/// them. Reports a graph whose meaning depends on its node, such as one under an autocast that is enabled.
mlir::LogicalResult inlineWrappers(Program &program, mlir::MLIRContext &context);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_WRAPPERS_H
