//===- Probe.h - time kernels while the CPU reaches its peak ----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_PROBE_H
#define ATTN_BENCHMARK_PROBE_H

#include "runtime/attn.h"
#include "tools/call/FmaPeak.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <vector>

namespace attn::bench {

/// The result of sampling one call.
struct Timing {
  double seconds = 0;    ///< of one call: the lower quartile, because disturbances only make samples longer
  int64_t rejected = 0;  ///< attempts that were disturbed and therefore repeated
  int64_t disturbed = 0; ///< samples whose last attempt was disturbed too
};

/// Measures the multiply-add rate of the threads that run the kernels, before and after each sample. Repeats the sample
/// if one of these rates is well below the best rate so far, or if the only thread lost its core for a while. Without
/// this test, the time of a kernel could include the effects of other processes or of a lowered clock frequency.
class Probe {
public:
  /// `lanes` is the number of f32 in the vectors of the kernels. `pool` holds the threads of the kernels;
  /// null means the calling thread.
  Probe(unsigned lanes, attn_pool *pool);

  /// The best rate so far, of all threads together, in FLOP/s.
  double getPeak() const { return peak; }

  /// Times each of `calls` by `numSamples` samples. A sample repeats the call for about 5 ms, or consists of one call
  /// if the call takes longer. The calls take turns, so that a drift in the machine's speed affects all of them alike.
  std::vector<Timing> time(llvm::ArrayRef<std::function<void()>> calls, int64_t numSamples);

private:
  double sample(llvm::function_ref<void()> call, int64_t count, Timing &timing);
  double burst();
  bool isQuiet();

  FmaLoop loop;
  attn_pool *pool;
  double peak = 0;
};

} // namespace attn::bench

#endif // ATTN_BENCHMARK_PROBE_H
