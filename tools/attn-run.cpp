//===- attn-run.cpp - call a compiled function from the command line ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The first argument is a library that attnc wrote, or a model, which attn-run compiles first. Inputs come from .npy
// files, or are random; every compared call starts with the original in-out inputs. attn-run writes the results of the
// call to standard output as text or, with --json, as one JSON object.
//
//===----------------------------------------------------------------------===//

#include "support/Json.h"
#include "tools/CommandLine.h"
#include "tools/Compare.h"
#include "tools/Describe.h"
#include "tools/SafetensorsFile.h"
#include "tools/ToError.h"
#include "tools/call/Call.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace cl = llvm::cl;
using namespace llvm;
using namespace attn;

static Error fail(const Twine &message) { return createStringError(message); }

namespace {

struct Flags {
  cl::OptionCategory Calling{"Calling"}, Comparing{"Comparing"}, Measuring{"Measuring"};
  cl::opt<std::string> model{cl::Positional, cl::Required, cl::desc("<model: .so .pt2 .mlir>"),
                             cl::cat(Calling)};
#define CALL_FLAG(member, name, category, text)                                                    \
  cl::opt<bool> member{name, cl::cat(category), cl::desc(text)};
#define CALL_TEXT(member, name, value, category, text)                                             \
  cl::opt<std::string> member{name, cl::value_desc(value), cl::cat(category), cl::desc(text)};
#define CALL_LIST(member, name, value, category, text)                                             \
  cl::list<std::string> member{name, cl::value_desc(value), cl::cat(category), cl::desc(text)};
#define CALL_COUNT(member, name, value, category, text)                                            \
  cl::opt<unsigned, false, CountParser> member{name, cl::init(1), cl::value_desc(value),           \
                                               cl::cat(category), cl::desc(text)};
#define CALL_NUMBER(member, name, value, category, text)                                           \
  cl::opt<double> member{name, cl::value_desc(value), cl::cat(category), cl::desc(text)};
#define CALL_MAYBE(member, name, value, category, text)                                            \
  cl::opt<std::string> member{name, cl::ValueOptional, cl::value_desc(value), cl::cat(category),   \
                              cl::desc(text)};
#include "tools/call/Options.def"
  cl::opt<bool> describe{"describe", cl::cat(Calling),
                         cl::desc("Print the functions of the library and their arguments, without calling any")};
  cl::opt<std::string> runner{
      "runner", cl::value_desc("command"), cl::cat(Calling),
      cl::desc("Call the function with this command, such as 'qemu-aarch64 attn-call'; attn-run adds the library and "
               "the options of the call")};
  cl::opt<bool> reference{
      "reference", cl::cat(Comparing),
      cl::desc("Fail if results differ from those of the model, computed op by op in float64. "
               "Implies --guard, except with --benchmark")};
  cl::opt<std::string> firstDifference{
      "first-difference", cl::ValueOptional, cl::value_desc("dir"), cl::cat(Comparing),
      cl::desc(
          "Find the first stage of the compiler whose results differ from the model's, and name the stage and the element; "
          "uses the stages of this compilation, or the files that --dump-stages wrote to the given folder")};
  ReportOption report;
  ExplainOption explain;
  CompileFlags compile;
};

/// The values of the flags. They are copies, because the linker, which runs in the same process, resets all options of
/// LLVM and attn.
struct Options : CallOptions {
  explicit Options(const Flags &flags)
      : model(flags.model), runner(flags.runner), describe(flags.describe),
        reference(flags.reference),
        report(flags.report), pictures(flags.explain) {
#define CALL_FLAG(member, ...) member = flags.member;
#define CALL_TEXT(member, ...) member = flags.member;
#define CALL_LIST(member, ...) member.assign(flags.member.begin(), flags.member.end());
#define CALL_COUNT(member, ...) member = flags.member;
#define CALL_NUMBER(member, ...)                                                                   \
  if (flags.member.getNumOccurrences())                                                            \
    member = flags.member;
#define CALL_MAYBE CALL_NUMBER
#include "tools/call/Options.def"
    if (flags.firstDifference.getNumOccurrences())
      firstDifference = flags.firstDifference;
    compares = reference;
  }

