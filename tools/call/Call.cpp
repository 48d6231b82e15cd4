//===- Call.cpp - call, check and measure a function ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/Call.h"
#include "tools/call/Arguments.h"
#include "tools/call/FmaPeak.h"
#include "tools/call/GpuPeak.h"
#include "tools/call/JSON.h"
#include "tools/call/Latency.h"
#include "tools/call/TaskTimes.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn;

static constexpr size_t kWorkspaceAlignment = 64;

static void print(const std::string &text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Failure attn::checkOutput() {
  if (std::fflush(stdout) || std::ferror(stdout))
    return refuse("cannot write to standard output");
  return {};
}

std::string Call::toJSON() const {
  std::string outputs;
  for (size_t i = 0; i < summaries.size(); ++i) {
    const Result &summary = summaries[i];
    const char *type = results[i].getTypeName();
    JSONMembers members = {{"dtype", quoteJSON(type ? type : "unknown")}};
    if (summary.error)
      members.push_back({"error", toJSONNumber(*summary.error)});
    members.insert(members.end(), {{"largest", toJSONNumber(summary.largest)},
                                   {"mean", toJSONNumber(summary.mean)},
                                   {"name", quoteJSON(summary.name)},
                                   {"not_finite", std::to_string(summary.numNotFinite)},
                                   {"shape", toText(results[i].shape)}});
    outputs += (i ? "," : "") + toJSONObject(members);
  }
  JSONMembers members = {{"function", quoteJSON(getFunctionName())},
                         {"level", quoteJSON(statistics.level)},
                         {"nanoseconds", std::to_string(statistics.nanoseconds)},
                         {"outputs", "[" + outputs + "]"},
                         {"schedules", quoteJSON(statistics.schedules)},
                         {"threads", std::to_string(options.threads)},
                         {"tiles_run", std::to_string(statistics.tiles_run)},
                         {"tiles_skipped", std::to_string(statistics.tiles_skipped)},
                         {"workspace_bytes", std::to_string(statistics.workspace_bytes)}};
  members.insert(members.end(), measured.begin(), measured.end());
  return toJSONObject(members);
}

//===----------------------------------------------------------------------===//
// Before the call
//===----------------------------------------------------------------------===//

/// Parses the value of --device; the type is 0 if `text` is empty.
static Failure parseDevice(const std::string &text, DLDevice &device) {
  device = {};
  if (text.empty())
    return {};
  device.device_type = kDLCUDA;
  if (text == "cuda")
    return {};
  static constexpr std::string_view kPrefix = "cuda:";
  if (text.compare(0, kPrefix.size(), kPrefix) ||
      !parseInteger(std::string_view(text).substr(kPrefix.size()), device.device_id) ||
      device.device_id < 0)
    return refuse("expected --device of cuda or cuda:<number>, got '%s'", text.c_str());
  return {};
}

Failure CallOptions::check() const {
  if (concurrency > 1 && !benchmark)
    return refuse("expected --benchmark with --concurrency, got none");
  if (taskTimes && !this->device.empty())
    return refuse("expected no --task-times with --device, got both");
  DLDevice device;
  if (Failure failure = parseDevice(this->device, device))
    return failure;
  if (device.device_type && (threads > 1 || concurrency > 1))
    return refuse("expected no --threads or --concurrency with --device, got one");
  for (auto [name, value] : {std::pair("tolerance", tolerance), std::pair("gflop", gflop)})
    if (value && (!std::isfinite(*value) || *value < 0))
      return refuse("expected --%s of at least 0, got %g", name, *value);
  return {};
}

double CallOptions::getTolerance(const Array &result) const {
  bool isHalf = result.bits == 16 && (result.code == kDLFloat || result.code == kDLBfloat);
  return tolerance.value_or(isHalf ? 1e-2 : 1e-5);
}

Failure Call::load() {
  if (options.isGuarded())
    if (Failure failure = toFailure(guardRuntimeMemory()))
      return failure;
  attn_library *loaded = nullptr;
  if (Failure failure = toFailure(attn_library_load(options.library.c_str(), &loaded)))
    return failure;
  library.reset(loaded);
  return {};
}

static attn_function_options functionOptions(const CallOptions &options) {
  DLDevice device;
  (void)parseDevice(options.device, device).message; // check() reports a wrong device
  return {sizeof(attn_function_options), options.level.empty() ? nullptr : options.level.c_str(),
          device};
}

Failure Call::findLevels(std::vector<std::string> &levels) const {
  attn_function_options forced = functionOptions(options);
  for (int32_t i = 0; i < attn_library_num_functions(library.get()); ++i) {
    attn_function *created = nullptr;
    attn_status status = attn_function_create(
        library.get(), attn_library_function_name(library.get(), i), &forced, &created);
    if (status && !(status == ATTN_ERROR_LEVEL && options.level.empty()))
      return toFailure(status);
    levels.push_back(created ? attn_function_level(created) : "");
    attn_function_release(created);
  }
  return {};
}

Failure Call::open() {
  const char *first = attn_library_function_name(library.get(), 0);
  if (!first)
    return refuse("expected a library with a function, got none");
  std::string name = options.entry.empty() ? first : options.entry;
  attn_function_options forced = functionOptions(options);
  attn_function *created = nullptr;
  if (Failure failure =
          toFailure(attn_function_create(library.get(), name.c_str(), &forced, &created)))
    return failure;
  function.reset(created);
  if (forced.device.device_type)
    if (Failure failure = gpu.open(forced.device.device_id))
      return failure;
  if (options.threads > 1) {
    attn_pool *threads = nullptr;
    if (Failure failure = toFailure(attn_pool_create(options.threads, &threads)))
      return failure;
    pool.reset(threads);
  }
  return findWeights();
}

/// The path of the weights beside the library: its name with the suffix .safetensors.
static std::string findWeightsFile(const std::string &library) {
  size_t name = library.rfind('/') + 1; // npos + 1 is 0
  size_t dot = library.rfind('.');
  bool hasSuffix = dot != std::string::npos && dot >= name;
  return library.substr(0, hasSuffix ? dot : std::string::npos) + ".safetensors";
}

Failure Call::findWeights() {
  if (attn_function_num_arguments(function.get(), ATTN_WEIGHT) == 0)
    return {};
  attn_weights *embedded = nullptr;
  if (!options.weights.empty())
    weightsFile = options.weights;
  else if (attn_weights_create_embedded(function.get(), &embedded) != ATTN_OK)
    weightsFile = findWeightsFile(options.library);
  weights.reset(embedded);
  if (options.weights.empty() && !weightsFile.empty() && access(weightsFile.c_str(), F_OK))
    return refuse("expected --weights, or the weights beside the library in '%s', got neither",
                  weightsFile.c_str());
  return {};
}

Failure Call::loadWeights() {
  if (weightsFile.empty())
    return {};
  attn_weights *loaded = nullptr;
  if (Failure failure = toFailure(attn_weights_load(function.get(), weightsFile.c_str(), &loaded)))
    return failure;
  weights.reset(loaded);
  return {};
}

Failure Call::makeInputs() {
  if (!inputs.empty())
    return {};
  for (const std::string &path : options.inputs)
    if (Failure failure = readNpy(path, inputs.emplace_back()))
      return failure;
  if (inputs.empty())
    return makeRandomInputs(function.get(), options.dims, inputs);
  return {};
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

Failure Call::call(const Arguments &arguments, const rt::Weights &callWeights,
                   attn_call_options callOptions) {
  callOptions.size = sizeof(callOptions);
  if (pool && !callOptions.parallel_for) {
    callOptions.parallel_for = attn_pool_parallel_for;
    callOptions.pool = pool.get();
  }
  return toFailure(attn_call(function.get(), callWeights.get(), arguments.getInputs(),
                             arguments.getNumInputs(), arguments.getOutputs(),
                             arguments.getNumOutputs(), &callOptions));
}

/// Puts the packed weights on read-only pages: saves them to a temporary file and maps the file.
Failure Call::mapWeights(rt::Weights &mapped) {
  if (!weights)
    return {};
  const char *folder = getenv("TMPDIR");
  std::string path = format("%s/attn-call-XXXXXX", folder && *folder ? folder : "/tmp");
  int file = mkstemp(path.data());
  if (file < 0)
    return refuse("cannot create a temporary file '%s': %s", path.c_str(), std::strerror(errno));
  close(file);
  attn_weights *created = nullptr;
  attn_status status = attn_weights_save(weights.get(), path.c_str());
  if (status == ATTN_OK)
    status = attn_weights_map(function.get(), path.c_str(), &created);
  mapped.reset(created);
  unlink(path.c_str());
  return toFailure(status);
}

Failure Call::callGuarded(GuardedMemory::Side side, char pattern, const rt::Weights &callWeights,
                          attn_call_options callOptions) {
  Arguments arguments(inputs, results, inOut);
  attn_workspace size = {};
  size.size = sizeof(size);
  if (Failure failure = toFailure(attn_workspace_size(
          function.get(), arguments.getInputs(), arguments.getNumInputs(), options.threads, &size)))
    return failure;
  auto noMemory = [](size_t bytes) {
    return refuse("expected %zu bytes of guarded memory, got none", bytes);
  };
  GuardedMemory workspace(alignTo(size.total, kWorkspaceAlignment), side);
  if (!workspace.data())
    return noMemory(workspace.size());
  std::fill_n(workspace.data(), workspace.size(), pattern);
  callOptions.workspace = workspace.data();
  callOptions.workspace_bytes = size.total;

  std::vector<GuardedMemory> memory;
  size_t numOutputs = results.size() - inOut.size();
  for (size_t i = 0; i < inputs.size() + numOutputs; ++i) {
    bool isInput = i < inputs.size();
    const Array &array = isInput ? inputs[i] : results[i - inputs.size()];
    GuardedMemory &guarded = memory.emplace_back(array.data.size(), side);
    if (!guarded.data())
      return noMemory(guarded.size());
    arguments.setData(i, guarded.data());
    if (isInput)
      std::copy(array.data.begin(), array.data.end(), guarded.data());
    else
      std::fill_n(guarded.data(), guarded.size(), pattern);
    if (isInput && std::find(inOut.begin(), inOut.end(), int32_t(i)) == inOut.end())
      guarded.protect();
  }
  if (Failure failure = call(arguments, callWeights, callOptions))
    return failure;
  for (size_t i = 0; i < results.size(); ++i) {
    size_t from = i < numOutputs ? inputs.size() + i : inOut[i - numOutputs];
    std::copy_n(memory[from].data(), results[i].data.size(), results[i].data.begin());
  }
  return {};
}

struct Call::OnGpu {
  OnGpu(std::vector<Array> &inputs, std::vector<Array> &results, const std::vector<int32_t> &inOut)
      : arguments(inputs, results, inOut) {}

  Arguments arguments;
  std::vector<GpuMemory> memory; ///< memory of the inputs, then of the outputs
  GpuMemory workspace;
  int64_t workspaceBytes = 0;
};

Failure Call::placeOnGpu(OnGpu &call, char pattern) {
  call.arguments.setDevice(functionOptions(options).device);
  attn_workspace size = {};
  size.size = sizeof(size);
  if (Failure failure =
          toFailure(attn_workspace_size(function.get(), call.arguments.getInputs(),
                                        call.arguments.getNumInputs(), options.threads, &size)))
    return failure;
  call.workspaceBytes = size.total;
  auto fill = [&](GpuMemory &into, const std::vector<char> &data) -> Failure {
    if (Failure failure = into.allocate(data.size()))
      return failure;
    return gpu.copyIn(into.get(), data.data(), data.size());
  };
  if (Failure failure = fill(call.workspace, std::vector<char>(size.total, pattern)))
    return failure;
  call.memory.resize(call.arguments.getNumInputs() + call.arguments.getNumOutputs());
  for (size_t i = 0; i < call.memory.size(); ++i) {
    bool isInput = i < inputs.size();
    const Array &array = isInput ? inputs[i] : results[i - inputs.size()];
    std::vector<char> patterns(isInput ? 0 : array.data.size(), pattern);
    if (Failure failure = fill(call.memory[i], isInput ? array.data : patterns))
      return failure;
    call.arguments.setData(i, call.memory[i].data());
  }
  return {};
}

Failure Call::callOnGpu(char pattern, attn_call_options callOptions) {
  OnGpu onGpu(inputs, results, inOut);
  if (Failure failure = placeOnGpu(onGpu, pattern))
    return failure;
  callOptions.workspace = onGpu.workspace.data();
  callOptions.workspace_bytes = onGpu.workspaceBytes;
  // A call on a CPU counts tiles, and refuses values outside of their range; a call on a GPU reports both afterwards.
  struct {
    int64_t tiles[2];
    uint32_t rangeErrors;
  } notes = {};
  GpuMemory noted;
  if (Failure failure = noted.allocate(sizeof notes))
    return failure;
  if (Failure failure = gpu.copyIn(noted.get(), &notes, sizeof notes))
    return failure;
  char *place = static_cast<char *>(noted.data());
  callOptions.tile_counts = place + offsetof(decltype(notes), tiles);
  callOptions.range_errors = place + offsetof(decltype(notes), rangeErrors);
  if (Failure failure = call(onGpu.arguments, weights, callOptions))
    return failure;
  if (Failure failure = gpu.synchronize())
    return failure;
  if (Failure failure = gpu.copyOut(&notes, noted.get(), sizeof notes))
    return failure;
  if (notes.rangeErrors)
    return refuse(
        "expected lengths and indices of input %d in their range, got at least one outside",
        __builtin_ctz(notes.rangeErrors));
  statistics.tiles_run = notes.tiles[0];
  statistics.tiles_skipped = notes.tiles[1];
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<char> after(inputs[i].data.size());
    if (Failure failure = gpu.copyOut(after.data(), onGpu.memory[i].get(), after.size()))
      return failure;
    bool isInOut = std::find(inOut.begin(), inOut.end(), int32_t(i)) != inOut.end();
    if (!isInOut && after != inputs[i].data)
      return refuse("expected input %zu to stay unchanged, got other bytes", i);
  }
  size_t numOutputs = results.size() - inOut.size();
  for (size_t i = 0; i < results.size(); ++i) {
    size_t from = i < numOutputs ? inputs.size() + i : inOut[i - numOutputs];
    if (Failure failure =
            gpu.copyOut(results[i].data.data(), onGpu.memory[from].get(), results[i].data.size()))
      return failure;
  }
  return {};
}

/// Calls three times and compares the results. If a call reads uninitialized memory or changes its weights, a later
/// call usually gives different results. On a CPU, a call faults if it writes to an input that is not in-out. The last
/// call also faults if it writes to its weights, which are mapped read-only.
Failure Call::callThrice(attn_call_options callOptions) {
  rt::Weights mapped;
  if (Failure failure = mapWeights(mapped))
    return failure;
  auto callOnce = [&](GuardedMemory::Side side, char pattern, const rt::Weights &callWeights) {
    return gpu.isOpen() ? callOnGpu(pattern, callOptions)
                        : callGuarded(side, pattern, callWeights, callOptions);
  };
  if (Failure failure = callOnce(GuardedMemory::Side::Start, '\xff', weights))
    return failure;
  std::vector<Array> first = results;
  auto repeat = [&](char pattern, const rt::Weights &callWeights) -> Failure {
    if (Failure failure = callOnce(GuardedMemory::Side::End, pattern, callWeights))
      return failure;
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].data != first[i].data)
        return refuse("expected output %zu with the same bits in every call, got other bits", i);
    return {};
  };
  if (Failure failure = repeat('\x55', weights))
    return failure;
  return repeat('\0', mapped);
}

