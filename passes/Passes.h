//===- Passes.h - the machine-independent passes -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PASSES_H
#define ATTN_PASSES_PASSES_H

#include "dialect/Attn.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace attn {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace attn

#endif // ATTN_PASSES_PASSES_H
