//===- attn-run.cpp - call a compiled function from the command line ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// MODEL is a library that attnc wrote, or a model that is compiled first. Inputs come from .npy
// files, or are random.
//
//===----------------------------------------------------------------------===//

#include "driver/Interpreter.h"
#include "frontend/FirstError.h"
#include "frontend/Frontend.h"
#include "runtime/attn.h"
#include "tools/CommandLine.h"
#include "tools/FmaPeak.h"
#include "tools/Npy.h"
#include "tools/SafetensorsFile.h"

#include "mlir/InitAllDialects.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cmath>
#include <random>

namespace cl = llvm::cl;
using namespace llvm;
using namespace attn;

static Error fail(const Twine &message) { return createStringError(message); }
/// Memory for the elements, all zero.
static Error allocate(Array &array) {
  int64_t bytes = array.bits / 8;
  for (int64_t size : array.shape)
    if (size < 0 || MulOverflow(bytes, size, bytes))
      return fail("expected sizes of less than 2^63 bytes");
  array.data.resize(bytes);
  return Error::success();
}

static Error check(attn_status status) {
  return status == ATTN_OK ? Error::success() : fail(attn_last_error());
}

namespace {

struct Flags {
  cl::opt<std::string> model{cl::Positional, cl::Required, cl::desc("<model: .so .pt2 .mlir>"),
                             cl::cat(attnCategory())};
  cl::list<std::string> inputs{
      "input", cl::value_desc("f.npy"), cl::cat(attnCategory()),
      cl::desc("Inputs in the function's order; without any, seeded random ones")};
  cl::opt<std::string> weights{
      "weights", cl::value_desc("f.safetensors"), cl::cat(attnCategory()),
      cl::desc("Weights; default: those in the library, or the file beside it")};
  cl::opt<std::string> outputDir{"output-dir", cl::value_desc("dir"), cl::cat(attnCategory()),
                                 cl::desc("Write the outputs there as 0.npy, 1.npy, ...")};
  cl::opt<std::string> entry{"entry", cl::value_desc("name"), cl::cat(attnCategory()),
                             cl::desc("The function to call")};
  cl::opt<int64_t> threads{"threads", cl::init(1), cl::cat(attnCategory()),
                           cl::desc("Workers of a pool; 1: no pool")};
  cl::opt<std::string> level{
      "level", cl::value_desc("name"), cl::cat(attnCategory()),
      cl::desc("Force a target level; default: the best that this CPU runs")};
  cl::list<std::string> dims{"dim", cl::value_desc("name=n"), cl::cat(attnCategory()),
                             cl::desc("Size of a dynamic dimension of random inputs")};
  cl::list<std::string> expected{"expect", cl::value_desc("f.npy"), cl::cat(attnCategory()),
                                 cl::desc("Expected outputs, in order; fail where they differ")};
  cl::opt<bool> reference{
      "reference", cl::cat(attnCategory()),
      cl::desc("Fail where outputs differ from the model's own, computed op by op in float64")};
  cl::opt<double> tolerance{
      "tolerance", cl::init(1e-5), cl::value_desc("r"), cl::cat(attnCategory()),
      cl::desc("Allowed error of --expect and --reference, relative to the largest value")};
  cl::opt<std::string> benchmark{
      "benchmark", cl::ValueOptional, cl::value_desc("seconds"), cl::cat(attnCategory()),
      cl::desc("Time calls: min, median, p99, GFLOP/s, share of the FMA peak")};
  cl::opt<double> gflop{"gflop", cl::init(0), cl::cat(attnCategory()),
                        cl::desc("Work of a call in GFLOP, for --benchmark's rates")};
  cl::opt<bool> json{"json", cl::cat(attnCategory()),
                     cl::desc("Print --benchmark's figures as one JSON object")};
  cl::opt<bool> requireFused{"require-fused", cl::cat(attnCategory()),
                             cl::desc("Fail, with the reason, if some attention is not fused")};
  CompileFlags compile;
};

/// The flags' values. Linking in process resets LLVM's options, ours included, so they are read
/// before.
struct Options {
  explicit Options(const Flags &flags)
      : model(flags.model), weights(flags.weights), outputDir(flags.outputDir), entry(flags.entry),
        level(flags.level), inputs(flags.inputs.begin(), flags.inputs.end()),
        dims(flags.dims.begin(), flags.dims.end()),
        expected(flags.expected.begin(), flags.expected.end()), threads(flags.threads),
        tolerance(flags.tolerance), gflop(flags.gflop), reference(flags.reference),
        json(flags.json), requireFused(flags.requireFused) {
    if (flags.benchmark.getNumOccurrences())
      benchmark = flags.benchmark;
  }