  std::string model, runner;
  bool describe, reference;
  std::optional<std::string> firstDifference;
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
  Error makeFolder();
  Error callByRunner();
  Error describe();
  Error readWeights();
  Error writeReport();
  Error explainMasks();
  Error compareWithReference();
  Error compareStages();
  Expected<std::vector<Array>> runStage(const Stage &stage, size_t number);
  Error compareStage(StringRef stage, ArrayRef<Array> got, ArrayRef<Array> expected);

  const Options &flags;
  const CompileFlags &compileFlags;
  std::string library, temporary;
  std::optional<Call> call;
  std::vector<std::pair<std::string, Array>> weights;
  CompileReport compiled;
  OutputFiles files;
  StringMap<std::string> stages; ///< text of the module after each stage
};

} // namespace

Error Runner::compileModel() {
  library = flags.model;
  StringRef suffix = sys::path::extension(library);
  if (!is_contained({".so", ".pt2", ".mlir"}, suffix))
    return fail("expected a file that ends in .so, .pt2 or .mlir, got '" + Twine(library) + "'");
  if (suffix == ".so") {
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
  if (Error error = makeFolder())
    return error;
  library = temporary + "/model.so";
  CompileOptions options;
  options.input = flags.model;
  options.output = library;
  if (flags.pictures || flags.firstDifference)
    options.onStage = [&](StringRef stage, StringRef text) {
      stages[stage] = text.str();
      return Error::success();
    };
  if (Error error = compileFlags.apply(options, !flags.level.empty()   ? StringRef(flags.level)
                                                    : !flags.device.empty() ? "all:nvptx64"
                                                                            : "native"))
    return error;
  return compile(options).moveInto(compiled);
}

Error Runner::makeFolder() {
  SmallString<128> folder;
  if (std::error_code error = sys::fs::createUniqueDirectory("attn-run", folder))
    return fail("cannot create a temporary folder: " + error.message());
  temporary = folder.str();
  return Error::success();
}

/// The options of a call as words of a command line.
static std::vector<std::string> toWords(const CallOptions &options) {
  std::vector<std::string> words;
  auto add = [&](const char *name, const Twine &value) {
    words.push_back(("--" + Twine(name) + "=" + value).str());
  };
#define CALL_FLAG(member, name, ...)                                                               \
  if (options.member)                                                                              \
    words.push_back("--" name);
#define CALL_TEXT(member, name, ...)                                                               \
  if (!options.member.empty())                                                                     \
    add(name, options.member);
#define CALL_LIST(member, name, ...)                                                               \
  for (const std::string &value : options.member)                                                  \
    add(name, value);
#define CALL_COUNT(member, name, ...)                                                              \
  if (options.member != 1)                                                                         \
    add(name, Twine(options.member));
#define CALL_NUMBER(member, name, ...)                                                             \
  if (options.member)                                                                              \
    add(name, formatv("{0:e17}", *options.member).str());
#define CALL_MAYBE(member, name, ...)                                                              \
  if (options.member)                                                                              \
    words.push_back("--" name + (options.member->empty() ? "" : "=" + *options.member));
#include "tools/call/Options.def"
  return words;
}

/// Runs the command of --runner, and compares the results that the command saves with the reference.
Error Runner::callByRunner() {
  if (temporary.empty())
    if (Error error = makeFolder())
      return error;
  CallOptions options = flags;
  options.guard |= options.isGuarded();
  if (options.inputDir.empty())
    options.inputDir = temporary + "/inputs";
  if (options.outputDir.empty())
    options.outputDir = temporary + "/outputs";
  BumpPtrAllocator memory;
  StringSaver saver(memory);
  SmallVector<const char *> command;
  cl::TokenizeGNUCommandLine(flags.runner, saver, command);
  SmallVector<StringRef> words(command.begin(), command.end());
  ErrorOr<std::string> program = sys::findProgramByName(words.empty() ? "" : words.front());
  if (!program || !sys::fs::can_execute(*program))
    return fail("expected a program to start with --runner, got '" + Twine(flags.runner) + "'");
  words.push_back(library);
  std::vector<std::string> optionWords = toWords(options);
  append_range(words, optionWords);
  std::string message;
  if (int status = sys::ExecuteAndWait(*program, words, std::nullopt, {}, 0, 0, &message))
    return fail("the command of --runner failed" +
                (message.empty() ? " with status " + std::to_string(status) : ": " + message));
  if (!flags.reference)
    return Error::success();

  auto manifest = MemoryBuffer::getFile(temporary + "/model.json");
  if (!manifest)
    return fail("cannot read the manifest: " + manifest.getError().message());
  Expected<LibraryInfo> info = readManifest((*manifest)->getBuffer());
  if (!info)
    return info.takeError();
  auto function = find_if(info->functions, [&](const FunctionInfo &each) {
    return options.entry.empty() || each.name == options.entry;
  });
  if (function == info->functions.end())
    return fail("expected a function '" + options.entry + "', got none");
  auto readArrays = [](StringRef folder, size_t count, std::vector<Array> &arrays) -> Error {
    for (size_t i = 0; i < count; ++i)
      if (Error error = toError(
              readNpy((folder + "/" + Twine(i) + ".npy").str(), arrays.emplace_back())))
        return error;
    return Error::success();
  };
  std::vector<Array> inputs, results;
  if (Error error = readArrays(options.inputDir, function->inputs.size(), inputs))
    return error;
  std::string file = options.weights.empty() ? temporary + "/model.safetensors" : options.weights;
  if (sys::fs::exists(file))
    if (Error error = readSafetensors(file).moveInto(weights))
      return error;
  Expected<std::vector<Array>> expected =
      computeReference(flags.model, function->name, inputs, weights);
  if (!expected)
    return expected.takeError();
  if (Error error = readArrays(options.outputDir, expected->size(), results))
    return error;
  double difference;
  for (auto [i, result, want] : enumerate(results, *expected))
    if (Error error = toError(compareArrays(result, "output " + std::to_string(i), want,
                                              "the reference", options.getTolerance(result),
                                              !options.json, difference)))
      return error;
  return Error::success();
}

Error Runner::describe() {
  Expected<json::Value> value = parseJSON(call->getManifest());
  if (!value)
    return value.takeError();
  Expected<LibraryInfo> info = readManifest(call->getManifest());
  if (!info)
    return info.takeError();
  std::vector<std::string> levels;
  if (Error error = toError(call->findLevels(levels)))
    return error;
  if (info->functions.size() != levels.size())
    return fail("expected a manifest of " + Twine(levels.size()) + " functions, got " +
                Twine(info->functions.size()));
  if (flags.json) {
    json::Array &functions = *value->getAsObject()->getArray("functions");
    for (auto [function, level] : zip_equal(functions, levels))
      function.getAsObject()->insert(
          {"level", level.empty() ? json::Value(nullptr) : json::Value(level)});
    outs() << formatv("{0:2}\n", *value);
    return Error::success();
  }
  outs() << info->name << ", compiled by " << info->compiler << "\n";
  for (auto [function, level] : zip_equal(info->functions, levels))
    describeFunction(function, level, outs() << "\n");
  return Error::success();
}

/// Reads the weights for the interpreter, from the file that the call has loaded.
Error Runner::readWeights() {
  if (call->getWeightsFile().empty() ||
      !(flags.reference || flags.pictures || flags.firstDifference))
    return Error::success();
  return readSafetensors(call->getWeightsFile()).moveInto(weights);
}

/// Writes the report of the compiler and the tiles of the call. `skipped_share` is the share of skipped tiles among all
/// tiles of all attentions.
Error Runner::writeReport() {
  if (!flags.report)
    return Error::success();
  const attn_statistics &statistics = call->getStatistics();
  int64_t run = statistics.tiles_run, skipped = statistics.tiles_skipped;
  double share = run + skipped ? double(skipped) / double(run + skipped) : 0;
  Expected<json::Value> result = parseJSON(call->toJSON());
  if (!result)
    return result.takeError();
  result->getAsObject()->insert({"skipped_share", share});
  json::Object json = std::move(compiled.json);
  json["call"] = std::move(*result);
  std::string text = std::move(compiled.text);
  if (run + skipped)
    text += formatv("[{0}] tiles: {1} run, {2} skipped ({3:f1} %)\n", statistics.level, run,
                    skipped, 100 * share);
  return attn::writeReport(flags.report, text, std::move(json), files);
}

Error Runner::explainMasks() {
  if (!flags.pictures)
    return Error::success();
  StringMap<ReferenceTensor> byName;
  for (const auto &[name, array] : weights)
    byName[name] = toReference(array);
  SmallVector<ReferenceTensor> tensors = map_to_vector(call->getInputs(), toReference);
  auto masks =
      findMaskTiles(stages["plan"], call->getFunctionName(), {tensors, byName, /*hasValues=*/true});
  if (!masks)
    return masks.takeError();
  return writePictures(flags.pictures, *masks, files);
}

Error Runner::compareWithReference() {
  Expected<std::vector<Array>> expected =
      computeReference(flags.model, call->getFunctionName(), call->getInputs(), weights);
  if (!expected)
    return expected.takeError();
  for (auto [i, array] : llvm::enumerate(*expected))
    if (Error error = toError(call->compareResult(i, array, "the reference")))
      return error;
  return Error::success();
}

/// Fails if an output after `stage` differs from the expected one, and names the first element that differs.
Error Runner::compareStage(StringRef stage, ArrayRef<Array> got, ArrayRef<Array> expected) {
  for (auto [i, want, is] : llvm::enumerate(expected, got)) {
    double largest = 0;
    for (int64_t e = 0; e < want.getNumElements(); ++e)
      if (std::isfinite(want.at(e)))
        largest = std::max(largest, std::abs(want.at(e)));
    if (is.shape != want.shape)
      return fail("expected output " + Twine(i) + " of the model's shape after stage " + stage +
                  ", got another shape");
    std::optional<int64_t> first = findDifference(is, want, flags.getTolerance(is) * largest);
    if (!first)
      continue;
    SmallVector<int64_t> index(want.shape.size());
    int64_t rest = *first;
    for (size_t dim = index.size(); dim-- > 0; rest /= want.shape[dim])
      index[dim] = rest % want.shape[dim];
    auto digits = [](double value) {
      std::string text; // enough digits to tell any two floats apart
      raw_string_ostream(text) << format("%.9g", value);
      return text;
    };
    return fail(formatv("expected {0} at [{1:$[, ]}] of output {2}, got {3} after stage {4}, the "
                        "first element that differs from the model",
                        digits(want.at(*first)), make_range(index.begin(), index.end()), i,
                        digits(is.at(*first)), stage)
                    .str());
  }
  return Error::success();
}

/// Computes the results of the module after `stage`. Interprets modules on tensors; compiles and calls modules of later
/// stages.
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
  StringRef name = call->getFunctionName();
  bool isOnTensors = llvm::none_of(getStages().take_front(number - 1), [](const Stage &earlier) {
    return earlier.name == "bufferize";
  });
  if (isOnTensors)
    return interpretStage(text, stage.name, name, call->getInputs(), weights);
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
  CallOptions own;
  own.library = options.output;
  own.entry = name;
  own.level = flags.level;
  own.weights = call->getWeightsFile();
  own.threads = flags.threads;
  own.json = true; // print nothing
  Call callOfStage(own);
  callOfStage.setInputs(call->getInputs());
  for (auto step : {&Call::load, &Call::open, &Call::run})
    if (Error error = toError((callOfStage.*step)()))
      return std::move(error);
  return callOfStage.getResults();
}