/// Finds the mean and the largest magnitude of the finite elements of each result.
Failure Call::summarize() {
  size_t numOutputs = results.size() - inOut.size();
  for (size_t i = 0; i < results.size(); ++i) {
    attn_argument argument;
    bool isOutput = i < numOutputs;
    if (Failure failure = getArgument(function.get(), isOutput ? ATTN_OUTPUT : ATTN_INPUT,
                                      isOutput ? int32_t(i) : inOut[i - numOutputs], argument))
      return failure;
    Result summary;
    summary.name = argument.name;
    int64_t numFinite = 0, count = results[i].getNumElements();
    for (int64_t e = 0; e < count; ++e)
      if (double value = results[i].at(e); std::isfinite(value)) {
        ++numFinite;
        summary.mean += value / numFinite -
                        summary.mean / numFinite; // a running mean, because the sum could overflow
        summary.largest = std::max(summary.largest, std::abs(value));
      }
    summary.numNotFinite = count - numFinite;
    summaries.push_back(std::move(summary));
  }
  return {};
}

std::string Call::describe(const Result &summary, const Array &array) const {
  const char *type = array.getTypeName();
  std::string text =
      format("%s: %s%s, mean %.4g, largest %.4g", summary.name.c_str(), type ? type : "unknown",
             toText(array.shape).c_str(), summary.mean, summary.largest);
  if (summary.numNotFinite)
    text += format(", %lld not finite", (long long)summary.numNotFinite);
  return text;
}

