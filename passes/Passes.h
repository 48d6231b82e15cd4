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
      clEnumValN(Schedule::PerHead, "per-head",
                 "each task computes the projections and the attention of one head"),
      clEnumValN(Schedule::Phased, "phased",
                 "projections first, then one task for each tile of queries"),
      clEnumValN(Schedule::Decode, "decode", "for few queries: divide the keys into parts"),
      clEnumValN(Schedule::WholeScores, "whole-scores", "for few queries: compute all scores, then one softmax"),
      clEnumValN(Schedule::Unfused, "unfused", "keep the scores in memory, in three passes"));
}

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace attn

#endif // ATTN_PASSES_PASSES_H
