//===- attnc.cpp - compile attention graphs to libraries -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "driver/Compile.h"
#include "tools/CommandLine.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace attn;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ResetCommandLineParser(); // names such as --threads are the libraries' own otherwise
  CompileFlags flags;
  cl::opt<std::string> input(cl::Positional, cl::Required, cl::desc("<model.pt2 or .mlir>"),
                             cl::cat(attnCategory()));
  cl::opt<std::string> output(
      "o", cl::value_desc("file"), cl::cat(attnCategory()),
      cl::desc("What to write; the suffix says the kind: .so .a .o .s .ll .mlir"));
  cl::opt<std::string> dumpStages(
      "dump-stages", cl::value_desc("dir"), cl::cat(attnCategory()),
      cl::desc("Write the module after each stage: 1-import.mlir, 2-raise.mlir, ..."));
  NameOption from(
      "from", cl::value_desc("stage"), cl::cat(attnCategory()), StageNames(),
      cl::desc(
          "Resume from a file that --dump-stages wrote after this stage; it holds no weights"));
  cl::opt<std::string> report(
      "opt-report", cl::ValueOptional, cl::init(""), cl::value_desc("file"),
      cl::cat(attnCategory()),
      cl::desc("Say what was fused and how, and why not; to standard output or a file"));
  cl::opt<bool> requireFused("require-fused", cl::cat(attnCategory()),
                             cl::desc("Fail, with the reason, if some attention is not fused"));
  cl::opt<bool> embedWeights("embed-weights", cl::cat(attnCategory()),
                             cl::desc("Put the weights into the library, not into a file"));
  NameOption sanitize(
      "sanitize", cl::value_desc("name"), cl::cat(attnCategory()),
      cl::desc("Check every access at run time, in programs with the sanitizer"),
      cl::values(clEnumValN(0, "address", "AddressSanitizer: accesses beyond memory"),
                 clEnumValN(0, "thread", "ThreadSanitizer: data races")));
  cl::opt<bool> lint(
      "lint", cl::cat(attnCategory()),
      cl::desc("Name mistakes in attentions, such as a dropped mask, at their source "
               "line; without -o do no more, and exit with 1 if there are any"));
  parseCommandLine(argc, argv, "attnc compiles attention graphs to native libraries");

  if (output.empty() && !lint)
    return reportError("attnc", llvm::createStringError("expected -o or --lint, got neither"));
  if (output.empty())
    for (auto &[name, option] : cl::getRegisteredOptions())
      if (option->getNumOccurrences() && option != &lint && option != &input)
        return reportError("attnc",
                           llvm::createStringError("expected -o with --" + name + ", got none"));
  // Said before the work, not after.
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
  options.requireFused = requireFused;
  options.embedWeights = embedWeights;
  if (sanitize == "address")
    options.sanitizer = Sanitizer::Address;
  else if (sanitize == "thread")
    options.sanitizer = Sanitizer::Thread;
  options.lint = lint;
  if (llvm::Error error = flags.apply(options, /*defaultTargets=*/"all"))
    return reportError("attnc", std::move(error));
  // Linking in process resets LLVM's options, ours included.
  bool wantsReport = report.getNumOccurrences();
  std::string reportFile = report;
  llvm::Expected<CompileReport> result = compile(options);
  if (!result)
    return reportError("attnc", result.takeError());
  bool onlyLints = options.output.empty();
  for (const std::string &finding : result->findings)
    (onlyLints ? llvm::outs() : llvm::errs()) << finding << "\n";
  if (onlyLints)
    return !result->findings.empty();
  if (wantsReport && reportFile.empty())
    llvm::outs() << result->text;
  if (!reportFile.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream out(reportFile, error);
    if (error)
      return reportError("attnc", llvm::createStringError(error, "cannot write '" + reportFile +
                                                                     "': " + error.message()));
    out << result->text;
  }
  return 0;
}
