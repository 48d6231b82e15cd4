//===- CommandLine.cpp - the common part of the command lines -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/CommandLine.h"
#include "tools/DrawMasks.h"
#include "tools/OptionPages.h"
#include "tools/StandardOutput.h"

#include "codegen/emit/Emit.h"
#include "passes/Passes.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>

namespace cl = llvm::cl;
using namespace attn;

cl::OptionCategory &attn::attnCategory() {
  static cl::OptionCategory category("Compiling");
  return category;
}

std::string attn::spell(const cl::Option &option) {
  return (option.ArgStr.size() == 1 ? "-" : "--") + option.ArgStr.str();
}

static llvm::DenseMap<const cl::Option *, const NameParser *> &nameParsers() {
  static llvm::DenseMap<const cl::Option *, const NameParser *> parsers;
  return parsers;
}

NameParser::NameParser(cl::Option &option) : generic_parser_base(option) {
  nameParsers()[&option] = this;
}

const NameParser *NameParser::get(const cl::Option &option) {
  return nameParsers().lookup(&option);
}

bool NameParser::parse(cl::Option &option, llvm::StringRef, llvm::StringRef name,
                       std::string &value) {
  auto known = llvm::map_range(names, [](const Name &known) { return known.name; });
  if (!llvm::is_contained(known, name))
    return option.error((names.size() == 1 ? "expected " : "expected one of ") +
                        llvm::join(known, ", ") + ", got '" + name + "'");
  value = name.str();
  return false;
}

/// The option that the user probably meant by `name`, or null: an option that starts with `name`,
/// or has a similar spelling.
static const cl::Option *findNearest(llvm::StringRef name) {
  const cl::Option *nearest = nullptr;
  unsigned least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const cl::Option *option : getVisibleOptions()) {
    bool isStart = !name.empty() && option->ArgStr.starts_with(name);
    unsigned distance = isStart ? 0 : name.edit_distance(option->ArgStr, true, least);
    if (distance < least) {
      least = distance;
      nearest = option;
    }
  }
  return nearest;
}

/// Finds an unknown, missing or extra word, and returns one line about it. LLVM's parser prints several lines, or
/// suggests a wrong option. The result is empty if there is no mistake, or if an option outside `categories`, such as
/// --help, precedes the mistake; LLVM's parser then reads the command line.
static std::string findMistake(llvm::ArrayRef<const char *> words,
                               llvm::ArrayRef<const cl::OptionCategory *> categories) {
  const auto &options = cl::getRegisteredOptions();
  llvm::ArrayRef<cl::Option *> positionals = cl::SubCommand::getTopLevel().PositionalOpts;
  llvm::SmallPtrSet<const cl::Option *, 8> given;
  llvm::SmallVector<llvm::StringRef> arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    llvm::StringRef word = words[i];
    if (!word.starts_with("-") || word == "-") {
      arguments.push_back(word);
      continue;
    }
    llvm::StringRef name = word.drop_front(word.starts_with("--") ? 2 : 1).split('=').first;
    const cl::Option *option = options.lookup(name);
    if (!option) {
      const cl::Option *nearest = findNearest(name);
      return ("expected an option, got '" + word.split('=').first + "'; " +
              (nearest ? "did you mean '" + spell(*nearest) + "'?" : "--help lists the options"))
          .str();
    }
    if (llvm::none_of(option->Categories, [&](const cl::OptionCategory *category) {
          return llvm::is_contained(categories, category);
        }))
      return "";
    given.insert(option);
    bool takesNext = option->getValueExpectedFlag() == cl::ValueRequired && !word.contains('=');
    if (takesNext && ++i == words.size())
      return "expected a value for " + spell(*option) + ", got none";
  }
  if (arguments.size() > positionals.size())
    return ("expected no argument after '" + arguments[positionals.size() - 1] + "', got '" +
            arguments[positionals.size()] + "'")
        .str();
  if (arguments.size() < positionals.size())
    return ("expected " + positionals[arguments.size()]->HelpStr + ", got none").str();
  for (const cl::Option *option : getVisibleOptions())
    if (option->getNumOccurrencesFlag() == cl::Required && !given.contains(option))
      return "expected " + spell(*option) + ", got none";
  return "";
}

