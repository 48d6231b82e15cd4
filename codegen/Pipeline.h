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

/// Options that a user sets for all stages.
struct PipelineOptions {
  /// Name of the schedule for every attention. If empty, each attention gets the schedule that is predicted to be
  /// fastest.
  std::string schedule;
  /// The number of threads that will compute the tasks; 0 if it is unknown.
  int64_t workers = 0;
};

/// A stage of the compiler. `attn-opt --attn-to-<name>` runs all stages up to it, and `attnc --from=<name>` resumes
/// after it. Most of its passes are in passes/<name>/ or, if a target adds them, in codegen/cpu/ or codegen/gpu/.
struct Stage {
  llvm::StringLiteral name;
  llvm::StringLiteral leaves; ///< what the IR holds after the stage
  void (*build)(mlir::OpPassManager &manager, const PipelineOptions &options);
};

/// Every stage that transforms modules, in order. `import` comes before these stages, and `emit` after them.
llvm::ArrayRef<Stage> getStages();

/// Adds the passes of `stage`, then a pass that marks the module as having completed the stage.
void addStage(mlir::OpPassManager &manager, const Stage &stage, const PipelineOptions &options);

/// Adds the passes of targets whose code does not run on the CPU that loads the library, such as GPUs. These passes run
/// first in `emit`.
void addTargetEmission(mlir::OpPassManager &manager);

/// Adds the rules of `attnc --lint` that run on the module after `stage`.
void addLintRules(mlir::OpPassManager &manager, llvm::StringRef stage);

/// Registers a pipeline `attn-to-<stage>` for every stage. It runs all stages up to and including that stage.
void registerStagePipelines();

} // namespace attn

#endif // ATTN_CODEGEN_PIPELINE_H
