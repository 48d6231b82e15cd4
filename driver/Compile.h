//===- Compile.h - from a model to files ------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// What attnc and attn-run share: import or resume, run the stages, dump them, report, emit.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DRIVER_COMPILE_H
#define ATTN_DRIVER_COMPILE_H

#include "codegen/Pipeline.h"
#include "codegen/Target.h"
#include "codegen/emit/Emit.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <functional>
#include <string>

namespace attn {

/// Of the report in JSON. A field more does not change it, a field less or of another meaning does.
constexpr int kReportVersion = 1;

struct CompileOptions {
  std::string input;
  std::string output;                        ///< its suffix says the kind; empty: only lint
  llvm::SmallVector<const Target *> targets; ///< best first
  PipelineOptions pipeline;
  std::string dumpStages; ///< folder for one file a stage, or empty
  std::string from;       ///< the stage that wrote `input`, or empty: a model
  bool requireFused = false;
  bool lint = false;         ///< look for mistakes in attentions
  bool embedWeights = false; ///< in the library, in place of a file beside it
  Sanitizer sanitizer = Sanitizer::None;
  /// Sees the text of the module after each stage, before anything is written.
  std::function<llvm::Error(llvm::StringRef stage, llvm::StringRef text)> onStage;
};

/// What was fused and how, and why other attentions were not.
struct CompileReport {
  std::string text;        ///< for people
  llvm::json::Object json; ///< for programs; docs/report.md says what it holds
  unsigned numFused = 0;
  llvm::SmallVector<std::string> unfused; ///< the lines of the others
  std::vector<std::string> findings;      ///< what lint says, in the order of the source
};

/// Compiles options.input into options.output. Nothing is written on failure, which is one line.
llvm::Expected<CompileReport> compile(const CompileOptions &options);

} // namespace attn

#endif // ATTN_DRIVER_COMPILE_H