Failure Call::run() {
  if (Failure failure = loadWeights())
    return failure;
  if (Failure failure = makeInputs())
    return failure;
  inOut = getInOut(function.get());
  if (Failure failure = makeResults(function.get(), inputs, results))
    return failure;
  workerTasks.assign(options.threads, 0);
  statistics.size = sizeof(statistics);
  statistics.worker_tasks = workerTasks.data();
  attn_call_options callOptions = {};
  callOptions.statistics = &statistics;
  if (Failure failure = options.isGuarded() ? callThrice(callOptions)
                        : gpu.isOpen()
                            ? callOnGpu('\xff', callOptions)
                            : call(Arguments(inputs, results, inOut), weights, callOptions))
    return failure;
  if (Failure failure = summarize())
    return failure;
  if (options.json)
    return {};
  std::string text = format("%s at level %s", getFunctionName(), statistics.level);
  if (statistics.tiles_run + statistics.tiles_skipped)
    text += format(", %s, tiles %lld run, %lld skipped", statistics.schedules,
                   (long long)statistics.tiles_run, (long long)statistics.tiles_skipped);
  for (size_t i = 0; i < results.size(); ++i)
    text += (i ? "; " : ": ") + describe(summaries[i], results[i]);
  text += "\n";
  if (options.threads > 1) {
    text += "tasks of each worker:";
    for (int64_t tasks : workerTasks)
      text += " " + std::to_string(tasks);
    text += "\n";
  }
  print(text);
  return {};
}

