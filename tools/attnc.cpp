//===- attnc.cpp - compile attention graphs to libraries -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "driver/Compile.h"
#include "tools/CommandLine.h"
#include "tools/ToError.h"
#include "tools/call/Arguments.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace attn;

/// The tiles of the first function, computed from only the sizes of a call.
static llvm::Expected<std::vector<MaskTiles>> findTiles(llvm::StringRef planned,
                                                        const DimSizes &sizes) {
  llvm::StringMap<int64_t> ofInputs;
  for (const auto &[name, size] : sizes)
    ofInputs[name] = size;
  auto inputs = makeZeroInputs(planned, /*entry=*/"", ofInputs);
  if (!inputs)
    return inputs.takeError();
  return findMaskTiles(planned, /*entry=*/"", {*inputs, {}, /*hasValues=*/false});
}

/// Whether stage `from` comes after `plan`. --explain-mask needs the output of `plan`.
static bool isAfterPlan(llvm::StringRef from) {
  bool isAfter = false;
  for (const Stage &stage : getStages()) {
    if (isAfter && stage.name == from)
      return true;
    isAfter |= stage.name == "plan";
  }
  return from == "emit";
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ResetCommandLineParser(); // removes the options of linked libraries, such as --threads
  CompileFlags flags;
  cl::opt<std::string> input(cl::Positional, cl::Required, cl::desc("<model.pt2 or .mlir>"),
                             cl::cat(attnCategory()));
  cl::opt<std::string> output(
      "o", cl::value_desc("file"), cl::cat(attnCategory()),
      cl::desc("The file to write; its suffix selects the kind: .so .a .o .s .ll .mlir"));
  cl::opt<std::string> dumpStages(
      "dump-stages", cl::value_desc("dir"), cl::cat(attnCategory()),
      cl::desc("Write the module after each stage to this folder: 1-import.mlir, 2-raise.mlir, ..."));
  NameOption from(
      "from", cl::value_desc("stage"), cl::cat(attnCategory()), StageNames(),
      cl::desc(
          "Resume from a file that --dump-stages wrote after this stage; the file has no weights"));
  ReportOption report;
  ExplainOption explain;
  cl::list<std::string> dims("dim", cl::value_desc("name=n"), cl::cat(attnCategory()),
                             cl::desc("The size of a dynamic dimension, for --explain-mask"));
  cl::list<std::string> names(
      "names", cl::CommaSeparated, cl::value_desc("a,b,..."), cl::cat(attnCategory()),
      cl::desc("The names of all arguments of the function in a .mlir file, in order"));
  cl::opt<bool> embedWeights("embed-weights", cl::cat(attnCategory()),
                             cl::desc("Store the weights in the library instead of a separate file"));
  cl::opt<bool> cubin("cubin", cl::cat(attnCategory()),
                      cl::desc("Add machine code for GPUs; needs CUDA's ptxas and fatbinary on PATH"));
  NameOption sanitize(
      "sanitize", cl::value_desc("name"), cl::cat(attnCategory()),
      cl::desc("Compile a check into every memory access, for programs built with the same sanitizer"),
      cl::values(clEnumValN(0, "address", "AddressSanitizer: out-of-bounds accesses"),
                 clEnumValN(0, "thread", "ThreadSanitizer: data races")));
  cl::opt<bool> lint(
      "lint", cl::cat(attnCategory()),
      cl::desc("Report mistakes in attentions, such as a dropped mask, with their source lines; "
               "without -o, only lint, and exit with 1 if there is a mistake"));
  cl::opt<bool> timing("timing", cl::cat(attnCategory()),
                       cl::desc("Print the time of each stage to standard error; attn-opt "
                                "--mlir-timing prints that of each pass"));
  parseCommandLine(
      argc, argv, "attnc compiles attention graphs to native libraries", {&attnCategory()},
      /*rare=*/{"cubin", "dim", "from", "names", "sanitize", "schedule", "timing", "workers"});

  if (output.empty())
    for (auto &[name, option] : cl::getRegisteredOptions())
      if (option->getNumOccurrences() && option != &lint && option != &input)
        return reportError("attnc",
                           llvm::createStringError("expected -o with --" + name + ", got none"));
  if (output.empty() && !lint)
    return reportError("attnc", llvm::createStringError("expected -o or --lint, got neither"));
  // Before compiling, check that the folder can be written.
  llvm::StringRef folder = llvm::sys::path::parent_path(output);
  if (std::error_code error =
          llvm::sys::fs::access(folder.empty() ? "." : folder, llvm::sys::fs::AccessMode::Write);
      error && !output.empty())
    return reportError("attnc", llvm::createStringError(error, "cannot write '" + output +
                                                                   "': " + error.message()));
  CompileOptions options;
  options.input = input;
  options.output = output;
  options.dumpStages = dumpStages;
  options.from = from;
  options.names.assign(names.begin(), names.end());
  if (!names.empty() && !options.from.empty())
    return reportError("attnc", llvm::createStringError("expected no --names with --from=" +
                                                        options.from +
                                                        ", because the file has the names"));
  options.embedWeights = embedWeights;
  options.cubin = cubin;
  options.timing = timing;
  if (sanitize == "address")
    options.sanitizer = Sanitizer::Address;
  else if (sanitize == "thread")
    options.sanitizer = Sanitizer::Thread;
  options.lint = lint;
  if (llvm::Error error = flags.apply(options, /*defaultTargets=*/"all"))
    return reportError("attnc", std::move(error));
  OutputFile reportOutput(report), pictures(explain);
  DimSizes sizes;
  if (llvm::Error error = toError(parseDims(dims, sizes)))
    return reportError("attnc", std::move(error));
  if (!sizes.empty() && !pictures)
    return reportError("attnc",
                       llvm::createStringError("expected --explain-mask with --dim, got none"));
  if (llvm::Error error = checkPicture(pictures))
    return reportError("attnc", std::move(error));
  if (pictures && isAfterPlan(options.from))
    return reportError("attnc",
                       llvm::createStringError("expected --explain-mask before stage schedule, got "
                                               "--from=" +
                                               options.from));
  std::vector<MaskTiles> masks;
  if (pictures)
    options.onStage = [&](llvm::StringRef stage, llvm::StringRef text) {
      return stage == "plan" ? findTiles(text, sizes).moveInto(masks) : llvm::Error::success();
    };
  if (reportOutput && options.from == "emit")
    return reportError("attnc", llvm::createStringError(
                                    "expected --opt-report before stage emit, got --from=emit"));
  if (llvm::Error error = checkDistinct(options, {&reportOutput, &pictures}))
    return reportError("attnc", std::move(error));
  // Write these files before the library, so that no library is left if one of them cannot be written.
  OutputFiles files;
  options.onReport = [&](const CompileReport &made) -> llvm::Error {
    if (reportOutput)
      if (llvm::Error error = writeReport(reportOutput, made.text, made.json, files))
        return error;
    return pictures ? writePictures(pictures, masks, files) : llvm::Error::success();
  };
  llvm::Expected<CompileReport> result = compile(options);
  if (!result)
    return reportError("attnc", result.takeError());
  bool onlyLints = options.output.empty();
  for (const std::string &finding : result->findings)
    (onlyLints ? llvm::outs() : llvm::errs()) << finding << "\n";
  if (onlyLints)
    return !result->findings.empty();
  if (llvm::Error error = files.keep())
    return reportError("attnc", std::move(error));
  return 0;
}
