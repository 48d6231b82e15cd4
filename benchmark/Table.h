//===- Table.h - what a benchmark program measures ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_TABLE_H
#define ATTN_BENCHMARK_TABLE_H

#include "benchmark/Case.h"
#include "benchmark/Kernel.h"
#include "benchmark/Probe.h"

#include "llvm/Support/Error.h"

#include <benchmark/benchmark.h>
#include <list>

namespace attn::bench {

/// Rows of Google Benchmark, and what they are measured on.
class Table {
public:
  /// `pool` may be null. A row has `numSamples` samples.
  Table(const Target &target, attn_pool *pool, int64_t numSamples)
      : target(target), pool(pool), numSamples(numSamples), probe(target.lanes, pool) {}

  const Target &getTarget() const { return target; }
  /// The multiply-add peak so far, of all threads together, in FLOP/s.
  double getPeak() const { return probe.getPeak(); }

  /// Adds two rows: attn's and, on one thread, OpenBLAS's.
  void add(Case added);

  /// Adds a row that `fill` fills, with what follows here. Its error ends the row, and later the
  /// program.
  using Row = ::benchmark::State;
  void addRow(const std::string &name, std::function<llvm::Error(Row &)> fill);

  /// Compiles a case, whose result must be OpenBLAS's. See Kernel.h.
  llvm::Expected<std::unique_ptr<Kernel>> compile(const Case &of, const Kernel *twin = nullptr);

  /// See Probe.h.
  std::vector<Timing> time(llvm::ArrayRef<std::function<void()>> calls) {
    return probe.time(calls, numSamples);
  }

  /// Writes the figures of README.md.
  void report(Row &row, const Timing &timing, double flop);

  /// Measures those rows that Google Benchmark's own flags choose.
  llvm::Error measure();

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

/// The main of every program, which measures what `run` adds to a table. A row has `numSamples`
/// samples unless the user says otherwise.
int benchMain(int argc, char **argv, llvm::function_ref<llvm::Error(Table &)> run,
              int64_t numSamples = 20);

} // namespace attn::bench

#endif // ATTN_BENCHMARK_TABLE_H
