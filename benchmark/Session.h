//===- Session.h - a run of a benchmark program -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_SESSION_H
#define ATTN_BENCHMARK_SESSION_H

#include "benchmark/Case.h"
#include "benchmark/Kernel.h"
#include "benchmark/Probe.h"

#include "llvm/Support/Error.h"

#include <benchmark/benchmark.h>
#include <list>

namespace attn::bench {

/// Rows of Google Benchmark, and what they are measured on.
class Session {
public:
  /// `pool` may be null. Rows are means of `numSamples` samples.
  Session(const Target &target, attn_pool *pool, int64_t numSamples)
      : target(target), pool(pool), numSamples(numSamples), probe(target.lanes, pool) {}

  const Target &getTarget() const { return target; }
  /// The multiply-add peak so far, of all threads together, in FLOP/s.
  double getPeak() const { return probe.getPeak(); }

  /// Adds two rows: attn's and, on one thread, OpenBLAS's.
  void add(Case added);

  /// Adds a row that `fill` fills, or fails to: an error ends the row, and later the program.
  using Row = ::benchmark::State;
  void addRow(const std::string &name, std::function<llvm::Error(Row &)> fill);

  /// Measures those rows that Google Benchmark's own flags choose.
  llvm::Error measure();

  /// For what fills a row: compiles a case, whose result must be OpenBLAS's;
  llvm::Expected<std::unique_ptr<Kernel>> compile(const Case &of);
  /// times calls, see Probe.h;
  std::vector<Timing> time(llvm::ArrayRef<std::function<void()>> calls) {
    return probe.time(calls, numSamples);
  }
  /// writes what came out. README.md says what the figures mean.
  void report(Row &row, const Timing &timing, double flop);

private:
  llvm::Error prepare(const Case &next);

  const Target &target;
  attn_pool *pool;
  int64_t numSamples;
  Probe probe;
  unsigned numFailed = 0;
  std::list<Case> cases;
  /// The case that is measured now: its rows follow each other and share the kernel.
  const Case *current = nullptr;
  std::unique_ptr<Kernel> kernel;
  std::vector<float> result; ///< OpenBLAS's
};

/// What a program measures. Each program defines its own; Main.cpp does the rest.
llvm::Error run(Session &session);

} // namespace attn::bench

#endif // ATTN_BENCHMARK_SESSION_H
