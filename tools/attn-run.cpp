//===- attn-run.cpp - call a compiled function from the command line ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The first argument is a library that attnc wrote, or a model, which attn-run compiles first. Inputs come from .npy
// files, or are random; every compared call starts with the original in-out inputs. attn-run prints what the call did
// to standard output, with --json as one JSON object.
//
//===----------------------------------------------------------------------===//

#include "runtime/attn.hpp"
#include "support/Json.h"
#include "tools/CommandLine.h"
#include "tools/Compare.h"
#include "tools/Describe.h"
#include "tools/FmaPeak.h"
#include "tools/GuardedMemory.h"
#include "tools/Latency.h"
#include "tools/SafetensorsFile.h"
#include "tools/Tensors.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <cmath>

namespace cl = llvm::cl;
using namespace llvm;
using namespace attn;

static constexpr int64_t kWorkspaceAlignment = 64;

static Error fail(const Twine &message) { return createStringError(message); }

namespace {

struct Flags {
  cl::OptionCategory calling{"Calling"}, comparing{"Comparing"}, measuring{"Measuring"};
  cl::opt<std::string> model{cl::Positional, cl::Required, cl::desc("<model: .so .pt2 .mlir>"),
                             cl::cat(calling)};
  cl::list<std::string> inputs{
      "input", cl::value_desc("f.npy"), cl::cat(calling),
      cl::desc("Inputs in the function's order; without any, seeded random ones")};
  cl::opt<std::string> weights{
      "weights", cl::value_desc("f.safetensors"), cl::cat(calling),
      cl::desc("Weights; default: those in the library, or the file beside it")};
  cl::opt<std::string> outputDir{
      "output-dir", cl::value_desc("dir"), cl::cat(calling),
      cl::desc("Write the results there as 0.npy, 1.npy, ...: outputs, then what "
               "in-out inputs hold after the call")};
  cl::opt<std::string> entry{"entry", cl::value_desc("name"), cl::cat(calling),
                             cl::desc("The function to call; default: the first")};
  cl::opt<unsigned, false, CountParser> threads{"threads", cl::init(1), cl::value_desc("n"),
                                                cl::cat(calling),
                                                cl::desc("Workers of a pool; 1: no pool")};
  cl::opt<std::string> level{
      "level", cl::value_desc("level"), cl::cat(calling),
      cl::desc("Force a target level; default: the best that this CPU runs")};
  DimOption dims{calling};
  cl::opt<bool> describe{"describe", cl::cat(calling),
                         cl::desc("Say what can be called and how, and call nothing")};
  cl::opt<bool> json{"json", cl::cat(calling), cl::desc("Print one JSON object and nothing else")};
  cl::opt<bool> guard{
      "guard", cl::cat(comparing),
      cl::desc("Call three times, with tensors, weights and workspace next to guard "
               "pages, inputs and packed weights on read-only pages and another "
               "pattern in the workspace each time; fail if an output changes. "
               "--expect and --reference do so too, unless with --benchmark")};
  cl::list<std::string> expected{"expect", cl::value_desc("f.npy"), cl::cat(comparing),
                                 cl::desc("Expected results, in order; fail where they differ")};
  cl::opt<bool> reference{
      "reference", cl::cat(comparing),
      cl::desc("Fail where results differ from the model's own, computed op by op in float64")};
  cl::opt<std::string> firstDifference{
      "first-difference", cl::ValueOptional, cl::value_desc("dir"), cl::cat(comparing),
      cl::desc(
          "Fail where a stage of the compiler computes something else than the model, and name "
          "the first such stage and element; the stages are this compilation's, or the files "
          "that --dump-stages wrote into a folder")};
  cl::opt<double> tolerance{
      "tolerance", cl::init(1e-5), cl::value_desc("r"), cl::cat(comparing),
      cl::desc("Allowed error of --expect, --reference and --first-difference, relative to the "
               "largest value")};
  cl::opt<std::string> benchmark{
      "benchmark", cl::ValueOptional, cl::value_desc("seconds"), cl::cat(measuring),
      cl::desc("Time calls: percentiles, calls per second, GFLOP/s, share of the FMA peak")};
  cl::opt<unsigned, false, CountParser> concurrency{
      "concurrency", cl::init(1), cl::value_desc("n"), cl::cat(measuring),
      cl::desc("Threads that call at once in --benchmark, with tensors and workspace of their own; "
               "they share the weights and the pool of --threads, which serves one at a time "
               "while others work alone")};
  cl::opt<double> gflop{"gflop", cl::init(0), cl::value_desc("n"), cl::cat(measuring),
                        cl::desc("Work of a call in GFLOP, for --benchmark's rates")};
  ReportOption report;
  ExplainOption explain;
  CompileFlags compile;
};

/// The values of the flags. They are copies, because linking in process resets all options of LLVM and
/// attn.
struct Options {
  explicit Options(const Flags &flags)
      : model(flags.model), weights(flags.weights), outputDir(flags.outputDir), entry(flags.entry),
        level(flags.level), inputs(flags.inputs.begin(), flags.inputs.end()),
        dims(flags.dims.begin(), flags.dims.end()),
        expected(flags.expected.begin(), flags.expected.end()), threads(flags.threads),
        concurrency(flags.concurrency), tolerance(flags.tolerance), gflop(flags.gflop),
        describe(flags.describe), guard(flags.guard), reference(flags.reference), json(flags.json),
        report(flags.report), pictures(flags.explain) {
    if (flags.benchmark.getNumOccurrences())
      benchmark = flags.benchmark;
    if (flags.firstDifference.getNumOccurrences())
      firstDifference = flags.firstDifference;
  }

