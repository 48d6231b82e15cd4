//===- Call.h - call, check and measure a function --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Needs only the runtime, so it runs where LLVM and MLIR do not.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_CALL_H
#define ATTN_TOOLS_CALL_CALL_H

#include "runtime/attn.hpp"
#include "tools/call/Array.h"
#include "tools/call/Gpu.h"
#include "tools/call/GuardedMemory.h"
#include "tools/call/JSON.h"

#include <memory>
#include <optional>

namespace attn {

/// The options of a call. Options.def describes the members.
struct CallOptions {
#define CALL_FLAG(member, ...) bool member = false;
#define CALL_TEXT(member, ...) std::string member;
#define CALL_LIST(member, ...) std::vector<std::string> member;
#define CALL_COUNT(member, ...) unsigned member = 1;
#define CALL_NUMBER(member, ...) std::optional<double> member;
#define CALL_MAYBE(member, ...) std::optional<std::string> member;
#include "tools/call/Options.def"

  /// The greatest value of a count.
  static constexpr unsigned kMaxCount = 1024;

  std::string library; ///< path of a library that attnc wrote

  /// Whether results are compared with expected values. If so, calls are made in guarded memory, except with a
  /// benchmark, which should measure memory without guard pages.
  bool compares = false;
  bool isGuarded() const { return guard || (!benchmark && (compares || !expected.empty())); }

  /// Fails if the options contradict each other.
  Failure check() const;

  /// The allowed error of `result`, relative to its largest value. The default depends on the element type.
  double getTolerance(const Array &result) const;
};

/// Calls a function of a library, checks the results, and measures the time. The members that return a Failure must be
/// called in the order of their declarations. Each of them prints to standard output, unless the options select
/// JSON.
class Call {
public:
  explicit Call(CallOptions options) : options(std::move(options)) {}

  Failure load();
  /// Finds the level at which each function runs on the CPU, or on the GPU that the options name. The level is empty if
  /// the device runs no level of the function and the options name no level. Needs only load() before it.
  Failure findLevels(std::vector<std::string> &levels) const;
  /// Creates the function, and finds out where its weights are.
  Failure open();
  /// Loads the weights, makes inputs and results, and calls: once, or three times in guarded memory.
  Failure run();
  /// Writes the inputs and the results to the folders that the options name.
  Failure writeArrays();
  Failure compareWithFiles();
  /// Compares result `i` with `expected`; fails if the error is larger than the tolerance.
  Failure compareResult(size_t i, const Array &expected, const std::string &source);
  Failure measure();
  /// Measures each task of ten calls on one thread.
  Failure measureTasks();

  /// All results of the calls and measurements, as one JSON object.
  std::string toJSON() const;

  const char *getManifest() const { return attn_library_manifest(library.get()); }
  const char *getFunctionName() const { return attn_function_name(function.get()); }
  /// The file that run() reads the weights from; empty if the function has no weights, or if the library holds them.
  const std::string &getWeightsFile() const { return weightsFile; }
  const attn_statistics &getStatistics() const { return statistics; }
  const std::vector<Array> &getInputs() const { return inputs; } ///< as they are before every call
  /// Sets the inputs, instead of those that the options name.
  void setInputs(std::vector<Array> arrays) { inputs = std::move(arrays); }
  const std::vector<Array> &getResults() const { return results; } ///< outputs, then in-out inputs

private:
  struct Result {
    std::string name;
    double mean = 0, largest = 0; ///< of the finite elements
    int64_t numNotFinite = 0;
    std::optional<double> error;
  };

  Failure findWeights();
  Failure loadWeights();
  Failure makeInputs();
  Failure call(const class Arguments &arguments, const rt::Weights &weights,
               attn_call_options callOptions);
  Failure callGuarded(GuardedMemory::Side side, char pattern, const rt::Weights &weights,
                      attn_call_options callOptions);
  /// The tensors and the workspace of a call, in memory of the GPU.
  struct OnGpu;
  /// Copies the inputs to the GPU, and fills outputs and workspace with `pattern`.
  Failure placeOnGpu(OnGpu &call, char pattern);
  /// Calls the function on the GPU, checks that only in-out inputs changed, and copies the results back.
  Failure callOnGpu(char pattern, attn_call_options callOptions);
  Failure measureOnGpu(double seconds);
  Failure callThrice(attn_call_options callOptions);
  Failure mapWeights(rt::Weights &mapped);
  Failure summarize();
  std::string describe(const Result &summary, const Array &array) const;

  CallOptions options;
  Gpu gpu; ///< open if the function runs on a GPU
  rt::Library library;
  rt::Function function;
  rt::Weights weights;
  rt::Pool pool;
  std::vector<int32_t> inOut; ///< indices of the inputs that a call also writes to
  std::vector<Array> inputs, results;
  std::string weightsFile;
  attn_statistics statistics = {};
  std::vector<int64_t> workerTasks;
  std::vector<Result> summaries;
  JSONMembers measured; ///< JSON values by name
};

/// Compares `got`, whose name in messages is `name`, with `expected`, which comes from `source`. Fails if the error is
/// larger than `tolerance` times the largest value, or if the infinities or NaN of the arrays differ. Prints a line if
/// `prints`.
Failure compareArrays(const Array &got, const std::string &name, const Array &expected,
                      const std::string &source, double tolerance, bool prints, double &error);

/// Fails if a write to standard output failed.
Failure checkOutput();

} // namespace attn

#endif // ATTN_TOOLS_CALL_CALL_H
