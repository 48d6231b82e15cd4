//===- attn-call.cpp - call a compiled function, without the compiler -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Calls, checks and measures a function of a library that attnc wrote. The program consists of the runtime and the C++
// library alone, so that it can be built for a machine, or an emulator, for which there is no LLVM.
//
//===----------------------------------------------------------------------===//

#include "tools/call/Call.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <getopt.h>

using namespace attn;

namespace {

enum Category { Calling, Comparing, Measuring };

/// One option: its texts, and how its value gets into the options.
struct Option {
  const char *name, *value;
  int takes; ///< no_argument, required_argument or optional_argument
  Category category;
  const char *description;
  Failure (*set)(CallOptions &options, const char *name, const char *value);
};

} // namespace

// The value of an option, by the type of its member of CallOptions.
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
  char *end;
  unsigned long number = std::strtoul(value, &end, /*base=*/10);
  if (*end || number < 1 || number > CallOptions::kMaxCount)
    return ATTN_FAIL("for the --%s option: expected a number in [1, %u], got '%s'", name,
                     CallOptions::kMaxCount, value);
  count = number;
  return {};
}
static Failure set(double &number, const char *name, const char *value) {
  char *end;
  number = std::strtod(value, &end);
  if (*end || end == value)
    return ATTN_FAIL("for the --%s option: expected a number, got '%s'", name, value);
  return {};
}

static const Option kOptions[] = {
#define OPTION(member, name, value, takes, category, description)                                  \
  {name,                                                                                           \
   value,                                                                                          \
   takes,                                                                                          \
   category,                                                                                       \
   description,                                                                                    \
   [](CallOptions &options, const char *option, const char *given) {                               \
     return set(options.member, option, given);                                                    \
   }},
#define CALL_FLAG(member, name, category, description)                                             \
  OPTION(member, name, "", no_argument, category, description)
#define CALL_TEXT(member, name, value, category, description)                                      \
  OPTION(member, name, value, required_argument, category, description)
#define CALL_LIST CALL_TEXT
#define CALL_COUNT CALL_TEXT
#define CALL_NUMBER(member, name, value, initial, category, description)                           \
  OPTION(member, name, value, required_argument, category, description)
#define CALL_MAYBE(member, name, value, category, description)                                     \
  OPTION(member, name, value, optional_argument, category, description)
#include "tools/call/Options.def"
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
  std::puts("attn-call calls a function of a library that attnc wrote\n\n"
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

/// Parses the command line. Sets `isDone` if an option such as --help has answered it.
static Failure parse(int argc, char **argv, CallOptions &options, bool &isDone) {
  std::vector<struct option> table;
  for (const Option &option : kOptions)
    table.push_back({option.name, option.takes, nullptr, 0});
  int help = table.size(), version = help + 1, index = 0;
  table.push_back({"help", no_argument, nullptr, 0});
  table.push_back({"version", no_argument, nullptr, 0});
  table.push_back({});
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":", table.data(), &index)) != -1;) {
    if (found == ':')
      return ATTN_FAIL("expected a value of %s, got none", argv[optind - 1]);
    if (found == '?')
      return ATTN_FAIL("expected an option, got '%s'; --help lists them", argv[optind - 1]);
    isDone |= index == help || index == version;
    if (index == help)
      printHelp();
    else if (index == version)
      std::printf("attn %s\n", attn_version());
    else if (Failure failure = kOptions[index].set(options, kOptions[index].name, optarg))
      return failure;
    if (isDone)
      return {};
  }
  if (optind == argc)
    return ATTN_FAIL("expected <library.so>, got none");
  options.library = argv[optind];
  if (optind + 1 < argc)
    return ATTN_FAIL("expected no argument after '%s', got '%s'", argv[optind], argv[optind + 1]);
  return {};
}

/// Prints the manifest, and the level at which each function runs on this CPU, in order.
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

static Failure runSteps(const CallOptions &options) {
  if (Failure failure = options.check())
    return failure;
  Call call(options);
  if (Failure failure = call.load())
    return failure;
  if (options.describe)
    return describe(call);
  for (auto step : {&Call::createFunction, &Call::findWeights, &Call::loadWeights,
                    &Call::makeInputs, &Call::run, &Call::writeOutputs, &Call::compareWithFiles})
    if (Failure failure = (call.*step)())
      return failure;
  if (options.benchmark)
    if (Failure failure = call.measure())
      return failure;
  if (options.json)
    std::puts(call.toJSON().c_str());
  return {};
}

int main(int argc, char **argv) {
  CallOptions options;
  bool isDone = false;
  Failure failure = parse(argc, argv, options, isDone);
  if (!failure && !isDone)
    failure = runSteps(options);
  if (failure)
    std::fprintf(stderr, "attn-call: %s\n", failure.message.c_str());
  return failure ? 1 : 0;
}
