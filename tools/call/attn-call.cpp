//===- attn-call.cpp - call a compiled function, without the compiler -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Calls, checks and measures a function of a library that attnc wrote. The program needs only the runtime and the C++
// standard library, so that it can be built for a machine, or an emulator, for which there is no LLVM.
//
//===----------------------------------------------------------------------===//

#include "tools/call/Arguments.h"
#include "tools/call/Call.h"

#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <new>

using namespace attn;

namespace {

struct Options : CallOptions {
  bool describe = false, help = false, version = false;
};

enum Category { Calling, Comparing, Measuring };

/// One option: its texts, and the function that stores its value.
struct Option {
  const char *name, *value;
  int takes; ///< no_argument, required_argument or optional_argument
  Category category;
  const char *description;
  Failure (*set)(Options &options, const char *name, const char *value);
};

} // namespace

// Each of these functions sets a member of CallOptions from the value of its option.
static Failure set(bool &flag, const char *, const char *) {
  flag = true;
  return {};
}
static Failure set(std::string &text, const char *, const char *value) {
  text = value;
  return {};
}
static Failure set(std::vector<std::string> &list, const char *, const char *value) {
  list.push_back(value);
  return {};
}
static Failure set(std::optional<std::string> &text, const char *, const char *value) {
  text = value ? value : "";
  return {};
}
static Failure set(unsigned &count, const char *name, const char *value) {
  if (!parseInteger(value, count) || count < 1 || count > CallOptions::kMaxCount)
    return refuse("for the --%s option: expected a number in [1, %u], got '%s'", name,
                  CallOptions::kMaxCount, value);
  return {};
}
static Failure set(std::optional<double> &number, const char *name, const char *value) {
  char *end;
  number = std::strtod(value, &end);
  if (*end || end == value)
    return refuse("for the --%s option: expected a number, got '%s'", name, value);
  return {};
}

static const Option kOptions[] = {
#define OPTION(member, name, value, takes, category, description)                                  \
  {name,                                                                                           \
   value,                                                                                          \
   takes,                                                                                          \
   category,                                                                                       \
   description,                                                                                    \
   [](Options &options, const char *option, const char *given) {                                   \
     return set(options.member, option, given);                                                    \
   }},
#define CALL_FLAG(member, name, category, description)                                             \
  OPTION(member, name, "", no_argument, category, description)
#define CALL_TEXT(member, name, value, category, description)                                      \
  OPTION(member, name, value, required_argument, category, description)
#define CALL_LIST CALL_TEXT
#define CALL_COUNT CALL_TEXT
#define CALL_NUMBER(member, name, value, category, description)                                    \
  OPTION(member, name, value, required_argument, category, description)
#define CALL_MAYBE(member, name, value, category, description)                                     \
  OPTION(member, name, value, optional_argument, category, description)
#include "tools/call/Options.def"
    OPTION(describe, "describe", "", no_argument, Calling,
           "Print the manifest of the library and the levels that run on this CPU as JSON, and "
           "call nothing") OPTION(help, "help", "", no_argument, Calling, "Print this text")
        OPTION(version, "version", "", no_argument, Calling, "Print the version")
#undef OPTION
};

/// Prints `text` in lines of at most 100 characters; all but the first start with `indent` spaces.
static void printWrapped(const std::string &text, size_t indent) {
  constexpr size_t kWidth = 100;
  size_t room = kWidth - indent;
  for (size_t from = 0; from < text.size();) {
    size_t length = text.size() - from;
    if (length > room)
      length = text.rfind(' ', from + room) - from;
    std::printf("%*s%.*s\n", from ? int(indent) : 0, "", int(length), text.c_str() + from);
    from += length + 1;
  }
}

static void printHelp() {
  std::puts("attn-call calls a function of a library that attnc, the compiler of attn, wrote\n\n"
            "usage: attn-call [options] <library.so>");
  constexpr size_t kIndent = 30;
  const char *titles[] = {"Calling", "Comparing", "Measuring"};
  for (Category category : {Calling, Comparing, Measuring}) {
    std::printf("\n%s:\n", titles[category]);
    for (const Option &option : kOptions) {
      if (option.category != category)
        continue;
      std::string form = format("  --%s", option.name);
      if (option.takes != no_argument)
        form += format(option.takes == optional_argument ? "[=<%s>]" : "=<%s>", option.value);
      std::printf("%-*s", int(kIndent), form.c_str());
      printWrapped(option.description, kIndent);
    }
  }
}

/// Parses the command line.
static Failure parse(int argc, char **argv, Options &options) {
  std::vector<struct option> table;
  for (const Option &option : kOptions)
    table.push_back({option.name, option.takes, nullptr, 0});
  table.push_back({});
  opterr = 0;
  std::vector<const char *> arguments;
  // "-" makes getopt return all arguments in order, so argv[optind - 1] is the word that getopt has just read.
  for (int found, index;
       (found = getopt_long_only(argc, argv, "-:", table.data(), &index)) != -1;) {
    const char *word = argv[optind - 1];
    if (found == ':')
      return refuse("expected a value for %s, got none", word);
    if (found == '?')
      return refuse("expected an option, got '%s'; --help lists the options", word);
    if (found == 1)
      arguments.push_back(optarg);
    else if (Failure failure = kOptions[index].set(options, kOptions[index].name, optarg))
      return failure;
    if (options.help || options.version)
      return {};
  }
  arguments.insert(arguments.end(), argv + optind, argv + argc); // after "--"
  if (arguments.empty())
    return refuse("expected <library.so>, got none");
  if (arguments.size() > 1)
    return refuse("expected no argument after '%s', got '%s'", arguments[0], arguments[1]);
  options.library = arguments[0];
  return {};
}

/// Prints the manifest of the library, and the level at which each function runs here, in order.
static Failure describe(const Call &call) {
  std::vector<std::string> levels;
  if (Failure failure = call.findLevels(levels))
    return failure;
  std::string list;
  for (const std::string &level : levels)
    list += (list.empty() ? "" : ", ") + (level.empty() ? "null" : quoteJSON(level));
  std::printf("{\"levels\": [%s], \"manifest\": %s}\n", list.c_str(), call.getManifest());
  return {};
}

static Failure run(const Options &options) {
  if (Failure failure = options.check())
    return failure;
  Call call(options);
  if (Failure failure = call.load())
    return failure;
  if (options.describe)
    return describe(call);
  for (auto step : {&Call::open, &Call::run, &Call::writeArrays, &Call::compareWithFiles})
    if (Failure failure = (call.*step)())
      return failure;
  if (options.benchmark)
    if (Failure failure = call.measure())
      return failure;
  if (options.taskTimes)
    if (Failure failure = call.measureTasks())
      return failure;
  if (options.json)
    std::puts(call.toJSON().c_str());
  return {};
}

static Failure parseAndRun(int argc, char **argv) try {
  Options options;
  if (Failure failure = parse(argc, argv, options))
    return failure;
  Failure failure;
  if (options.help)
    printHelp();
  else if (options.version)
    std::printf("attn %s\n", attn_version());
  else
    failure = run(options);
  return failure ? failure : checkOutput();
} catch (const std::bad_alloc &) {
  return {"expected more memory, got none"};
}

int main(int argc, char **argv) {
  Failure failure = parseAndRun(argc, argv);
  if (failure)
    std::fprintf(stderr, "attn-call: %s\n", failure.message.c_str());
  return failure ? 1 : 0;
}