//===----------------------------------------------------------------------===//
// After the call
//===----------------------------------------------------------------------===//

/// Creates the folder and its missing parents.
static Failure createFolders(const std::string &path) {
  for (size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(),
          0777); // errors are ignored here; the last mkdir reports them
  struct stat status;
  if (mkdir(path.c_str(), 0777) &&
      !(errno == EEXIST && !stat(path.c_str(), &status) && S_ISDIR(status.st_mode)))
    return refuse("cannot create '%s': %s", path.c_str(), std::strerror(errno));
  return {};
}

Failure Call::writeArrays() {
  for (const auto &[folder, arrays] :
       {std::pair(options.inputDir, &inputs), std::pair(options.outputDir, &results)}) {
    if (folder.empty())
      continue;
    if (Failure failure = createFolders(folder))
      return failure;
    for (size_t i = 0; i < arrays->size(); ++i)
      if (Failure failure = writeNpy(format("%s/%zu.npy", folder.c_str(), i), (*arrays)[i]))
        return failure;
  }
  return {};
}

namespace {
struct Difference {
  double error = 0;   ///< largest error of a finite element
  double largest = 0; ///< largest expected magnitude of a finite element
};
} // namespace

/// Fails if the shapes differ, if an element is NaN in only one array, or if an expected infinity is missing. In error
/// messages, `name` is the name of `got`, and `source` says where `expected` comes from.
static Failure compare(const Array &got, const std::string &name, const Array &expected,
                       const std::string &source, Difference &difference) {
  if (expected.shape != got.shape)
    return refuse("expected %s of shape %s as in %s, got %s", name.c_str(),
                  toText(expected.shape).c_str(), source.c_str(), toText(got.shape).c_str());
  difference = {};
  for (int64_t e = 0; e < expected.getNumElements(); ++e) {
    double want = expected.at(e), is = got.at(e);
    if (std::isnan(want) != std::isnan(is) || (std::isinf(want) && want != is))
      return refuse("expected %g at element %lld of %s, got %g", want, (long long)e, name.c_str(),
                    is);
    if (!std::isfinite(want))
      continue;
    difference.error = std::max(difference.error, std::abs(want - is));
    difference.largest = std::max(difference.largest, std::abs(want));
  }
  return {};
}

