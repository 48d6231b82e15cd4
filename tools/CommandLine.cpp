//===- CommandLine.cpp - what the tools' command lines share --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/CommandLine.h"

#include "passes/Passes.h"

#include "llvm/ADT/StringExtras.h"
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
             cl::desc("Levels such as x86-64,x86-64-v3; 'native', 'all' or 'all:x86_64'")),
      schedule("schedule", cl::cat(attnCategory()),
               cl::desc("How attentions become loops; the fastest by prediction unless given"),
               scheduleValues()) {}

llvm::Error CompileFlags::apply(CompileOptions &options, llvm::StringRef defaultTargets) const {
  auto targets = parseTargets(target.empty() ? defaultTargets : llvm::StringRef(target));
  if (!targets)
    return targets.takeError();
  options.targets = std::move(*targets);
  if (schedule.getNumOccurrences())
    options.pipeline.schedule = stringifySchedule(schedule);
  if (options.from.empty())
    return llvm::Error::success();
  llvm::SmallVector<llvm::StringRef> stages = {"import"};
  for (const Stage &stage : getStages())
    stages.push_back(stage.name);
  stages.push_back("emit");
  const auto *from = llvm::find(stages, options.from);
  if (from == stages.end())
    return llvm::createStringError("expected a stage of " + llvm::join(stages, " ") + ", got '" +
                                   options.from + "'");
  for (const cl::Option *flag : std::initializer_list<const cl::Option *>{&target, &schedule})
    if (flag->getNumOccurrences() && from >= llvm::find(stages, "plan"))
      return llvm::createStringError("expected no --" + flag->ArgStr +
                                     " with --from=" + options.from + ", whose file says it");
  return llvm::Error::success();
}
