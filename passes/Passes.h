//===- Passes.h - the passes from raise to bufferize -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PASSES_H
#define ATTN_PASSES_PASSES_H

#include "dialect/Attn.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"

namespace attn {

/// The values of --schedule.
inline llvm::cl::ValuesClass scheduleValues() {
  return llvm::cl::values(
      clEnumValN(Schedule::PerHead, "per-head", "project and attend one head in a task"),
      clEnumValN(Schedule::Phased, "phased", "project first, then attend tiles of queries"),
      clEnumValN(Schedule::Decode, "decode", "few queries, keys in parts"),
      clEnumValN(Schedule::WholeScores, "whole-scores", "all scores of few queries, one softmax"),
      clEnumValN(Schedule::Unfused, "unfused", "scores in memory, three passes"));
}

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace attn

#endif // ATTN_PASSES_PASSES_H