Failure attn::compareArrays(const Array &got, const std::string &name, const Array &expected,
                            const std::string &source, double tolerance, bool prints,
                            double &error) {
  Difference difference;
  if (Failure failure = compare(got, name, expected, source, difference))
    return failure;
  error = difference.error;
  if (prints)
    print(format("%s: error %.2e, largest value %.2e\n", name.c_str(), error, difference.largest));
  double allowed = tolerance * difference.largest;
  if (!(error <= allowed))
    return refuse("expected an error of at most %.2e in %s (--tolerance=%g), got %.2e", allowed,
                  name.c_str(), tolerance, error);
  return {};
}

Failure Call::compareResult(size_t i, const Array &expected, const std::string &source) {
  double error = 0;
  Failure failure = compareArrays(results[i], "output " + std::to_string(i), expected, source,
                                  options.getTolerance(results[i]), !options.json, error);
  if (!failure)
    summaries[i].error = error;
  return failure;
}

Failure Call::compareWithFiles() {
  if (options.expected.size() > results.size())
    return refuse("expected --expect at most %zu times, got it %zu times", results.size(),
                  options.expected.size());
  for (size_t i = 0; i < options.expected.size(); ++i) {
    Array expected;
    if (Failure failure = readNpy(options.expected[i], expected))
      return failure;
    if (Failure failure = compareResult(i, expected, "'" + options.expected[i] + "'"))
      return failure;
  }
  return {};
}