  /// Whether to call three times in guarded memory. The default is no with --benchmark, because guard pages would
  /// change the memory that is measured.
  bool isGuarded() const { return guard || (!benchmark && (reference || !expected.empty())); }

  std::string model, weights, outputDir, entry, level;
  std::vector<std::string> inputs, dims, expected;
  std::optional<std::string> benchmark, firstDifference;
  unsigned threads, concurrency;
  double tolerance, gflop;
  bool describe, guard, reference, json;
  OutputFile report, pictures;
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
  Error describe();
  Error createFunction();
  Error loadWeights();
  Error makeInputs();
  Error call(const Arguments &arguments, const rt::Weights &weights, attn_call_options options);
  Error callOnce();
  Expected<rt::Weights> mapWeights();
  Error callGuarded(GuardedMemory::Side side, char pattern, const rt::Weights &weights,
                    attn_call_options options);
  Error callThrice(attn_call_options options);
  Error writeReport();
  Error explainMasks();
  Error writeOutputs();
  Error compareWithFiles();
  Error compareWithReference();
  Error compareStages();
  Expected<std::vector<Array>> runStage(const Stage &stage, size_t number);
  Error compareStage(StringRef stage, ArrayRef<Array> got, ArrayRef<Array> expected);
  Error compareOutput(size_t i, const Array &expected, StringRef source);
  Error benchmark();

  const Options &flags;
  const CompileFlags &compileFlags;
  std::string library, temporary;
  rt::Library lib;
  rt::Function function;
  rt::Weights weights;
  rt::Pool pool;
  std::vector<std::pair<std::string, Array>> weightTensors;
  SmallVector<int32_t> inOut; // indices of the inputs that a call also writes to
  std::vector<Array> inputs;  // inputs as they are before every call
  std::vector<Array> results; // outputs, then in-out inputs after a call
  json::Object result;
  CompileReport compiled;
  StringMap<std::string> stages; ///< text of the module after each stage
};

} // namespace

