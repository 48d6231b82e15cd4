//===- peak.h - what this core can do at most --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Multiply-adds on registers alone, enough of them in flight to keep every unit busy, with the
// widest vectors of this CPU.
//
//===----------------------------------------------------------------------===//

#ifndef EXAMPLE_PEAK_H
#define EXAMPLE_PEAK_H

#include <algorithm>
#include <chrono>

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace peak {
constexpr long steps = 20000;

/// `chains` independent chains of `steps` multiply-adds on vectors of `lanes` floats.
template <int lanes, int chains> __attribute__((always_inline)) inline void multiplyAdd() {
  typedef float Vector __attribute__((vector_size(lanes * sizeof(float))));
  Vector factor = {}, term = {}, sums[chains] = {};
  asm volatile("" : "+m"(factor), "+m"(term)); // values the compiler does not know
  for (long step = 0; step < steps; ++step)
#pragma GCC unroll 32
    for (int i = 0; i < chains; ++i)
      sums[i] = sums[i] * factor + term;
  asm volatile("" : : "m"(sums));
}

// As many chains as registers hold beside factor and term.
__attribute__((target("avx512f"), noinline)) inline void avx512() { multiplyAdd<16, 24>(); }
__attribute__((target("avx2,fma"), noinline)) inline void avx2() { multiplyAdd<8, 14>(); }
__attribute__((noinline)) inline void baseline() { multiplyAdd<4, 14>(); }

struct Probe {
  void (*run)();
  double flops;
};
inline Probe choose() {
  if (__builtin_cpu_supports("avx512f"))
    return {avx512, 2.0 * 16 * 24 * steps};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {avx2, 2.0 * 8 * 14 * steps};
  return {baseline, 2.0 * 4 * 14 * steps};
}
} // namespace peak

/// FLOP/s of one core: the best of some rounds.
inline double measurePeak(int rounds) {
  peak::Probe probe = peak::choose();
  double best = 0;
  for (int i = 0; i < rounds; ++i) {
    double start = seconds();
    probe.run();
    best = std::max(best, probe.flops / (seconds() - start));
  }
  return best;
}

#endif // EXAMPLE_PEAK_H