  std::string model, weights, outputDir, entry, level;
  std::vector<std::string> inputs, dims, expected;
  std::optional<std::string> benchmark;
  int64_t threads;
  double tolerance, gflop;
  bool reference, json, requireFused;
};

/// Calls the runtime's release function at the end of a scope.
template <typename T> struct Releaser {
  void (*release)(T *);
  void operator()(T *object) const { release(object); }
};
template <typename T> using Handle = std::unique_ptr<T, Releaser<T>>;

/// An array as the runtime sees it.
struct Tensor {
  explicit Tensor(Array &array) {
    tensor.data = array.data.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = array.shape.size();
    tensor.dtype = {array.code, array.bits, 1};
    tensor.shape = array.shape.data();
    tensor.strides = nullptr;
    tensor.byte_offset = 0;
  }
  DLTensor tensor;
};

class Runner {
public:
  Runner(const Options &flags, const CompileFlags &compileFlags)
      : flags(flags), compileFlags(compileFlags) {}
  ~Runner() {
    if (!temporary.empty())
      sys::fs::remove_directories(temporary);
  }
  Error run();

private:
  Error compileModel();
  Error loadLibrary();
  Error loadWeights();
  Error makeInputs();
  Error makeOutputs();
  Error call(attn_statistics *statistics = nullptr);
  Error compareWithFiles();
  Error compareWithReference();
  Error compare(size_t i, const Array &expected, StringRef source);
  Error benchmark();

  const Options &flags;
  const CompileFlags &compileFlags;
  std::string library, temporary;
  Handle<attn_library> lib{nullptr, {attn_library_release}};
  Handle<attn_function> function{nullptr, {attn_function_release}};
  Handle<attn_weights> weights{nullptr, {attn_weights_release}};
  Handle<attn_pool> pool{nullptr, {attn_pool_release}};
  std::vector<std::pair<std::string, Array>> weightTensors;
  std::vector<Array> inputs, outputs;
};

} // namespace

Error Runner::compileModel() {
  library = flags.model;
  if (StringRef(library).ends_with(".so"))
    return flags.reference
               ? fail("expected a model for --reference, got the library '" + library + "'")
               : Error::success();
  SmallString<128> folder;
  if (std::error_code error = sys::fs::createUniqueDirectory("attn-run", folder))
    return fail("cannot create a temporary folder: " + error.message());
  temporary = folder.str();
  sys::path::append(folder, "model.so");
  library = folder.str();
  CompileOptions options;
  options.input = flags.model;
  options.output = library;
  options.requireFused = flags.requireFused;
  if (Error error = compileFlags.apply(options, flags.level.empty() ? StringRef("native")
                                                                    : StringRef(flags.level)))
    return error;
  return compile(options).takeError();
}

Error Runner::loadLibrary() {
  attn_library *loaded = nullptr;
  if (Error error = check(attn_library_load(library.c_str(), &loaded)))
    return error;
  lib.reset(loaded);
  std::string name = flags.entry.empty() ? attn_library_function_name(loaded, 0) : flags.entry;
  attn_function_options options = {sizeof(options),
                                   flags.level.empty() ? nullptr : flags.level.c_str()};
  attn_function *created = nullptr;
  if (Error error = check(attn_function_create(loaded, name.c_str(), &options, &created)))
    return error;
  function.reset(created);
  if (flags.threads > 1) {
    attn_pool *threads = nullptr;
    if (Error error = check(attn_pool_create(flags.threads, &threads)))
      return error;
    pool.reset(threads);
  }
  return Error::success();
}

Error Runner::loadWeights() {
  if (attn_function_num_arguments(function.get(), ATTN_WEIGHT) == 0)
    return Error::success();
  attn_weights *created = nullptr;
  if (flags.weights.empty() && attn_weights_create_embedded(function.get(), &created) == ATTN_OK) {
    weights.reset(created);
    return Error::success();
  }
  SmallString<128> path(flags.weights);
  if (path.empty()) {
    path = library;
    sys::path::replace_extension(path, "safetensors");
  }
  if (Error error = check(attn_weights_load(function.get(), path.c_str(), &created)))
    return error;
  weights.reset(created);
  if (!flags.reference)
    return Error::success();
  return readSafetensors(path).moveInto(weightTensors);
}

