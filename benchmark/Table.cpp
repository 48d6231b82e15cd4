//===- Table.cpp - the rows of a benchmark program -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Table.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;
using namespace attn::bench;

/// The allowed difference from OpenBLAS's result, relative to the largest value of that result. The results differ
/// because the orders of summation differ.
static constexpr double kTolerance = 1e-5;

static Error compare(ArrayRef<float> got, ArrayRef<float> expected) {
  double difference = 0, largest = 0;
  for (auto [x, y] : zip_equal(got, expected)) {
    difference = std::max(difference, std::abs(double(x) - y));
    largest = std::max(largest, std::abs(double(y)));
    if (std::isnan(x) || std::isnan(y))
      return createStringError("expected numbers, got NaN");
  }
  if (difference > kTolerance * largest)
    return createStringError(
        formatv("expected OpenBLAS's result to within {0:e1} of its largest value, got {1:e1}",
                kTolerance, difference / largest)
            .str());
  return Error::success();
}

Expected<std::unique_ptr<Kernel>> Table::compile(const Case &of, const Kernel *twin) {
  Expected<std::unique_ptr<Kernel>> created = Kernel::create(of.module, cpu, pool, twin);
  if (!created)
    return created;
  std::vector<float> expected((*created)->getResult().size());
  of.openblas((*created)->getArguments(), expected.data());
  if (Error error = compare((*created)->getResult(), expected))
    return std::move(error);
  return created;
}

Error Table::prepare(const Case &next) {
  if (current == &next && kernel)
    return Error::success();
  current = &next;
  kernel.reset(); // release first: the largest kernels fill the memory, so two at once may not fit
  if (Error error = compile(next).moveInto(kernel))
    return error;
  result.resize(kernel->getResult().size());
  return Error::success();
}

void Table::add(Case added) {
  const Case &of = cases.emplace_back(std::move(added));
  auto addBy = [&](const char *by, std::function<void()> call) {
    addRow(of.name + "/" + by, [=, &of](Row &row) -> Error {
      if (Error error = prepare(of))
        return error;
      report(row, time(call).front(), of.flop);
      return Error::success();
    });
  };
  addBy("attn", [this] { kernel->call(); });
  if (!pool)
    addBy("openblas", [this, &of] { of.openblas(kernel->getArguments(), result.data()); });
}

void Table::addRow(const std::string &name, std::function<Error(Row &)> fill) {
  auto body = [this, fill](Row &row) {
    Error error = fill(row);
    numFailed += bool(error);
    if (error)
      row.SkipWithError(toString(std::move(error)).c_str());
  };
  ::benchmark::RegisterBenchmark(name.c_str(), body)
      ->UseManualTime()
      ->Iterations(numSamples)
      ->Unit(::benchmark::kMicrosecond);
}

void Table::report(Row &row, const Timing &timing, double flop) {
  for ([[maybe_unused]] auto _ : row)
    row.SetIterationTime(timing.seconds);
  double rate = flop / timing.seconds;
  row.counters["GFLOP/s"] = rate * 1e-9;
  row.counters["peak%"] = 100 * rate / getPeak();
  row.counters["rejected"] = timing.rejected;
  row.counters["disturbed"] = timing.disturbed;
}

Error Table::measure() {
  ::benchmark::RunSpecifiedBenchmarks();
  ::benchmark::Shutdown();
  if (numFailed)
    return createStringError("expected every row to be measured, got " + Twine(numFailed) +
                             " with errors");
  return Error::success();
}
