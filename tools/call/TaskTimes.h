//===- TaskTimes.h - measure the tasks of a call -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The times of tasks on one thread give a lower bound for the time of a call on several threads: a loop takes at least
// as long as its longest task, and at least the sum of the times of its tasks divided by the number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_TASKTIMES_H
#define ATTN_TOOLS_CALL_TASKTIMES_H

#include "runtime/attn.h"

#include <vector>

namespace attn {

/// Runs the tasks of each call one after the other on the calling thread, and measures each task. All calls must have
/// the same inputs, so that they run the same loops.
class TaskTimes {
public:
  /// Begins a call.
  void begin() { next = 0; }

  /// An attn_parallel_for_fn; `pool` is a TaskTimes.
  static void parallelFor(void *pool, attn_task_fn task, void *context, int64_t count);

  /// For each loop, in order, the shortest measured time of each task in milliseconds.
  const std::vector<std::vector<double>> &getLoops() const { return loops; }

  /// A lower bound of the time of all loops on `threads` threads in milliseconds. There is a barrier after each loop,
  /// whose time is not counted.
  double boundOf(int64_t threads) const;

private:
  std::vector<std::vector<double>> loops;
  size_t next = 0;
};

} // namespace attn

#endif // ATTN_TOOLS_CALL_TASKTIMES_H