Error Runner::compileModel() {
  library = flags.model;
  if (StringRef(library).ends_with(".so")) {
    for (auto [option, needsModel] : std::initializer_list<std::pair<const char *, bool>>{
             {"--reference", flags.reference},
             {"--opt-report", bool(flags.report)},
             {"--explain-mask", bool(flags.pictures)},
             {"--first-difference", flags.firstDifference.has_value()}})
      if (needsModel)
        return fail("expected a model for " + Twine(option) + ", got the library '" + library +
                    "'");
    return Error::success();
  }
  SmallString<128> folder;
  if (std::error_code error = sys::fs::createUniqueDirectory("attn-run", folder))
    return fail("cannot create a temporary folder: " + error.message());
  temporary = folder.str();
  sys::path::append(folder, "model.so");
  library = folder.str();
  CompileOptions options;
  options.input = flags.model;
  options.output = library;
  if (flags.pictures || flags.firstDifference)
    options.onStage = [&](StringRef stage, StringRef text) {
      stages[stage] = text.str();
      return Error::success();
    };
  if (Error error = compileFlags.apply(options, flags.level.empty() ? StringRef("native")
                                                                    : StringRef(flags.level)))
    return error;
  return compile(options).moveInto(compiled);
}

Error Runner::loadLibrary() {
  attn_library *loaded = nullptr;
  if (Error error = toError(attn_library_load(library.c_str(), &loaded)))
    return error;
  lib.reset(loaded);
  return Error::success();
}

Error Runner::describe() {
  const char *manifest = attn_library_manifest(lib.get());
  Expected<json::Value> value = parseJSON(manifest);
  if (!value)
    return value.takeError();
  Expected<LibraryInfo> info = readManifest(manifest);
  if (!info)
    return info.takeError();
  attn_function_options options = {sizeof(options),
                                   flags.level.empty() ? nullptr : flags.level.c_str()};
  if (!flags.json)
    outs() << info->name << ", compiled by " << info->compiler << "\n";
  json::Array &functions = *value->getAsObject()->getArray("functions");
  for (auto [description, object] : zip_equal(info->functions, functions)) {
    // A library can be described even if this CPU runs none of its levels.
    attn_function *created = nullptr;
    attn_status status =
        attn_function_create(lib.get(), description.name.c_str(), &options, &created);
    if (status && !(status == ATTN_ERROR_LEVEL && flags.level.empty()))
      return toError(status);
    StringRef level = created ? attn_function_level(created) : "";
    if (flags.json)
      object.getAsObject()->insert({"level", level.empty() ? json::Value(nullptr) : level});
    else
      describeFunction(description, level, outs() << "\n");
    attn_function_release(created);
  }
  if (flags.json)
    outs() << formatv("{0:2}\n", *value);
  return Error::success();
}