void attn::parseCommandLine(int argc, char **argv, llvm::StringRef overview,
                            llvm::ArrayRef<const cl::OptionCategory *> categories,
                            llvm::ArrayRef<llvm::StringRef> rare) {
  static cl::opt<bool> helpAll("help-all", cl::ReallyHidden, cl::desc("Display all options"),
                               cl::callback([](const bool &) {
                                 cl::PrintHelpMessage(/*Hidden=*/true, /*Categorized=*/true);
                                 exit(0);
                               }));
  static cl::extrahelp more("\n--help-all displays all options.\n");
  for (llvm::StringRef name : rare)
    cl::getRegisteredOptions()[name]->setHiddenFlag(cl::Hidden);
  static NameOption generate("generate", cl::ReallyHidden,
                             cl::desc("Write a page about the options"),
                             cl::values(clEnumValN(0, "man", "manual page"),
                                        clEnumValN(0, "bash", "completion, to be sourced by bash")),
                             cl::callback([overview](const std::string &page) {
                               auto [tool, does] = overview.split(' ');
                               if (page == "man")
                                 writeManPage(tool, does, llvm::outs());
                               else
                                 writeBashCompletion(tool, llvm::outs());
                               exit(0);
                             }));
  checkStandardOutput(overview.split(' ').first.str());
  // If a write exceeds the limit of file sizes, the write should fail; by default, the signal would end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  llvm::setBugReportMsg(
      "This is a bug in attn: please report it with the command and its input.\n");
  cl::HideUnrelatedOptions(categories);
  cl::SetVersionPrinter([](llvm::raw_ostream &out) {
    out << "attn " ATTN_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
  });
  llvm::BumpPtrAllocator memory;
  llvm::StringSaver saver(memory);
  llvm::SmallVector<const char *> words(argv, argv + argc);
  cl::ExpandResponseFiles(saver, cl::TokenizeGNUCommandLine, words);
  std::string mistake = findMistake(llvm::ArrayRef(words).drop_front(), categories);
  if (!mistake.empty())
    exit(reportError(llvm::sys::path::filename(argv[0]), llvm::createStringError(mistake)));
  cl::ParseCommandLineOptions(words.size(), words.data(), (overview + "\n").str());
}

int attn::reportError(llvm::StringRef tool, llvm::Error error) {
  llvm::errs() << tool << ": " << llvm::toString(std::move(error)) << "\n";
  return 1;
}

llvm::Error OutputFile::write(llvm::function_ref<void(llvm::raw_ostream &)> print,
                              OutputFiles &files) const {
  if (path.empty()) {
    print(llvm::outs());
    return llvm::Error::success();
  }
  return files.add(path, print);
}

/// What identifies the file `path`, which need not exist.
static std::string identify(llvm::StringRef path) {
  llvm::sys::fs::UniqueID id;
  if (!llvm::sys::fs::getUniqueID(path, id))
    return std::to_string(id.getDevice()) + ":" + std::to_string(id.getFile());
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  llvm::SmallString<128> real;
  if (llvm::sys::fs::real_path(folder.empty() ? "." : folder, real))
    return path.str();
  llvm::sys::path::append(real, llvm::sys::path::filename(path));
  return real.str().str();
}

llvm::Error attn::checkDistinct(const CompileOptions &options,
                                llvm::ArrayRef<const OutputFile *> others) {
  llvm::SmallVector<std::pair<std::string, std::string>> files = {{"the model", options.input}};
  if (!options.output.empty())
    files.push_back({"-o", options.output});
  llvm::Expected<OutputKind> kind = getOutputKind(options.output);
  if (!kind)
    llvm::consumeError(kind.takeError()); // compile() reports it
  else if (llvm::is_contained({OutputKind::Shared, OutputKind::Archive, OutputKind::Object}, *kind))
    for (llvm::StringRef suffix : {".h", ".json", ".safetensors"}) {
      llvm::SmallString<128> path(options.output);
      llvm::sys::path::replace_extension(path, suffix);
      files.push_back({("the " + suffix + " file beside -o").str(), path.str().str()});
    }
  for (const OutputFile *other : others)
    if (*other && !other->isStandardOutput())
      files.push_back({other->getName().str(), other->getPath().str()});
  llvm::StringMap<llvm::StringRef> seen;
  for (const auto &[name, path] : files)
    if (auto [it, isNew] = seen.try_emplace(identify(path), name); !isNew)
      return llvm::createStringError("expected different files for " + it->second + " and " + name +
                                     ", got '" + path + "' for both");
  return llvm::Error::success();
}

