//===- Latency.cpp - measure the latency of calls -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/Latency.h"

#include <atomic>
#include <chrono>
#include <pthread.h>
#include <sched.h>

using namespace attn;
using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

namespace {

/// A thread that calls a function repeatedly.
struct Caller {
  const std::function<Failure()> *function;
  double seconds;
  std::atomic<size_t> *missing; ///< number of callers that are not ready yet
  pthread_t thread = {};
  std::vector<double> ms = {};
  double callsPerSecond = 0;
  Failure failure = {};

  void run();
  bool call() {
    failure = (*function)();
    return !failure;
  }
};

} // namespace

void Caller::run() {
  bool succeeds = call();
  for (--*missing; *missing;)
    sched_yield();
  auto start = Clock::now();
  while (succeeds && (secondsSince(start) < seconds || ms.size() < 3)) {
    auto begin = Clock::now();
    succeeds = call();
    ms.push_back(secondsSince(begin) * 1e3);
  }
  callsPerSecond = ms.size() / secondsSince(start);
}

Failure attn::measureLatencies(const std::vector<std::function<Failure()>> &functions,
                               double seconds, Latencies &latencies) {
  std::atomic<size_t> missing = functions.size();
  std::vector<Caller> callers;
  for (const std::function<Failure()> &function : functions)
    callers.push_back({&function, seconds, &missing});
  size_t started = 1;
  auto run = [](void *caller) -> void * {
    static_cast<Caller *>(caller)->run();
    return nullptr;
  };
  // std::thread is not used, because it throws an exception if it fails.
  while (started < callers.size() &&
         !pthread_create(&callers[started].thread, nullptr, run, &callers[started]))
    ++started;
  missing -= callers.size() - started;
  callers.front().run();
  for (size_t i = 1; i < started; ++i)
    pthread_join(callers[i].thread, nullptr);
  if (started < callers.size())
    return refuse("expected %zu threads that call, got %zu", callers.size(), started);

  latencies = {};
  for (Caller &caller : callers) {
    if (caller.failure)
      return caller.failure;
    latencies.ms.insert(latencies.ms.end(), caller.ms.begin(), caller.ms.end());
    latencies.callsPerSecond += caller.callsPerSecond;
  }
  std::sort(latencies.ms.begin(), latencies.ms.end());
  return {};
}
