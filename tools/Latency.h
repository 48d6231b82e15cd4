//===- Latency.h - how long calls take --------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_LATENCY_H
#define ATTN_TOOLS_LATENCY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <vector>

namespace attn {

struct Latencies {
  std::vector<double> ms; ///< of every call, ascending
  double callsPerSecond;

  double min() const { return ms.front(); }
  double max() const { return ms.back(); }
  /// The least time that `percent` of the calls, or a call more, did not exceed.
  double percentile(unsigned percent) const {
    return ms[std::min(ms.size() * percent / 100, ms.size() - 1)];
  }
};

/// Calls every function from a thread of its own, the first from this one, at once until `seconds`
/// have passed, and three times at least. A call before, which is not measured, warms each up.
llvm::Expected<Latencies> measureLatencies(llvm::ArrayRef<std::function<llvm::Error()>> functions,
                                           double seconds);

} // namespace attn

#endif // ATTN_TOOLS_LATENCY_H
