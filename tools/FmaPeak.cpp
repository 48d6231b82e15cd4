//===- FmaPeak.cpp - what this core can do at best ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/FmaPeak.h"

// The probe measures the instruction, so the compiler may use it.
#pragma STDC FP_CONTRACT ON

#include <algorithm>
#include <chrono>

// Twelve independent chains hide the latency of two multiply-adds a cycle; the asm keeps each in
// its register. A macro, because a function compiled for one instruction set cannot inline a
// template compiled for another.
#define ATTN_CHAINS(NAME, LANES, ...)                                                              \
  __VA_ARGS__ [[gnu::noinline]] static void NAME(long count) {                                     \
    typedef float Vector __attribute__((vector_size(4 * LANES)));                                  \
    Vector a[12] = {}, x = {}, y = {};                                                             \
    asm volatile("" : "+v"(x), "+v"(y));                                                           \
    for (long i = 0; i < count; ++i) {                                                             \
      _Pragma("clang loop unroll(full)") for (auto &chain : a) {                                   \
        chain = x * y + chain;                                                                     \
        asm volatile("" : "+v"(chain));                                                            \
      }                                                                                            \
    }                                                                                              \
  }

#if defined(__x86_64__)
ATTN_CHAINS(chains16, 16, [[gnu::target("avx512f")]])
ATTN_CHAINS(chains8, 8, [[gnu::target("avx2,fma")]])
#endif
ATTN_CHAINS(chains4, 4)

#undef ATTN_CHAINS

double attn::measureFmaPeak(double seconds) {
  auto *run = chains4;
  int lanes = 4;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    run = chains16;
    lanes = 16;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    run = chains8;
    lanes = 8;
  }
#endif
  using Clock = std::chrono::steady_clock;
  auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  constexpr long kBurst = 20000;
  run(kBurst);
  double best = 0;
  for (auto start = Clock::now(); elapsed(start) < seconds;) {
    auto burst = Clock::now();
    run(kBurst);
    best = std::max(best, 2.0 * 12 * lanes * kBurst / elapsed(burst) * 1e-9);
  }
  return best;
}