Error Runner::compareStages() {
  Expected<std::vector<Array>> expected =
      computeReference(flags.model, call->getFunctionName(), call->getInputs(), weights);
  if (!expected)
    return expected.takeError();
  for (auto [i, stage] : llvm::enumerate(getStages())) {
    Expected<std::vector<Array>> got = runStage(stage, i + 2);
    if (!got)
      return got.takeError();
    if (Error error = compareStage(stage.name, *got, *expected))
      return error;
  }
  if (Error error = compareStage("emit", call->getResults(), *expected))
    return error;
  if (!flags.json)
    outs() << "every stage computes what the model does\n";
  return Error::success();
}

Error Runner::run() {
  if (Error error = toError(flags.check()))
    return error;
  for (auto [option, output] : std::initializer_list<std::pair<const char *, const OutputFile *>>{
           {"--opt-report", &flags.report}, {"--explain-mask", &flags.pictures}}) {
    if (*output && flags.describe)
      return fail("expected no " + Twine(option) + " with --describe, which calls nothing");
    if (output->isStandardOutput() && flags.json)
      return fail("expected a file for " + Twine(option) + " with --json, got none");
  }
  if (Error error = checkPicture(flags.pictures))
    return error;
  CompileOptions given;
  given.input = flags.model;
  if (Error error = checkDistinct(given, {&flags.report, &flags.pictures}))
    return error;
  if (!flags.runner.empty())
    for (auto [option, isGiven] : std::initializer_list<std::pair<const char *, bool>>{
             {"--opt-report", bool(flags.report)},
             {"--explain-mask", bool(flags.pictures)},
             {"--describe", flags.describe},
             {"--first-difference", flags.firstDifference.has_value()},
             {"--json of --reference", flags.json && flags.reference}})
      if (isGiven)
        return fail("expected no " + Twine(option) + " with --runner");
  if (Error error = compileModel())
    return error;
  if (!flags.runner.empty())
    return callByRunner();
  CallOptions options = flags;
  options.library = library;
  call.emplace(std::move(options));
  auto take = [&](std::initializer_list<Failure (Call::*)()> steps) -> Error {
    for (auto step : steps)
      if (Error error = toError(((*call).*step)()))
        return error;
    return Error::success();
  };
  if (Error error = take({&Call::load}))
    return error;
  if (flags.describe)
    return describe();
  if (Error error = take({&Call::open}))
    return error;
  if (Error error = readWeights())
    return error;
  if (Error error = take({&Call::run}))
    return error;
  if (Error error = writeReport())
    return error;
  if (Error error = explainMasks())
    return error;
  if (Error error = take({&Call::writeArrays, &Call::compareWithFiles}))
    return error;
  if (flags.reference)
    if (Error error = compareWithReference())
      return error;
  if (flags.firstDifference)
    if (Error error = compareStages())
      return error;
  if (flags.benchmark)
    if (Error error = take({&Call::measure}))
      return error;
  if (flags.taskTimes)
    if (Error error = take({&Call::measureTasks}))
      return error;
  if (flags.json)
    outs() << call->toJSON() << "\n";
  if (Error error = files.keep())
    return error;
  return toError(checkOutput());
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ResetCommandLineParser(); // removes the options of linked libraries, such as --threads
  Flags flags;
  parseCommandLine(argc, argv, "attn-run calls compiled attention graphs",
                   {&flags.Calling, &flags.Comparing, &flags.Measuring, &attnCategory()},
                   /*rare=*/
                   {"compute", "concurrency", "entry", "explain-mask", "gflop", "json", "runner",
                    "save-inputs", "schedule", "task-times", "tolerance", "workers"});
  outs().SetUnbuffered(); // the call prints to the same file
  Options options(flags);
  if (Error error = Runner(options, flags.compile).run())
    return reportError("attn-run", std::move(error));
  return 0;
}
