//===- Passes.td - every pass, in running order ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PASSES_TD
#define ATTN_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// raise
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// simplify
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// plan
//===----------------------------------------------------------------------===//

def CloneTargets : Pass<"attn-clone-targets", "::mlir::ModuleOp"> {
  let summary = "make one nested module for each target level";
}

def Plan : Pass<"attn-plan", "::mlir::func::FuncOp"> {
  let summary = "write the plan of every attention";
  let options = [
    Option<"schedule", "schedule", "::attn::Schedule", "::attn::Schedule::PerHead",
           "How an attention becomes loops",
           [{::llvm::cl::values(
             clEnumValN(::attn::Schedule::PerHead, "per-head", "project and attend one head in a task"),
             clEnumValN(::attn::Schedule::Unfused, "unfused", "scores in memory, three passes"))}]>];
}

def PackOperands : Pass<"attn-pack-operands", "::mlir::func::FuncOp"> {
  let summary = "give every contraction an operand whose rows are contiguous along the output's";
  let dependentDialects = ["::attn::AttnDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OutlineWeights : Pass<"attn-outline-weights", "::mlir::ModuleOp"> {
  let summary = "move what depends on weights alone to a function that runs when weights are set";
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// schedule
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// tile
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// bufferize
//===----------------------------------------------------------------------===//

#endif // ATTN_PASSES_PASSES_TD
