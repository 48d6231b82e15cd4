//===- Pipeline.h - the stages and their order -------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_PIPELINE_H
#define ATTN_CODEGEN_PIPELINE_H

#include "dialect/Attn.h"

#include "mlir/Pass/PassManager.h"

namespace attn {

/// What a user decides about all stages.
struct PipelineOptions {
  /// Name of the schedule of every attention; the fastest by prediction if empty.
  std::string schedule;
};

/// A stage: its name is its folder, its pipeline (`attn-opt --attn-to-<name>`), its dump file and
/// the place to resume from (`attnc --from=<name>`).
struct Stage {
  llvm::StringLiteral name;
  llvm::StringLiteral leaves; ///< what the IR holds after it
  void (*build)(mlir::OpPassManager &manager, const PipelineOptions &options);
};

/// Every stage that transforms modules, in order. `import` comes before them, `emit` after.
llvm::ArrayRef<Stage> getStages();

/// Adds the passes of `stage` and the note in the module that it has been through them.
void addStage(mlir::OpPassManager &manager, const Stage &stage, const PipelineOptions &options);

/// Adds the rules of `attnc --lint` that read a module as `stage` leaves it.
void addLintRules(mlir::OpPassManager &manager, llvm::StringRef stage);

/// Registers `attn-to-<stage>` for every stage: all stages up to and including it.
void registerStagePipelines();

} // namespace attn

#endif // ATTN_CODEGEN_PIPELINE_H
