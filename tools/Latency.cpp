//===- Latency.cpp - measure the latency of calls -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/Latency.h"

#include "llvm/ADT/STLExtras.h"

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
  const std::function<llvm::Error()> *function;
  double seconds;
  std::atomic<size_t> *missing; ///< number of callers that are not ready yet
  pthread_t thread = {};
  std::vector<double> ms = {};
  double callsPerSecond = 0;
  std::string failure = "";

  void run();
  bool call() {
    if (llvm::Error error = (*function)()) {
      failure = llvm::toString(std::move(error));
      return false;
    }
    return true;
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

llvm::Expected<Latencies>
attn::measureLatencies(llvm::ArrayRef<std::function<llvm::Error()>> functions, double seconds) {
  std::atomic<size_t> missing = functions.size();
  std::vector<Caller> callers;
  for (const std::function<llvm::Error()> &function : functions)
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
  for (Caller &caller : llvm::MutableArrayRef(callers).slice(1, started - 1))
    pthread_join(caller.thread, nullptr);
  if (started < callers.size())
    return llvm::createStringError("expected " + llvm::Twine(callers.size()) +
                                   " threads that call, got " + llvm::Twine(started));

  Latencies result{{}, 0};
  for (Caller &caller : callers) {
    if (!caller.failure.empty())
      return llvm::createStringError(caller.failure);
    llvm::append_range(result.ms, caller.ms);
    result.callsPerSecond += caller.callsPerSecond;
  }
  llvm::sort(result.ms);
  return result;
}
