//===- TaskTimes.h - measure the tasks of a call -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The time of each task on one thread bounds the speed of a call on any number of threads: no loop is faster than its
// longest task, or than all of its tasks divided evenly among the threads.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_TASKTIMES_H
#define ATTN_TOOLS_CALL_TASKTIMES_H

#include "runtime/attn.h"

#include <vector>

namespace attn {

/// Runs the tasks of calls one after the other, and measures each of them. All calls must run the same loops.
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