/// Allocates a workspace with the alignment that a call requires.
static std::shared_ptr<char> allocateWorkspace(int64_t bytes) {
  void *memory =
      aligned_alloc(kWorkspaceAlignment, alignTo(std::max<int64_t>(bytes, 1), kWorkspaceAlignment));
  return {static_cast<char *>(memory), free};
}

/// The name of the CPU, such as "AMD EPYC 9B14", or its architecture if the system gives no name.
static std::string getCpuModel() {
  std::string name;
  if (FILE *file = std::fopen("/proc/cpuinfo", "r")) {
    char line[1024];
    while (name.empty() && std::fgets(line, sizeof(line), file))
      if (char *colon = std::strchr(line, ':'); colon && !std::strncmp(line, "model name", 10)) {
        name = colon + 1 + std::strspn(colon + 1, " ");
        name.erase(name.find_last_not_of(" \n") + 1);
      }
    std::fclose(file);
  }
  if (!name.empty())
    return name;
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown CPU";
#endif
}

/// A measurement takes at least this number of samples.
static constexpr size_t kLeastSamples = 3;

/// A launch takes the CPU several microseconds, so on a GPU, a sample consists of so many calls, but at most kMostCalls,
/// that they take kSampleMs.
static constexpr double kSampleMs = 2, kMostCalls = 1000;

