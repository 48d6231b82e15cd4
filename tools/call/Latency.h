//===- Latency.h - measure the latency of calls -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_LATENCY_H
#define ATTN_TOOLS_CALL_LATENCY_H

#include "tools/call/Failure.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace attn {

struct Latencies {
  std::vector<double> ms; ///< time of every call, ascending
  double callsPerSecond = 0;

  double min() const { return ms.front(); }
  double max() const { return ms.back(); }
  /// A measured time that at least `percent` % of the calls did not exceed.
  double percentile(unsigned percent) const {
    return ms[std::min(ms.size() * percent / 100, ms.size() - 1)];
  }
};

/// Calls all functions concurrently, the first from the calling thread and each other function from
/// a thread of its own, until `seconds` have passed, and at least three times. Before that, each thread makes one call
/// that is not measured.
Failure measureLatencies(const std::vector<std::function<Failure()>> &functions, double seconds,
                         Latencies &latencies);

} // namespace attn

#endif // ATTN_TOOLS_CALL_LATENCY_H
