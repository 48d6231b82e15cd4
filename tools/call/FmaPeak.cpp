//===- FmaPeak.cpp - peak multiply-add rate of this core ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/FmaPeak.h"

// Allow the compiler to use the fused multiply-add instruction, which this probe measures. GCC does so by default.
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif

#include <algorithm>
#include <chrono>

using namespace attn;

static constexpr unsigned kChains = 12;

#ifdef __clang__
#define ATTN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define ATTN_UNROLL _Pragma("GCC unroll 12")
#endif

// The asm constraint of a vector register.
#if defined(__aarch64__)
#define ATTN_VECTOR "w"
#else
#define ATTN_VECTOR "v"
#endif

// Twelve independent chains hide the latency of the multiply-adds if a core starts two in each cycle. The asm keeps
// each chain in its register. This is a macro, because a function compiled for one instruction set cannot inline a
// template compiled for another.
#define ATTN_CHAINS(NAME, LANES, ...)                                                              \
  __VA_ARGS__ [[gnu::noinline]] static void NAME(long steps) {                                     \
    typedef float Vector __attribute__((vector_size(4 * LANES)));                                  \
    Vector chains[kChains] = {}, x = {}, y = {};                                                   \
    asm volatile("" : "+" ATTN_VECTOR(x), "+" ATTN_VECTOR(y));                                     \
    for (long i = 0; i < steps; ++i) {                                                             \
      ATTN_UNROLL for (auto &chain : chains) {                                                     \
        asm volatile("" : "+" ATTN_VECTOR(x)); /* keeps the product in the loop */                 \
        chain = x * y + chain;                                                                     \
        asm volatile("" : "+" ATTN_VECTOR(chain));                                                 \
      }                                                                                            \
      asm volatile("nop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop");                                 \
    }                                                                                              \
  }

#if defined(__x86_64__)
ATTN_CHAINS(chains16, 16, [[gnu::target("avx512f")]])
ATTN_CHAINS(chains8, 8, [[gnu::target("avx2,fma")]])
#endif
ATTN_CHAINS(chains4, 4)

#undef ATTN_CHAINS
#undef ATTN_VECTOR
#undef ATTN_UNROLL

FmaLoop FmaLoop::get(unsigned lanes) {
  double flop = 2.0 * kChains * lanes;
#if defined(__x86_64__)
  if (lanes == 16)
    return {chains16, flop};
  if (lanes == 8)
    return {chains8, flop};
#endif
  return {chains4, flop};
}

FmaLoop FmaLoop::getWidest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return get(16);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return get(8);
#endif
  return get(4);
}

double attn::measureFmaPeak(double seconds) {
  FmaLoop loop = FmaLoop::getWidest();
  using Clock = std::chrono::steady_clock;
  auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  constexpr long kSteps = 20000;
  loop.run(kSteps);
  double best = 0;
  for (auto start = Clock::now(); elapsed(start) < seconds;) {
    auto burst = Clock::now();
    loop.run(kSteps);
    best = std::max(best, loop.flopPerStep * kSteps / elapsed(burst) * 1e-9);
  }
  return best;
}