Failure Call::measureOnGpu(double seconds) {
  OnGpu onGpu(inputs, results, inOut);
  if (Failure failure = placeOnGpu(onGpu, 0))
    return failure;
  attn_call_options callOptions = {};
  callOptions.workspace = onGpu.workspace.data();
  callOptions.workspace_bytes = onGpu.workspaceBytes;
  double peak = 0;
  if (Failure failure = measureMatrixPeak(gpu, peak))
    return failure;
  // The first call, which loads the code, is not measured.
  if (Failure failure = call(onGpu.arguments, weights, callOptions))
    return failure;
  Latencies times;
  Gpu::Timer timer;
  int64_t calls = 1;
  for (double total = 0; total < seconds * 1e3 || times.ms.size() < kLeastSamples;) {
    double ms = 0;
    if (Failure failure = timer.start())
      return failure;
    for (int64_t i = 0; i < calls; ++i)
      if (Failure failure = call(onGpu.arguments, weights, callOptions))
        return failure;
    if (Failure failure = timer.stop())
      return failure;
    if (Failure failure = timer.getMilliseconds(ms))
      return failure;
    total += ms;
    if (calls == 1 && ms < kSampleMs) {
      calls = int64_t(std::ceil(std::min(kSampleMs / ms, kMostCalls)));
      continue;
    }
    times.ms.push_back(ms / double(calls));
  }
  std::sort(times.ms.begin(), times.ms.end());
  double median = times.percentile(50), gflop = options.gflop.value_or(0),
         rate = gflop * 1e3 / median;
  measured = {{"device", quoteJSON(gpu.getName())},
              {"flops", toJSONNumber(gflop * 1e9)},
              {"max_ms", toJSONNumber(times.max())},
              {"median_ms", toJSONNumber(median)},
              {"min_ms", toJSONNumber(times.min())},
              {"peak_gflops", toJSONNumber(peak)},
              {"repetitions", std::to_string(times.ms.size() * size_t(calls))}};
  if (options.json)
    return {};
  std::string text = format(
      "min %.4f ms, median %.4f, max %.4f of %zu samples of %lld calls; workspace %lld bytes",
      times.min(), median, times.max(), times.ms.size(), (long long)calls,
      (long long)onGpu.workspaceBytes);
  if (gflop > 0)
    text += format("; %.2f TFLOP/s, %.1f%% of the peak of bf16 matrices of %.2f", rate / 1e3,
                   100 * rate / peak, peak / 1e3);
  print(text + "; " + gpu.getName() + "\n");
  return {};
}