Error Runner::makeInputs() {
  for (const std::string &path : flags.inputs) {
    Expected<Array> array = readNpy(path);
    if (!array)
      return array.takeError();
    inputs.push_back(std::move(*array));
  }
  if (!inputs.empty())
    return Error::success();
  int32_t count = attn_function_num_arguments(function.get(), ATTN_INPUT);
  StringMap<int64_t> sizes;
  for (StringRef dim : flags.dims) {
    auto [name, value] = dim.split('=');
    if (value.getAsInteger(10, sizes[name]))
      return fail("expected --dim=name=n, got '" + dim + "'");
  }
  for (const StringMapEntry<int64_t> &size : sizes) {
    bool isKnown = false;
    for (int32_t i = 0; i < attn_function_num_symbols(function.get()) && !isKnown; ++i) {
      attn_dim symbol;
      if (Error error = check(attn_function_symbol(function.get(), i, &symbol)))
        return error;
      isKnown = size.getKey() == symbol.symbol;
    }
    if (!isKnown)
      return fail("expected --dim of a dynamic dimension, got '" + size.getKey() + "'");
  }
  std::mt19937 generator(0);
  for (int32_t i = 0; i < count; ++i) {
    attn_argument argument = {};
    argument.size = sizeof(argument);
    if (Error error = check(attn_function_argument(function.get(), ATTN_INPUT, i, &argument)))
      return error;
    Array array;
    array.code = argument.dtype.code;
    array.bits = argument.dtype.bits;
    for (int32_t axis = 0; axis < argument.rank; ++axis) {
      attn_dim dim;
      if (Error error = check(attn_function_dim(function.get(), ATTN_INPUT, i, axis, &dim)))
        return error;
      auto given = dim.symbol ? sizes.find(dim.symbol) : sizes.end();
      if (dim.symbol && given == sizes.end())
        return fail("expected --dim=" + Twine(dim.symbol) + "=n for random inputs");
      int64_t size = dim.symbol ? given->second : dim.min;
      if (size < dim.min || size > dim.max)
        return fail(
            formatv("expected --dim={0} in [{1}, {2}], got {3}", dim.symbol, dim.min, dim.max, size)
                .str());
      array.shape.push_back(size);
    }
    if (Error error = allocate(array))
      return error;
    std::normal_distribution<float> normal;
    for (int64_t e = 0; e < array.getNumElements(); ++e) {
      if (array.code == 2 && array.bits == 32)
        reinterpret_cast<float *>(array.data.data())[e] = normal(generator);
      else // masks, lengths: ones and zeros
        array.data[e * (array.bits / 8)] = generator() & 1;
    }
    inputs.push_back(std::move(array));
  }
  return Error::success();
}

Error Runner::makeOutputs() {
  std::vector<Tensor> views(inputs.begin(), inputs.end());
  std::vector<const DLTensor *> pointers;
  for (Tensor &view : views)
    pointers.push_back(&view.tensor);
  for (int32_t i = 0; i < attn_function_num_arguments(function.get(), ATTN_OUTPUT); ++i) {
    attn_argument argument = {};
    argument.size = sizeof(argument);
    if (Error error = check(attn_function_argument(function.get(), ATTN_OUTPUT, i, &argument)))
      return error;
    Array array;
    array.code = argument.dtype.code;
    array.bits = argument.dtype.bits;
    array.shape.resize(argument.rank);
    if (Error error = check(attn_output_shape(function.get(), pointers.data(), pointers.size(), i,
                                              array.shape.data())))
      return error;
    if (Error error = allocate(array))
      return error;
    outputs.push_back(std::move(array));
  }
  return Error::success();
}

Error Runner::call(attn_statistics *statistics) {
  std::vector<Tensor> in(inputs.begin(), inputs.end()), out(outputs.begin(), outputs.end());
  std::vector<const DLTensor *> inPointers, outPointers;
  for (Tensor &tensor : in)
    inPointers.push_back(&tensor.tensor);
  for (Tensor &tensor : out)
    outPointers.push_back(&tensor.tensor);
  attn_call_options options = {};
  options.size = sizeof(options);
  options.statistics = statistics;
  if (pool) {
    options.parallel_for = attn_pool_parallel_for;
    options.pool = pool.get();
  }
  return check(attn_call(function.get(), weights.get(), inPointers.data(), inPointers.size(),
                         outPointers.data(), outPointers.size(), &options));
}

Error Runner::compare(size_t i, const Array &expected, StringRef source) {
  if (i >= outputs.size() || expected.shape != outputs[i].shape)
    return fail("expected output " + Twine(i) + " of the shape in " + source + ", got another");
  double error = 0, largest = 0;
  for (int64_t e = 0; e < expected.getNumElements(); ++e) {
    double want = expected.at(e), got = outputs[i].at(e);
    if (std::isnan(want) != std::isnan(got) || (std::isinf(want) && want != got))
      return fail(
          formatv("expected {0} at element {1} of output {2}, got {3}", want, e, i, got).str());
    if (!std::isfinite(want))
      continue;
    error = std::max(error, std::abs(want - got));
    largest = std::max(largest, std::abs(want));
  }
  outs() << "output " << i << ": error " << format("%.2e", error) << ", largest value "
         << format("%.2e", largest) << "\n";
  double allowed = flags.tolerance * largest;
  if (error > allowed)
    return fail(
        formatv("expected an error of at most {0:e2} in output {1}, got {2:e2}", allowed, i, error)
            .str());
  return Error::success();
}

