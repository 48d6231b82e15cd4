//===- Main.cpp - the main function of every benchmark --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Table.h"
#include "benchmark/Unfused.h"
#include "tools/CommandLine.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

namespace cl = llvm::cl;
using namespace llvm;
using namespace attn;
using namespace attn::bench;

static cl::OptionCategory &category() {
  static cl::OptionCategory category("Measuring");
  return category;
}

namespace {

struct Flags {
  cl::opt<std::string> level{"level", cl::init("native"), cl::value_desc("name"),
                             cl::cat(category()),
                             cl::desc("Target level; default: the best that this CPU runs")};
  cl::opt<int64_t> threads{"threads", cl::init(1), cl::value_desc("n"), cl::cat(category()),
                           cl::desc("Threads of a call; with more than 1, OpenBLAS is left out")};
  cl::opt<int64_t> samples{"samples", cl::value_desc("n"), cl::cat(category()),
                           cl::desc("Number of samples for each row; a sample takes a few milliseconds")};
};

} // namespace

static Error measure(const CpuTarget &target, int64_t threads, int64_t samples,
                     function_ref<Error(Table &)> run) {
  rt::Pool pool;
  if (threads > 1) {
    attn_pool *created = nullptr;
    if (attn_pool_create(threads, &created) != ATTN_OK)
      return createStringError(attn_last_error());
    pool.reset(created);
  }
  Table table(target, pool.get(), samples);
  ::benchmark::AddCustomContext("level", target.level.str());
  ::benchmark::AddCustomContext(
      "FMA peak",
      formatv("{0:F1} GFLOP/s, {1} thread{2}", table.getPeak() * 1e-9, threads, pool ? "s" : ""));
  ::benchmark::AddCustomContext("OpenBLAS kernels", useOneBlasThread());
  return run(table);
}

static constexpr StringLiteral kOverview =
    "attn-bench measures code that attn compiled, and the same computations with OpenBLAS";

/// Prints the help of Google Benchmark's parser and of LLVM's. Google Benchmark's parser, which runs first and handles
/// --help, calls this function.
static void printHelp() {
  ::benchmark::PrintDefaultHelp();
  char program[] = "attn-bench", help[] = "--help";
  char *arguments[] = {program, help};
  parseCommandLine(2, arguments, kOverview, {&category()});
}

int attn::bench::benchMain(int argc, char **argv, function_ref<Error(Table &)> run,
                           int64_t numSamples) {
  InitLLVM init(argc, argv);
  cl::ResetCommandLineParser(); // libraries have registered options with the same names, such as --threads
  Flags flags;
  flags.samples.setInitialValue(numSamples);
  ::benchmark::Initialize(&argc, argv, printHelp);
  parseCommandLine(argc, argv, kOverview, {&category()});
  // Copy the flags that are used later, because linking a kernel with the in-process linker resets them.
  int64_t threads = flags.threads, samples = flags.samples;
  if (threads < 1 || samples < 1)
    return reportError("attn-bench", createStringError("expected at least 1 thread and 1 sample"));
  Expected<SmallVector<const Target *>> targets = parseTargets(flags.level);
  if (!targets)
    return reportError("attn-bench", targets.takeError());
  if (!is_contained(kCpuFamily.targets, targets->front()))
    return reportError("attn-bench",
                       createStringError("expected a level of a CPU, got '" + flags.level + "'"));
  const auto &target = static_cast<const CpuTarget &>(*targets->front());
  if (!target.runsHere())
    return reportError("attn-bench", createStringError("expected a level that this CPU runs, got " +
                                                       target.level));
  if (Error error = measure(target, threads, samples, run))
    return reportError("attn-bench", std::move(error));
  return 0;
}
