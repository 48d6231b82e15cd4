//===- Wrappers.h - inline graphs of torch.no_grad() and autocast -*- C++ -*-===//
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

/// Replaces the nodes of torch.no_grad() and torch.autocast() by the nodes of their graphs. Reports an error for a node
/// that changes the meaning of its graph, such as an autocast that is enabled.
mlir::LogicalResult inlineWrappers(Program &program, mlir::MLIRContext &context);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_WRAPPERS_H