Error Runner::createFunction() {
  std::string name = flags.entry.empty() ? attn_library_function_name(lib.get(), 0) : flags.entry;
  attn_function_options options = {sizeof(options),
                                   flags.level.empty() ? nullptr : flags.level.c_str()};
  attn_function *created = nullptr;
  if (Error error = toError(attn_function_create(lib.get(), name.c_str(), &options, &created)))
    return error;
  function.reset(created);
  if (flags.threads > 1) {
    attn_pool *threads = nullptr;
    if (Error error = toError(attn_pool_create(flags.threads, &threads)))
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
  if (flags.reference || flags.pictures || flags.firstDifference)
    if (Error error = readSafetensors(path).moveInto(weightTensors))
      return error;
  if (Error error = toError(attn_weights_load(function.get(), path.c_str(), &created)))
    return error;
  weights.reset(created);
  return Error::success();
}

Error Runner::makeInputs() {
  for (const std::string &path : flags.inputs) {
    Expected<Array> array = readNpy(path);
    if (!array)
      return array.takeError();
    inputs.push_back(std::move(*array));
  }
  if (inputs.empty())
    return makeRandomInputs(function.get(), flags.dims).moveInto(inputs);
  return Error::success();
}

Error Runner::call(const Arguments &arguments, const rt::Weights &weights,
                   attn_call_options options) {
  options.size = sizeof(options);
  if (pool) {
    options.parallel_for = attn_pool_parallel_for;
    options.pool = pool.get();
  }
  return toError(attn_call(function.get(), weights.get(), arguments.inputs().data(),
                           arguments.inputs().size(), arguments.outputs().data(),
                           arguments.outputs().size(), &options));
}

/// Puts the packed weights on read-only pages: saves them to a temporary file and maps the file.
Expected<rt::Weights> Runner::mapWeights() {
  if (!weights)
    return rt::Weights();
  SmallString<128> path;
  if (std::error_code error = sys::fs::createTemporaryFile("attn-run", "packed", path))
    return fail("cannot create a temporary file: " + error.message());
  FileRemover remover(path);
  attn_weights *mapped = nullptr;
  if (Error error = toError(attn_weights_save(weights.get(), path.c_str())))
    return error;
  if (Error error = toError(attn_weights_map(function.get(), path.c_str(), &mapped)))
    return error;
  return rt::Weights(mapped);
}

Error Runner::callGuarded(GuardedMemory::Side side, char pattern, const rt::Weights &weights,
                          attn_call_options options) {
  std::vector<GuardedMemory> memory;
  Arguments arguments(inputs, results, inOut);
  attn_workspace size = {};
  size.size = sizeof(size);
  if (Error error = toError(attn_workspace_size(function.get(), arguments.inputs().data(),
                                                arguments.inputs().size(), flags.threads, &size)))
    return error;
  Expected<GuardedMemory> workspace =
      GuardedMemory::create(alignTo(size.total, kWorkspaceAlignment), side);
  if (!workspace)
    return workspace.takeError();
  llvm::fill(workspace->get(), pattern);
  options.workspace = workspace->get().data();
  options.workspace_bytes = size.total;
  auto outputs = MutableArrayRef(results).drop_back(inOut.size());
  for (Array *array : concat<Array *>(map_to_vector(inputs, [](Array &a) { return &a; }),
                                      map_to_vector(outputs, [](Array &a) { return &a; }))) {
    Expected<GuardedMemory> guarded = GuardedMemory::create(array->data.size(), side);
    if (!guarded)
      return guarded.takeError();
    llvm::copy(array->data, guarded->get().begin());
    memory.push_back(std::move(*guarded));
  }
  for (auto [i, guarded] : enumerate(memory)) {
    arguments.setData(i, guarded.get().data());
    if (i >= inputs.size())
      llvm::fill(guarded.get(), pattern);
    else if (!is_contained(inOut, int32_t(i)))
      guarded.protect();
  }
  if (Error error = call(arguments, weights, options))
    return error;
  for (auto [i, array] : enumerate(results)) {
    size_t from = i < outputs.size() ? inputs.size() + i : inOut[i - outputs.size()];
    llvm::copy(memory[from].get(), array.data.begin());
  }
  return Error::success();
}

/// Calls three times and compares the results. If a call reads uninitialized memory or changes its weights, a later
/// call gives other results. If a call writes to an input that is not in-out, it faults. The last call also faults if
/// it writes to its weights, which are mapped read-only.
Error Runner::callThrice(attn_call_options options) {
  Expected<rt::Weights> mapped = mapWeights();
  if (!mapped)
    return mapped.takeError();
  if (Error error = callGuarded(GuardedMemory::Side::Start, '\xff', weights, options))
    return error;
  std::vector<Array> first = results;
  auto repeat = [&](char pattern, const rt::Weights &weights) -> Error {
    if (Error error = callGuarded(GuardedMemory::Side::End, pattern, weights, options))
      return error;
    for (auto [i, array] : enumerate(results))
      if (array.data != first[i].data)
        return fail("expected output " + Twine(i) +
                    " of the same bits from every call, got others");
    return Error::success();
  };
  if (Error error = repeat('\x55', weights))
    return error;
  return repeat('\0', *mapped);
}

/// Summarizes an output: mean and largest magnitude of its finite elements.
static json::Object summarize(const attn_argument &argument, const Array &array) {
  double mean = 0, largest = 0;
  int64_t numFinite = 0, count = array.getNumElements();
  for (int64_t e = 0; e < count; ++e)
    if (double value = array.at(e); std::isfinite(value)) {
      mean += (value - mean) / ++numFinite;
      largest = std::max(largest, std::abs(value));
    }
  const DataType *type = array.getType();
  return json::Object{{"name", argument.name},
                      {"dtype", type ? StringRef(type->name) : "unknown"},
                      {"shape", json::Array(array.shape)},
                      {"mean", mean},
                      {"largest", largest},
                      {"not_finite", count - numFinite}};
}

static raw_ostream &operator<<(raw_ostream &out, const json::Object &output) {
  out << *output.getString("name") << ": " << *output.getString("dtype") << "[";
  interleaveComma(*output.getArray("shape"), out);
  out << "], mean " << format("%.4g", *output.getNumber("mean")) << ", largest "
      << format("%.4g", *output.getNumber("largest"));
  if (int64_t count = *output.getInteger("not_finite"))
    out << ", " << count << " not finite";
  return out;
}

Error Runner::callOnce() {
  inOut = getInOut(function.get());
  if (Error error = makeResults(function.get(), inputs).moveInto(results))
    return error;
  std::vector<int64_t> tasks(flags.threads);
  attn_statistics statistics = {};
  statistics.size = sizeof(statistics);
  statistics.worker_tasks = tasks.data();
  attn_call_options options = {};
  options.statistics = &statistics;
  if (Error error = flags.isGuarded() ? callThrice(options)
                                      : call(Arguments(inputs, results, inOut), weights, options))
    return error;
  json::Array summaries;
  size_t numOutputs = results.size() - inOut.size();
  for (auto [i, array] : enumerate(results)) {
    attn_argument argument = {};
    argument.size = sizeof(argument);
    bool isOutput = i < numOutputs;
    if (Error error = toError(
            attn_function_argument(function.get(), isOutput ? ATTN_OUTPUT : ATTN_INPUT,
                                   isOutput ? int32_t(i) : inOut[i - numOutputs], &argument)))
      return error;
    summaries.push_back(summarize(argument, array));
  }
  if (!flags.json) {
    outs() << attn_function_name(function.get()) << " at level " << statistics.level;
    if (statistics.tiles_run + statistics.tiles_skipped)
      outs() << ", " << statistics.schedules << ", tiles " << statistics.tiles_run << " run, "
             << statistics.tiles_skipped << " skipped";
    outs() << ": ";
    interleave(
        summaries, outs(), [](const json::Value &output) { outs() << *output.getAsObject(); },
        "; ");
    outs() << "\n";
    if (flags.threads > 1) {
      outs() << "tasks of each worker: ";
      interleave(tasks, outs(), " ");
      outs() << "\n";
    }
  }
  result = json::Object{{"function", attn_function_name(function.get())},
                        {"level", statistics.level},
                        {"threads", flags.threads},
                        {"nanoseconds", statistics.nanoseconds},
                        {"workspace_bytes", statistics.workspace_bytes},
                        {"schedules", statistics.schedules},
                        {"tiles_run", statistics.tiles_run},
                        {"tiles_skipped", statistics.tiles_skipped},
                        {"outputs", std::move(summaries)}};
  return Error::success();
}

/// Writes the report of the compiler and the tiles of the call. `skipped_share` is the share of skipped tiles among all
/// tiles of all attentions.
Error Runner::writeReport() {
  if (!flags.report)
    return Error::success();
  int64_t run = *result.getInteger("tiles_run"), skipped = *result.getInteger("tiles_skipped");
  double share = run + skipped ? double(skipped) / double(run + skipped) : 0;
  json::Object call = result;
  call["skipped_share"] = share;
  json::Object json = std::move(compiled.json);
  json["call"] = std::move(call);
  std::string text = std::move(compiled.text);
  if (run + skipped)
    text += formatv("[{0}] tiles: {1} run, {2} skipped ({3:f1} %)\n", *result.getString("level"),
                    run, skipped, 100 * share);
  return attn::writeReport(flags.report, text, std::move(json));
}

Error Runner::explainMasks() {
  if (!flags.pictures)
    return Error::success();
  StringMap<ReferenceTensor> byName;
  for (const auto &[name, array] : weightTensors)
    byName[name] = toReference(array);
  SmallVector<ReferenceTensor> tensors = map_to_vector(inputs, toReference);
  auto masks = findMaskTiles(stages["plan"], attn_function_name(function.get()),
                             {tensors, byName, /*hasValues=*/true});
  if (!masks)
    return masks.takeError();
  return writePictures(flags.pictures, *masks);
}

Error Runner::writeOutputs() {
  if (flags.outputDir.empty())
    return Error::success();
  if (std::error_code error = sys::fs::create_directories(flags.outputDir))
    return fail("cannot create '" + flags.outputDir + "': " + error.message());
  for (auto [i, output] : enumerate(results)) {
    SmallString<128> path(flags.outputDir);
    sys::path::append(path, Twine(i) + ".npy");
    if (Error error = writeNpy(path, output))
      return error;
  }
  return Error::success();
}

Error Runner::compareOutput(size_t i, const Array &expected, StringRef source) {
  std::string name = "output " + std::to_string(i);
  Expected<Difference> difference = compare(results[i], name, expected, source);
  if (!difference)
    return difference.takeError();
  auto [error, largest] = *difference;
  if (flags.json)
    result.getArray("outputs")->operator[](i).getAsObject()->insert({"error", error});
  else
    outs() << name << ": error " << format("%.2e", error) << ", largest value "
           << format("%.2e", largest) << "\n";
  double allowed = flags.tolerance * largest;
  if (error > allowed)
    return fail(
        formatv("expected an error of at most {0:e2} in {1}, got {2:e2}", allowed, name, error)
            .str());
  return Error::success();
}

Error Runner::compareWithFiles() {
  if (flags.expected.size() > results.size())
    return fail(formatv("expected --expect at most {0} times, got it {1} times", results.size(),
                        flags.expected.size())
                    .str());
  for (auto [i, path] : llvm::enumerate(flags.expected)) {
    Expected<Array> expected = readNpy(path);
    if (!expected)
      return expected.takeError();
    if (Error error = compareOutput(i, *expected, "'" + path + "'"))
      return error;
  }
  return Error::success();
}

Error Runner::compareWithReference() {
  Expected<std::vector<Array>> expected =
      computeReference(flags.model, attn_function_name(function.get()), inputs, weightTensors);
  if (!expected)
    return expected.takeError();
  for (auto [i, array] : llvm::enumerate(*expected))
    if (Error error = compareOutput(i, array, "the reference"))
      return error;
  return Error::success();
}

/// Fails if an output after `stage` differs from the expected one, and names the first such element.
Error Runner::compareStage(StringRef stage, ArrayRef<Array> got, ArrayRef<Array> expected) {
  for (auto [i, want, is] : llvm::enumerate(expected, got)) {
    double largest = 0;
    for (int64_t e = 0; e < want.getNumElements(); ++e)
      if (std::isfinite(want.at(e)))
        largest = std::max(largest, std::abs(want.at(e)));
    if (is.shape != want.shape)
      return fail("expected output " + Twine(i) + " of the model's shape after stage " + stage +
                  ", got another");
    std::optional<int64_t> first = findDifference(is, want, flags.tolerance * largest);
    if (!first)
      continue;
    SmallVector<int64_t> index(want.shape.size());
    int64_t rest = *first;
    for (size_t dim = index.size(); dim-- > 0; rest /= want.shape[dim])
      index[dim] = rest % want.shape[dim];
    return fail(formatv("expected {0} at [{1:$[, ]}] of output {2}, got {3} after stage {4}, the "
                        "first that differs from the model",
                        want.at(*first), make_range(index.begin(), index.end()), i, is.at(*first),
                        stage)
                    .str());
  }
  return Error::success();
}

/// Computes the results of the module after `stage`: interprets a module on tensors, and compiles and calls a later
/// one.
Expected<std::vector<Array>> Runner::runStage(const Stage &stage, size_t number) {
  std::string text = stages[stage.name];
  if (!flags.firstDifference->empty()) {
    SmallString<128> path(*flags.firstDifference);
    sys::path::append(path, Twine(number) + "-" + stage.name + ".mlir");
    auto file = MemoryBuffer::getFile(path, /*IsText=*/true);
    if (!file)
      return fail("cannot read '" + path + "': " + file.getError().message());
    text = (*file)->getBuffer().str();
  }
  StringRef name = attn_function_name(function.get());
  bool isOnTensors = llvm::none_of(getStages().take_front(number - 1), [](const Stage &earlier) {
    return earlier.name == "bufferize";
  });
  if (isOnTensors)
    return interpretStage(text, stage.name, name, inputs, weightTensors);
  CompileOptions options;
  options.from = stage.name.str();
  options.input = temporary + "/" + options.from + ".mlir";
  options.output = temporary + "/" + options.from + ".so";
  std::error_code error;
  raw_fd_ostream(options.input, error) << text;
  if (error)
    return fail("cannot write '" + options.input + "': " + error.message());
  if (Error error = compile(options).takeError())
    return fail("stage " + stage.name + ": " + toString(std::move(error)));
  SmallString<128> weightsFile(flags.weights);
  if (weightsFile.empty()) {
    weightsFile = library;
    sys::path::replace_extension(weightsFile, "safetensors");
  }
  Options own = flags;
  own.model = options.output;
  own.entry = name;
  own.weights = weightsFile.str();
  own.reference = false;
  own.pictures = own.report = OutputFile();
  own.firstDifference = std::nullopt;
  Runner runner(own, compileFlags);
  for (auto step :
       {&Runner::compileModel, &Runner::loadLibrary, &Runner::createFunction, &Runner::loadWeights})
    if (Error error = (runner.*step)())
      return std::move(error);
  runner.inputs = inputs;
  runner.inOut = inOut;
  if (Error error = makeResults(runner.function.get(), runner.inputs).moveInto(runner.results))
    return std::move(error);
  if (Error error = runner.call(Arguments(runner.inputs, runner.results, runner.inOut),
                                runner.weights, {}))
    return std::move(error);
  return std::move(runner.results);
}

Error Runner::compareStages() {
  StringRef name = attn_function_name(function.get());
  Expected<std::vector<Array>> expected =
      computeReference(flags.model, name, inputs, weightTensors);
  if (!expected)
    return expected.takeError();
  for (auto [i, stage] : llvm::enumerate(getStages())) {
    Expected<std::vector<Array>> got = runStage(stage, i + 2);
    if (!got)
      return got.takeError();
    if (Error error = compareStage(stage.name, *got, *expected))
      return error;
  }
  if (Error error = compareStage("emit", results, *expected))
    return error;
  if (!flags.json)
    outs() << "every stage computes what the model does\n";
  return Error::success();
}

/// Allocates a workspace with the alignment that a call requires.
static std::unique_ptr<char, decltype(&free)> allocateWorkspace(int64_t bytes) {
  void *memory =
      aligned_alloc(kWorkspaceAlignment, alignTo(std::max<int64_t>(bytes, 1), kWorkspaceAlignment));
  return {static_cast<char *>(memory), free};
}

/// The name of the CPU, such as "AMD EPYC 9B14", or the name that LLVM uses if the system gives none.
static std::string getCpuModel() {
  // Read a stream: the size of a file in /proc is not known before it is read.
  if (auto file = MemoryBuffer::getFileAsStream("/proc/cpuinfo"))
    for (line_iterator line(**file); !line.is_at_end(); ++line) {
      auto [key, value] = line->split(':');
      if (key.trim() == "model name")
        return value.trim().str();
    }
  return sys::getHostCPUName().str();
}

Error Runner::benchmark() {
  double seconds = 1;
  if (!flags.benchmark->empty() && StringRef(*flags.benchmark).getAsDouble(seconds))
    return fail("expected seconds, got '" + *flags.benchmark + "'");
  struct Tensors {
    std::vector<Array> inputs, results;
  };
  std::vector<Tensors> tensors(flags.concurrency, {inputs, results});
  attn_workspace size = {};
  size.size = sizeof(size);
  std::vector<std::function<Error()>> callers;
  for (Tensors &own : tensors) {
    auto arguments = std::make_shared<Arguments>(own.inputs, own.results, inOut);
    if (Error error =
            toError(attn_workspace_size(function.get(), arguments->inputs().data(),
                                        arguments->inputs().size(), flags.threads, &size)))
      return error;
    std::shared_ptr<char> workspace = allocateWorkspace(size.total);
    if (!workspace)
      return fail("expected " + Twine(size.total) + " bytes of workspace, got none");
    callers.push_back([this, arguments, workspace, size] {
      attn_call_options options = {};
      options.workspace = workspace.get();
      options.workspace_bytes = size.total;
      return call(*arguments, weights, options);
    });
  }
  double peak = measureFmaPeak(0.2);
  Expected<Latencies> times = measureLatencies(callers, seconds);
  if (!times)
    return times.takeError();
  peak = std::max(peak, measureFmaPeak(0.2));
  double median = times->percentile(50), p90 = times->percentile(90), p99 = times->percentile(99);
  double rate = flags.gflop * (flags.concurrency > 1 ? times->callsPerSecond : 1e3 / median);
  std::string cpu = getCpuModel();
  if (flags.json) {
    for (auto &[key, value] : json::Object{{"min_ms", times->min()},
                                           {"median_ms", median},
                                           {"p90_ms", p90},
                                           {"p99_ms", p99},
                                           {"max_ms", times->max()},
                                           {"repetitions", int64_t(times->ms.size())},
                                           {"concurrency", flags.concurrency},
                                           {"calls_per_second", times->callsPerSecond},
                                           {"flops", flags.gflop * 1e9},
                                           {"peak_gflops", peak},
                                           {"cpu", cpu}})
      result[key] = value;
    return Error::success();
  }
  outs() << format("min %.3f ms, median %.3f, p90 %.3f, p99 %.3f, max %.3f of %zu calls",
                   times->min(), median, p90, p99, times->max(), times->ms.size());
  if (flags.concurrency > 1)
    outs() << formatv(" by {0} callers, {1:f1} calls per second", flags.concurrency,
                      times->callsPerSecond);
  outs() << "; workspace " << size.total << " bytes";
  if (flags.gflop > 0)
    outs() << format("; %.1f GFLOP/s, %.1f%% of a core's FMA peak of %.1f", rate, 100 * rate / peak,
                     peak);
  outs() << "; " << cpu << "\n";
  return Error::success();
}

Error Runner::run() {
  if (flags.concurrency > 1 && !flags.benchmark)
    return fail("expected --benchmark with --concurrency, got none");
  for (auto [option, output] : std::initializer_list<std::pair<const char *, const OutputFile *>>{
           {"--opt-report", &flags.report}, {"--explain-mask", &flags.pictures}}) {
    if (*output && flags.describe)
      return fail("expected no " + Twine(option) + " with --describe, which calls nothing");
    if (output->isStandardOutput() && flags.json)
      return fail("expected a file for " + Twine(option) + " with --json, got none");
  }
  if (Error error = checkPicture(flags.pictures))
    return error;
  if (flags.isGuarded())
    if (Error error = toError(guardRuntimeMemory()))
      return error;
  for (auto step : {&Runner::compileModel, &Runner::loadLibrary})
    if (Error error = (this->*step)())
      return error;
  if (flags.describe)
    return describe();
  for (auto step : {&Runner::createFunction, &Runner::loadWeights, &Runner::makeInputs,
                    &Runner::callOnce, &Runner::writeReport, &Runner::explainMasks,
                    &Runner::writeOutputs, &Runner::compareWithFiles})
    if (Error error = (this->*step)())
      return error;
  if (flags.reference)
    if (Error error = compareWithReference())
      return error;
  if (flags.firstDifference)
    if (Error error = compareStages())
      return error;
  if (flags.benchmark)
    if (Error error = benchmark())
      return error;
  if (flags.json)
    outs() << json::Value(std::move(result)) << "\n";
  return Error::success();
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ResetCommandLineParser(); // removes the options of linked libraries, such as --threads
  Flags flags;
  parseCommandLine(argc, argv, "attn-run calls compiled attention graphs",
                   {&flags.calling, &flags.comparing, &flags.measuring, &attnCategory()});
  Options options(flags);
  if (Error error = Runner(options, flags.compile).run())
    return reportError("attn-run", std::move(error));
  return 0;
}