Error Runner::compareWithFiles() {
  for (auto [i, path] : llvm::enumerate(flags.expected)) {
    Expected<Array> expected = readNpy(path);
    if (!expected)
      return expected.takeError();
    if (Error error = compare(i, *expected, "'" + path + "'"))
      return error;
  }
  return Error::success();
}

static ReferenceTensor toReference(const Array &array) {
  ReferenceTensor tensor(array.shape);
  for (auto [e, element] : llvm::enumerate(tensor.elements))
    element = array.at(e);
  return tensor;
}

static Array toArray(const ReferenceTensor &tensor) {
  Array array;
  array.bits = 64;
  array.shape = tensor.shape;
  auto *bytes = reinterpret_cast<const char *>(tensor.elements.data());
  array.data.assign(bytes, bytes + tensor.elements.size() * sizeof(double));
  return array;
}

Error Runner::compareWithReference() {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  Expected<Model> model = importFile(flags.model, context);
  if (!model)
    return model.takeError();
  StringMap<ReferenceTensor> weights;
  for (const auto &[name, array] : weightTensors)
    weights[name] = toReference(array);
  FirstError error(context, flags.model);
  ReferenceResults expected = interpret(*model->module, attn_function_name(function.get()),
                                        map_to_vector(inputs, toReference), weights);
  if (failed(expected))
    return fail(flags.model + ": " + toString(error.take()));
  for (auto [i, tensor] : llvm::enumerate(*expected))
    if (Error error = compare(i, toArray(tensor), "the reference"))
      return error;
  return Error::success();
}

Error Runner::benchmark() {
  double seconds = 1;
  if (!flags.benchmark->empty() && StringRef(*flags.benchmark).getAsDouble(seconds))
    return fail("expected seconds, got '" + *flags.benchmark + "'");
  double peak = measureFmaPeak(0.2);
  std::vector<double> times;
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  for (auto start = Clock::now(); since(start) < seconds || times.size() < 3;) {
    auto begin = Clock::now();
    if (Error error = call())
      return error;
    times.push_back(since(begin) * 1e3);
  }
  peak = std::max(peak, measureFmaPeak(0.2));
  llvm::sort(times);
  double least = times.front(), median = times[times.size() / 2],
         p99 = times[times.size() * 99 / 100];
  double rate = flags.gflop / (median * 1e-3);
  if (flags.json) {
    json::Object object{{"min_ms", least},
                        {"median_ms", median},
                        {"p99_ms", p99},
                        {"repetitions", int64_t(times.size())},
                        {"flops", flags.gflop * 1e9},
                        {"level", attn_function_level(function.get())},
                        {"peak_gflops", peak},
                        {"threads", int64_t(flags.threads)}};
    outs() << json::Value(std::move(object)) << "\n";
    return Error::success();
  }
  outs() << format("min %.3f ms, median %.3f ms, p99 %.3f ms of %zu calls", least, median, p99,
                   times.size());
  if (flags.gflop > 0)
    outs() << format("; %.1f GFLOP/s, %.1f%% of the FMA peak of %.1f", rate, 100 * rate / peak,
                     peak);
  outs() << "; level " << attn_function_level(function.get()) << "\n";
  return Error::success();
}

Error Runner::run() {
  for (auto step : {&Runner::compileModel, &Runner::loadLibrary, &Runner::loadWeights,
                    &Runner::makeInputs, &Runner::makeOutputs})
    if (Error error = (this->*step)())
      return error;
  std::vector<int64_t> tasks(std::max<int64_t>(flags.threads, 1));
  attn_statistics statistics = {};
  statistics.size = sizeof(statistics);
  statistics.worker_tasks = tasks.data();
  if (Error error = call(&statistics))
    return error;
  if (flags.threads > 1 && !flags.json) {
    outs() << "tasks of each worker:";
    for (int64_t count : tasks)
      outs() << ' ' << count;
    outs() << "\n";
  }
  if (!flags.outputDir.empty()) {
    if (std::error_code error = sys::fs::create_directories(flags.outputDir))
      return fail("cannot create '" + flags.outputDir + "': " + error.message());
    for (auto [i, output] : llvm::enumerate(outputs)) {
      SmallString<128> path(flags.outputDir);
      sys::path::append(path, Twine(i) + ".npy");
      if (Error error = writeNpy(path, output))
        return error;
    }
  }
  if (Error error = compareWithFiles())
    return error;
  if (flags.reference)
    if (Error error = compareWithReference())
      return error;
  return flags.benchmark ? benchmark() : Error::success();
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ResetCommandLineParser(); // names such as --threads are the libraries' own otherwise
  Flags flags;
  parseCommandLine(argc, argv, "attn-run calls a compiled function\n");
  Options options(flags);
  if (Error error = Runner(options, flags.compile).run())
    return reportError("attn-run", std::move(error));
  return 0;
}
