//===- Table.h - the rows of a benchmark program ----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_TABLE_H
#define ATTN_BENCHMARK_TABLE_H

#include "benchmark/Case.h"
#include "benchmark/Kernel.h"
#include "benchmark/Probe.h"
#include "codegen/cpu/Cpu.h"

#include "llvm/Support/Error.h"

#include <benchmark/benchmark.h>
#include <list>

namespace attn::bench {

/// Rows of Google Benchmark, and the CPU and threads that they are measured on.
class Table {
public:
  /// With a null `pool`, a row runs on one thread. A row has `numSamples` samples.
  Table(const CpuTarget &cpu, attn_pool *pool, int64_t numSamples)
      : cpu(cpu), pool(pool), numSamples(numSamples), probe(cpu.vector / 32, pool) {}

  const CpuTarget &getCpu() const { return cpu; }
  /// The best multiply-add rate so far, of all threads together, in FLOP/s.
  double getPeak() const { return probe.getPeak(); }

  /// Adds two rows, one for attn and one for OpenBLAS. With more than one thread, adds only the row for attn.
  void add(Case added);

  using Row = ::benchmark::State;
  /// Adds a row. `fill` measures and reports the row with the functions below. An error of `fill` ends the row, and
  /// makes measure() fail after the last row.
  void addRow(const std::string &name, std::function<llvm::Error(Row &)> fill);

  /// Compiles a case. Its result must agree with that of OpenBLAS. For `twin`, see Kernel.h.
  llvm::Expected<std::unique_ptr<Kernel>> compile(const Case &of, const Kernel *twin = nullptr);

  /// See Probe.h.
  std::vector<Timing> time(llvm::ArrayRef<std::function<void()>> calls) {
    return probe.time(calls, numSamples);
  }

  /// Writes the columns that README.md describes.
  void report(Row &row, const Timing &timing, double flop);

  /// Measures the rows that the flags of Google Benchmark select.
  llvm::Error measure();

private:
  llvm::Error prepare(const Case &next);

  const CpuTarget &cpu;
  attn_pool *pool;
  int64_t numSamples;
  Probe probe;
  unsigned numFailed = 0;
  std::list<Case> cases;
  /// The case that is being measured. Its rows follow each other and share the kernel.
  const Case *current = nullptr;
  std::unique_ptr<Kernel> kernel;
  std::vector<float> result; ///< output of OpenBLAS
};

/// The main function of the programs that compile kernels. It parses the flags and calls `run` with a table, to which
/// `run` adds rows before it calls measure(). A row has `numSamples` samples unless the user sets another number.
int benchMain(int argc, char **argv, llvm::function_ref<llvm::Error(Table &)> run,
              int64_t numSamples = 20);

} // namespace attn::bench

#endif // ATTN_BENCHMARK_TABLE_H