Failure Call::measure() {
  double seconds = 1;
  if (!options.benchmark->empty()) {
    char *end;
    seconds = std::strtod(options.benchmark->c_str(), &end);
    if (*end || !std::isfinite(seconds) || seconds < 0)
      return refuse("expected seconds, got '%s'", options.benchmark->c_str());
  }
  if (gpu.isOpen())
    return measureOnGpu(seconds);
  struct Tensors {
    std::vector<Array> inputs, results;
  };
  std::vector<Tensors> tensors(options.concurrency, {inputs, results});
  attn_workspace size = {};
  size.size = sizeof(size);
  std::vector<std::function<Failure()>> callers;
  for (Tensors &own : tensors) {
    auto arguments = std::make_shared<Arguments>(own.inputs, own.results, inOut);
    if (Failure failure =
            toFailure(attn_workspace_size(function.get(), arguments->getInputs(),
                                          arguments->getNumInputs(), options.threads, &size)))
      return failure;
    std::shared_ptr<char> workspace = allocateWorkspace(size.total);
    if (!workspace)
      return refuse("expected %lld bytes of workspace, got none", (long long)size.total);
    callers.push_back([this, arguments, workspace, size] {
      attn_call_options callOptions = {};
      callOptions.workspace = workspace.get();
      callOptions.workspace_bytes = size.total;
      return call(*arguments, weights, callOptions);
    });
  }
  double peak = measureFmaPeak(0.2);
  Latencies times;
  if (Failure failure = measureLatencies(callers, seconds, times))
    return failure;
  peak = std::max(peak, measureFmaPeak(0.2));
  double median = times.percentile(50), p90 = times.percentile(90), p99 = times.percentile(99);
  double gflop = options.gflop.value_or(0);
  double rate = gflop * (options.concurrency > 1 ? times.callsPerSecond : 1e3 / median);
  std::string cpu = getCpuModel();
  measured = {{"calls_per_second", toJSONNumber(times.callsPerSecond)},
              {"concurrency", std::to_string(options.concurrency)},
              {"cpu", quoteJSON(cpu)},
              {"flops", toJSONNumber(gflop * 1e9)},
              {"max_ms", toJSONNumber(times.max())},
              {"median_ms", toJSONNumber(median)},
              {"min_ms", toJSONNumber(times.min())},
              {"p90_ms", toJSONNumber(p90)},
              {"p99_ms", toJSONNumber(p99)},
              {"peak_gflops", toJSONNumber(peak)},
              {"repetitions", std::to_string(times.ms.size())}};
  if (options.json)
    return {};
  std::string text = format("min %.3f ms, median %.3f, p90 %.3f, p99 %.3f, max %.3f of %zu calls",
                            times.min(), median, p90, p99, times.max(), times.ms.size());
  if (options.concurrency > 1)
    text +=
        format(" by %u callers, %.1f calls per second", options.concurrency, times.callsPerSecond);
  text += format("; workspace %lld bytes", (long long)size.total);
  if (gflop > 0)
    text += format("; %.1f GFLOP/s, %.1f%% of a core's FMA peak of %.1f", rate, 100 * rate / peak,
                   peak);
  print(text + "; " + cpu + "\n");
  return {};
}

Failure Call::measureTasks() {
  // A disturbance only makes a task longer, so the shortest of several times counts.
  static constexpr int kCalls = 10;
  static constexpr int64_t kMostThreads = 64;
  Arguments arguments(inputs, results, inOut);
  TaskTimes times;
  for (int i = 0; i < kCalls; ++i) {
    attn_call_options callOptions = {};
    callOptions.parallel_for = TaskTimes::parallelFor;
    callOptions.pool = &times;
    callOptions.workers = 1;
    times.begin();
    if (Failure failure = call(arguments, weights, callOptions))
      return failure;
  }
  std::string tasks, longest, bounds,
      text = format("%zu loops over tasks", times.getLoops().size());
  for (const std::vector<double> &loop : times.getLoops()) {
    const char *comma = tasks.empty() ? "" : ", ";
    tasks += comma + std::to_string(loop.size());
    longest += comma + toJSONNumber(loop.empty() ? 0 : *std::max_element(loop.begin(), loop.end()));
  }
  for (int64_t threads = 2; threads <= kMostThreads; threads *= 2) {
    double bound = times.boundOf(1) > 0 ? times.boundOf(1) / times.boundOf(threads) : 1;
    const char *comma = bounds.empty() ? "" : ", ";
    bounds += format("%s\"%lld\": ", comma, (long long)threads) + toJSONNumber(bound);
    text += format("%s %.1f times with %lld threads",
                   bounds.find(',') == bounds.npos ? "; at most" : ",", bound, (long long)threads);
  }
  measured.insert(measured.end(), {{"loop_longest_ms", "[" + longest + "]"},
                                   {"loop_tasks", "[" + tasks + "]"},
                                   {"loops_ms", toJSONNumber(times.boundOf(1))},
                                   {"speedup_bounds", "{" + bounds + "}"}});
  if (!options.json)
    print(text + "\n");
  return {};
}
