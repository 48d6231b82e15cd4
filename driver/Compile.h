//===- Compile.h - compile a model to files ---------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The compilation that attnc and attn-run share. It imports a model or reads the file of a stage, runs and dumps the
// stages, makes the report, and writes the output.
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

/// The version of the JSON report. It stays the same if a field is added, and changes if a field is removed or changes
/// its meaning.
constexpr int kReportVersion = 1;

/// Which attentions were fused and how, and why other attentions were not fused.
struct CompileReport {
  std::string text;        ///< for people
  llvm::json::Object json; ///< for programs; docs/report.md describes its fields
  unsigned numFused = 0;
  llvm::SmallVector<std::string> unfused; ///< one line for each attention that is not fused
  std::vector<std::string> findings;      ///< messages of lint, in the order of the source
};

struct CompileOptions {
  std::string input;
  std::string output;                        ///< a file whose suffix selects its kind; empty to write none
  llvm::SmallVector<const Target *> targets; ///< best first
  std::vector<std::string> names; ///< of all arguments, in order, instead of those in a .mlir file; empty to keep these
  PipelineOptions pipeline;
  std::string dumpStages; ///< folder for one file per stage, or empty
  std::string from;       ///< the stage that wrote `input`; empty if `input` is a model
  /// The type to which products of f32 may round their factors, such as bf16; empty if products must not round.
  std::string compute;
  bool requireFused = false;
  bool timing = false;       ///< print the time of each stage to standard error at the end
  bool lint = false;         ///< look for mistakes in attentions
  bool cubin = false;        ///< add machine code for GPUs
  bool embedWeights = false; ///< store weights in the library, not in a file beside it
  Sanitizer sanitizer = Sanitizer::None;
  /// Called with the text of the module after each stage except import. If `input` is the file of a later stage, the
  /// first call is for that stage. All calls come before the output is written.
  std::function<llvm::Error(llvm::StringRef stage, llvm::StringRef text)> onStage;
  /// Called with the report before the output is written.
  std::function<llvm::Error(const CompileReport &report)> onReport;
};

/// Compiles options.input into options.output. After an error, no output is written, but there may be files in
/// options.dumpStages. An error is one line, except that requireFused gives one line for each attention that is not
/// fused.
llvm::Expected<CompileReport> compile(const CompileOptions &options);

} // namespace attn

#endif // ATTN_DRIVER_COMPILE_H
