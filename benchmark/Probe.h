//===- Probe.h - time, beside what the machine can do -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_PROBE_H
#define ATTN_BENCHMARK_PROBE_H

#include "runtime/attn.h"
#include "tools/FmaPeak.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <vector>

namespace attn::bench {

/// What the samples of a call say.
struct Timing {
  double seconds = 0;    ///< of one call, the lower quartile: disturbed samples are the longer ones
  int64_t rejected = 0;  ///< attempts at samples that were disturbed
  int64_t disturbed = 0; ///< samples whose last attempt was disturbed too
};

/// Measures the multiply-add peak of the threads that a kernel runs on, again and again, and times
/// only while they reach it: who shares the machine, a clock that is lowered or another process
/// would else be counted as the kernel's.
class Probe {
public:
  /// `lanes` of f32 are the vectors that kernels use. `pool` holds their threads; null: this one.
  Probe(unsigned lanes, attn_pool *pool);

  /// The best so far, of all threads together, in FLOP/s.
  double getPeak() const { return peak; }

  /// Times `calls` by that many samples of some milliseconds each, and in turn: a machine whose speed
  /// drifts is as slow for one as for the other.
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
