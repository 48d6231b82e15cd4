//===- TaskTimes.cpp - measure the tasks of a call ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/TaskTimes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

using namespace attn;

void TaskTimes::parallelFor(void *pool, attn_task_fn task, void *context, int64_t count) {
  using Clock = std::chrono::steady_clock;
  auto &self = *static_cast<TaskTimes *>(pool);
  if (self.next == self.loops.size())
    self.loops.emplace_back();
  std::vector<double> &times = self.loops[self.next++];
  times.resize(size_t(count), INFINITY);
  for (int64_t i = 0; i < count; ++i) {
    auto start = Clock::now();
    task(context, i, 0);
    double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    times[size_t(i)] = std::min(times[size_t(i)], ms);
  }
}

double TaskTimes::boundOf(int64_t threads) const {
  double bound = 0;
  for (const std::vector<double> &times : loops)
    if (!times.empty())
      bound += std::max(*std::max_element(times.begin(), times.end()),
                        std::accumulate(times.begin(), times.end(), 0.0) / double(threads));
  return bound;
}