ReportOption::ReportOption()
    : opt("opt-report", cl::ValueOptional, cl::init(""), cl::value_desc("file"),
          cl::cat(attnCategory()),
          cl::desc("Print how each attention was fused or why it was not, and which loops are slow; "
                   "to standard output or a file (JSON if its name ends in .json)")) {}

llvm::Error attn::writeReport(const OutputFile &file, llvm::StringRef text, llvm::json::Object json,
                              OutputFiles &files) {
  llvm::json::Value value(std::move(json));
  auto print = [&](llvm::raw_ostream &out) {
    if (file.getPath().ends_with(".json"))
      out << llvm::formatv("{0:2}", value) << "\n";
    else
      out << text;
  };
  return file.write(print, files);
}

ExplainOption::ExplainOption()
    : opt("explain-mask", cl::ValueOptional, cl::init(""), cl::value_desc("file.svg"),
          cl::cat(attnCategory()),
          cl::desc("Draw the tiles that each attention computes and skips: text on standard output, or an "
                   "image in a file")) {}

llvm::Error attn::checkPicture(const OutputFile &file) {
  if (!file || file.isStandardOutput() || file.getPath().ends_with(".svg"))
    return llvm::Error::success();
  return llvm::createStringError("expected a file that ends in .svg for --explain-mask, got '" +
                                 file.getPath() + "'");
}

llvm::Error attn::writePictures(const OutputFile &file, llvm::ArrayRef<MaskTiles> masks,
                                OutputFiles &files) {
  auto print = [&](llvm::raw_ostream &out) {
    file.isStandardOutput() ? drawText(masks, out) : drawSVG(masks, out);
  };
  return file.write(print, files);
}

CompileFlags::CompileFlags()
    : target("target", cl::value_desc("levels"), cl::cat(attnCategory()),
             cl::desc("The ISA levels to compile for, such as x86-64,x86-64-v3; or 'native', 'all' "
                      "or 'all:x86_64'")),
      schedule(
          "schedule", cl::value_desc("name"), cl::cat(attnCategory()),
          cl::desc(
              "The schedule of every attention; default: the one that is predicted to be fastest"),
          scheduleValues()),
      compute(
          "compute", cl::value_desc("type"), cl::cat(attnCategory()),
          cl::desc("Let products of f32 round their factors to a narrower type if this is "
                   "predicted to be faster; "
                   "sums stay f32"),
          cl::values(clEnumValN(
              0, "bf16",
              "8 bits of precision; levels without instructions for products of bf16 keep f32"))),
      workers("workers", cl::value_desc("N"), cl::cat(attnCategory()),
              cl::desc("The number of threads that will compute the tasks; plans that are up to 5 "
                       "% slower with one "
                       "thread may be chosen for it; default: unknown")),
      requireFused("require-fused", cl::cat(attnCategory()),
                   cl::desc("Fail if there is no attention, or if one is not fused, and print its "
                            "line and the reason")) {}

llvm::Error CompileFlags::apply(CompileOptions &options, llvm::StringRef defaultTargets) const {
  auto targets = parseTargets(target.getNumOccurrences() ? llvm::StringRef(target) : defaultTargets);
  if (!targets)
    return targets.takeError();
  options.targets = std::move(*targets);
  options.requireFused = requireFused;
  if (schedule.getNumOccurrences())
    options.pipeline.schedule = schedule;
  static constexpr unsigned kMostWorkers = 1024;
  if (workers.getNumOccurrences() && (workers == 0 || workers > kMostWorkers))
    return llvm::createStringError("expected --workers from 1 to " + llvm::Twine(kMostWorkers) +
                                   ", got " + llvm::Twine(unsigned(workers)));
  options.pipeline.workers = workers;
  options.compute = compute;
  // The output of `plan` and of later stages contains the targets, the plans and the types.
  bool saysIt = options.from == "emit";
  bool isLater = false;
  for (const Stage &stage : getStages()) {
    isLater |= stage.name == "plan";
    saysIt |= isLater && options.from == stage.name;
  }
  for (const cl::Option *flag :
       std::initializer_list<const cl::Option *>{&target, &schedule, &workers, &compute})
    if (saysIt && flag->getNumOccurrences())
      return llvm::createStringError("expected no --" + flag->ArgStr + " with --from=" +
                                     options.from + ", because stage plan has made that choice");
  return llvm::Error::success();
}
