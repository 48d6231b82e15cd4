//===- Probe.cpp - time kernels while the CPU reaches its peak ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

using namespace attn::bench;

/// The fraction of the best rate that the probes before and after a sample must reach.
static constexpr double kQuiet = 0.97;
/// Probes disturb shorter samples more, and other processes disturb longer samples more.
static constexpr double kSecondsPerSample = 5e-3;
/// Attempts at a sample. If all are disturbed, the machine is too busy, and the row reports this.
static constexpr unsigned kAttempts = 5;
/// The steps of a probe. They take about 0.1 ms, much longer than the start of a parallel loop and much shorter than a
/// sample.
static constexpr long kSteps = 40000;

/// The seconds that one call of `body` takes, whether it is disturbed or not.
static double timeOnce(llvm::function_ref<void()> body) {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Probe::Probe(unsigned lanes, attn_pool *pool) : loop(FmaLoop::get(lanes)), pool(pool) {
  // About 0.2 s: long enough for the clock frequency to settle.
  for (unsigned i = 0; i < 1000; ++i)
    isQuiet();
}

double Probe::burst() {
  int64_t workers = pool ? attn_pool_workers(pool) : 1;
  auto run = [](void *probe, int64_t, int64_t) { static_cast<Probe *>(probe)->loop.run(kSteps); };
  double seconds = timeOnce([&] {
    if (pool)
      attn_pool_parallel_for(pool, run, this, workers);
    else
      run(this, 0, 0);
  });
  return loop.flopPerStep * kSteps * workers / seconds;
}

bool Probe::isQuiet() {
  // The first of the two bursts wakes the workers of the pool.
  double rate = std::max(burst(), burst());
  peak = std::max(peak, rate);
  return rate >= kQuiet * peak;
}

/// The mean time in seconds of `count` calls, which are timed together between two probes. Repeats a disturbed sample,
/// up to kAttempts times in all.
double Probe::sample(llvm::function_ref<void()> call, int64_t count, Timing &timing) {
  for (unsigned attempt = 1;; ++attempt) {
    bool before = isQuiet();
    std::clock_t cpu = std::clock();
    double seconds = timeOnce([&] {
      for (int64_t i = 0; i < count; ++i)
        call();
    });
    double busy = double(std::clock() - cpu) / CLOCKS_PER_SEC;
    bool after = isQuiet();
    // Probes are too short to notice another process that took the core for a while. A single thread never
    // waits, so the difference between its CPU time and the elapsed time shows how long it did not run.
    bool ran = pool || busy >= kQuiet * seconds;
    bool quiet = before && after && ran;
    if (quiet || attempt == kAttempts) {
      timing.disturbed += !quiet;
      return seconds / count;
    }
    ++timing.rejected;
  }
}

std::vector<Timing> Probe::time(llvm::ArrayRef<std::function<void()>> calls, int64_t numSamples) {
  std::vector<int64_t> counts;
  for (const auto &call : calls) {
    call(); // touches all memory and loads the code
    counts.push_back(std::ceil(kSecondsPerSample / std::min(timeOnce(call), timeOnce(call))));
  }
  std::vector<Timing> timings(calls.size());
  std::vector<std::vector<double>> samples(calls.size());
  for (int64_t turn = 0; turn < numSamples; ++turn)
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls.size() > 1)
        calls[i](); // warm up: the caches hold data of another call
      samples[i].push_back(sample(calls[i], counts[i], timings[i]));
    }
  for (auto [timing, seconds] : llvm::zip_equal(timings, samples)) {
    auto quartile = seconds.begin() + numSamples / 4;
    std::nth_element(seconds.begin(), quartile, seconds.end());
    timing.seconds = *quartile;
  }
  return timings;
}
