//===- ElementAssertions.h - assertions on elements --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_ELEMENTASSERTIONS_H
#define ATTN_FRONTEND_PT2_ELEMENTASSERTIONS_H

#include "frontend/pt2/Graph.h"

#include "mlir/IR/MLIRContext.h"

namespace attn::pt2 {

/// Removes the assertions on elements of tensors, and the nodes that compute numbers only for these assertions. Emits a
/// remark for each line with a removed assertion, because calls do not check it.
void dropElementAssertions(Program &program, mlir::MLIRContext &context);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_ELEMENTASSERTIONS_H
