//===- CommandLine.cpp - what the tools' command lines share --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/CommandLine.h"

#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace attn;

cl::OptionCategory &attn::attnCategory() {
  static cl::OptionCategory category("Options");
  return category;
}

void attn::parseCommandLine(int argc, char **argv, llvm::StringRef overview) {
  cl::HideUnrelatedOptions(attnCategory());
  cl::ParseCommandLineOptions(argc, argv, overview);
}

int attn::reportError(llvm::StringRef tool, llvm::Error error) {
  llvm::errs() << tool << ": " << llvm::toString(std::move(error)) << "\n";
  return 1;
}

CompileFlags::CompileFlags()
    : target("target", cl::value_desc("levels"), cl::cat(attnCategory()),
             cl::desc("Levels to compile for, such as x86-64,x86-64-v3; 'native' or 'all'")),
      schedule("schedule", cl::init(Schedule::PerHead), cl::cat(attnCategory()),
               cl::desc("How an attention becomes loops"),
               cl::values(clEnumValN(Schedule::PerHead, "per-head", "project and attend one head in a task"),
                          clEnumValN(Schedule::Unfused, "unfused", "scores in memory, three passes"))) {}

llvm::Error CompileFlags::apply(CompileOptions &options, llvm::StringRef defaultTargets) const {
  auto targets = parseTargets(target.empty() ? defaultTargets : llvm::StringRef(target));
  if (!targets)
    return targets.takeError();
  options.targets = std::move(*targets);
  options.pipeline.schedule = schedule;
  if (options.from.empty() || options.from == "import" || options.from == "emit")
    return llvm::Error::success();
  std::string known = "import";
  for (const Stage &stage : getStages()) {
    if (stage.name == options.from)
      return llvm::Error::success();
    known += " " + stage.name.str();
  }
  return llvm::createStringError("expected a stage of " + known + " emit, got '" + options.from + "'");
}
