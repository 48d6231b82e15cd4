//===- Main.cpp - the main of every benchmark -----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Registers two rows for each case, attn's and OpenBLAS's, and measures those that Google
// Benchmark's own flags choose. README.md says what the figures mean.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Case.h"
#include "benchmark/Kernel.h"
#include "benchmark/Probe.h"
#include "benchmark/Unfused.h"
#include "tools/CommandLine.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

#include <benchmark/benchmark.h>

#include <cmath>

namespace cl = llvm::cl;
using namespace llvm;
using namespace attn;
using namespace attn::bench;

/// Allowed difference from OpenBLAS, relative to the largest value: other orders of summation.
static constexpr double kTolerance = 1e-5;
/// Shorter samples are more disturbed by their own probes, longer ones by the machine.
static constexpr double kSecondsPerSample = 5e-3;

namespace {

struct Flags {
  cl::opt<std::string> level{"level", cl::init("native"), cl::value_desc("name"),
                             cl::cat(attnCategory()),
                             cl::desc("Target level; default: the best that this CPU runs")};
  cl::opt<int64_t> threads{"threads", cl::init(1), cl::cat(attnCategory()),
                           cl::desc("Workers of a pool; 1: no pool. OpenBLAS takes part with 1")};
  cl::opt<int64_t> samples{"samples", cl::init(20), cl::cat(attnCategory()),
                           cl::desc("Undisturbed samples of a row, of some milliseconds each")};
};

/// The case that is measured now. Its rows follow each other and share the kernel.
class Current {
public:
  Current(const Target &target, attn_pool *pool) : target(target), pool(pool) {}

  /// Compiles `next` and compares the results, unless it is there already.
  void set(const Case &next);

  StringRef getError() const { return error; }
  void callAttn() { kernel->call(); }
  void callOpenBlas() { of->openblas(kernel->getArguments(), result.data()); }

private:
  Error prepare();

  const Target &target;
  attn_pool *pool;
  const Case *of = nullptr;
  std::unique_ptr<Kernel> kernel;
  std::vector<float> result; ///< OpenBLAS's
  std::string error;
};

} // namespace

void Current::set(const Case &next) {
  if (of == &next)
    return;
  of = &next;
  error = toString(prepare());
}

Error Current::prepare() {
  kernel.reset(); // never two at once: the largest are as large as memory allows
  Expected<std::unique_ptr<Kernel>> created = Kernel::create(of->module, target, pool);
  if (!created)
    return created.takeError();
  kernel = std::move(*created);
  ArrayRef<float> got = kernel->getResult();
  result.assign(got.size(), 0);
  callOpenBlas();
  double difference = 0, largest = 0;
  for (auto [x, y] : zip_equal(got, result)) {
    difference = std::max(difference, std::abs(double(x) - y));
    largest = std::max(largest, std::abs(double(y)));
    if (std::isnan(x) || std::isnan(y))
      return createStringError("expected numbers, got NaN");
  }
  if (difference > kTolerance * largest)
    return createStringError(
        formatv("expected OpenBLAS's result to within {0:e1} of its largest value, got {1:e1}",
                kTolerance, difference / largest)
            .str());
  return Error::success();
}

static void measure(::benchmark::State &state, Probe &probe, double flop,
                    function_ref<void()> call) {
  call(); // memory is touched and code is there
  int64_t calls = std::ceil(kSecondsPerSample / std::min(timeOnce(call), timeOnce(call)));
  double seconds = 0;
  int64_t rejected = 0, disturbed = 0;
  for ([[maybe_unused]] auto _ : state) {
    Sample sample = probe.sample([&] {
      for (int64_t i = 0; i < calls; ++i)
        call();
    });
    state.SetIterationTime(sample.seconds / calls);
    seconds += sample.seconds / calls;
    rejected += sample.rejected;
    disturbed += sample.disturbed;
  }
  double rate = flop * state.iterations() / seconds;
  state.counters["GFLOP/s"] = rate * 1e-9;
  state.counters["peak%"] = 100 * rate / probe.getPeak();
  state.counters["rejected"] = rejected;
  state.counters["disturbed"] = disturbed;
}

static Error run(const Target &target, int64_t threads, int64_t samples) {
  Pool pool;
  if (threads > 1) {
    attn_pool *created = nullptr;
    if (attn_pool_create(threads, &created) != ATTN_OK)
      return createStringError(attn_last_error());
    pool.reset(created);
  }
  Probe probe(target.lanes, pool.get());
  ::benchmark::AddCustomContext("level", target.level.str());
  ::benchmark::AddCustomContext(
      "FMA peak",
      formatv("{0:F1} GFLOP/s, {1} thread{2}", probe.getPeak() * 1e-9, threads, pool ? "s" : ""));
  ::benchmark::AddCustomContext("OpenBLAS kernels", useOneBlasThread());

  std::vector<Case> cases = getCases(target);
  Current current(target, pool.get());
  unsigned numFailed = 0;
  auto add = [&](const Case &row, StringRef by, void (Current::*call)()) {
    auto body = [&, call](::benchmark::State &state) {
      current.set(row);
      if (current.getError().empty())
        return measure(state, probe, row.flop, [&] { (current.*call)(); });
      state.SkipWithError(current.getError().str().c_str());
      ++numFailed;
    };
    ::benchmark::RegisterBenchmark((row.name + "/" + by).str().c_str(), body)
        ->UseManualTime()
        ->Iterations(samples)
        ->Unit(::benchmark::kMicrosecond);
  };
  for (const Case &row : cases) {
    add(row, "attn", &Current::callAttn);
    if (!pool)
      add(row, "openblas", &Current::callOpenBlas);
  }
  ::benchmark::RunSpecifiedBenchmarks();
  ::benchmark::Shutdown();
  if (numFailed)
    return createStringError("expected every row to be measured, got " + Twine(numFailed) +
                             " with errors");
  return Error::success();
}

static constexpr StringLiteral kOverview = "Measures what attn compiles, beside OpenBLAS\n";

/// --help ends in Google Benchmark's parser, which runs before ours.
static void printHelp() {
  ::benchmark::PrintDefaultHelp();
  char program[] = "attn-bench", help[] = "--help";
  char *arguments[] = {program, help};
  parseCommandLine(2, arguments, kOverview);
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ResetCommandLineParser(); // names such as --threads are the libraries' own otherwise
  Flags flags;
  ::benchmark::Initialize(&argc, argv, printHelp);
  parseCommandLine(argc, argv, kOverview);
  // Linking in process resets the flags: what is used later is copied here.
  int64_t threads = flags.threads, samples = flags.samples;
  if (threads < 1 || samples < 1)
    return reportError("attn-bench", createStringError("expected at least 1 thread and 1 sample"));
  Expected<SmallVector<const Target *>> targets = parseTargets(flags.level);
  if (!targets)
    return reportError("attn-bench", targets.takeError());
  const Target &target = *targets->front();
  if (!target.runsHere())
    return reportError("attn-bench", createStringError("expected a level that this CPU runs, got " +
                                                       target.level));
  if (Error error = run(target, threads, samples))
    return reportError("attn-bench", std::move(error));
  return 0;
}
