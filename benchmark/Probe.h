//===- Probe.h - time, beside what the machine can do -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_PROBE_H
#define ATTN_BENCHMARK_PROBE_H

#include "runtime/attn.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace attn::bench {

/// Seconds that one call of `body` takes, disturbed or not.
double timeOnce(llvm::function_ref<void()> body);

/// What a sample took, and whether that may be believed.
struct Sample {
  double seconds;
  unsigned rejected; ///< earlier attempts that were disturbed
  bool disturbed;    ///< so was this one, the last that was made
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

  /// Times `body` between two probes; again, but not for ever, where it was disturbed.
  Sample sample(llvm::function_ref<void()> body);

private:
  double burst();
  bool isQuiet();

  void (*chains)(long steps);
  unsigned lanes;
  attn_pool *pool;
  double peak = 0;
};

} // namespace attn::bench

#endif // ATTN_BENCHMARK_PROBE_H
