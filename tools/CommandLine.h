//===- CommandLine.h - what the tools' command lines share ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The options themselves are LLVM's cl::opt. From their table come --help, the man page and the
// completion of shells, and what a misspelt one probably meant.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_COMMANDLINE_H
#define ATTN_TOOLS_COMMANDLINE_H

#include "driver/Compile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

namespace attn {

/// The options of compilation, in every tool that compiles.
llvm::cl::OptionCategory &attnCategory();

/// Parses, showing only the options of these categories in --help, which sorts by their names.
/// Exits after one line where the command line is wrong. `overview` is a sentence that starts with
/// the tool's name.
void parseCommandLine(int argc, char **argv, llvm::StringRef overview,
                      llvm::ArrayRef<const llvm::cl::OptionCategory *> categories = {
                          &attnCategory()});

/// Prints the error as one line after the tool's name; returns the exit status 1.
int reportError(llvm::StringRef tool, llvm::Error error);

/// "--target" or "-o".
std::string spell(const llvm::cl::Option &option);

/// The parser of options whose values are names: --help, pages and errors list them. The values are
/// the names, unlike with LLVM's parser for enums, which nobody but the option itself can ask.
class NameParser : public llvm::cl::generic_parser_base {
public:
  using parser_data_type = std::string;

  explicit NameParser(llvm::cl::Option &option);
  /// That of `option`, or null.
  static const NameParser *get(const llvm::cl::Option &option);

  /// For cl::values, whose numbers are of no use here.
  void addLiteralOption(llvm::StringRef name, int, llvm::StringRef description) {
    names.push_back({name, description, name.str()});
  }
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef name, std::string &value);

  unsigned getNumOptions() const override { return names.size(); }
  llvm::StringRef getOption(unsigned i) const override { return names[i].name; }
  llvm::StringRef getDescription(unsigned i) const override { return names[i].description; }
  const llvm::cl::GenericOptionValue &getOptionValue(unsigned i) const override {
    return names[i].value;
  }

private:
  struct Name {
    llvm::StringRef name, description;
    llvm::cl::OptionValue<std::string> value;
  };
  std::vector<Name> names;
};

using NameOption = llvm::cl::opt<std::string, false, NameParser>;

/// The parser of an option that counts something.
struct CountParser : llvm::cl::parser<unsigned> {
  static constexpr unsigned kMax = 1024;

  using parser::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, unsigned &value) {
    if (!text.getAsInteger(10, value) && value >= 1 && value <= kMax)
      return false;
    return option.error("expected a number in [1, " + llvm::Twine(kMax) + "], got '" + text + "'");
  }
};

/// The values of --from, for its definition.
struct StageNames {
  template <typename Option> void apply(Option &option) const {
    auto add = [&](llvm::StringRef name, llvm::StringRef leaves) {
      option.getParser().addLiteralOption(name, 0, leaves);
    };
    add("import", "the graph as the model has it");
    for (const Stage &stage : getStages())
      add(stage.name, stage.leaves);
    add("emit", "LLVM IR");
  }
};

/// The options of compilation, wherever it happens.
class CompileFlags {
public:
  CompileFlags();
  llvm::Error apply(CompileOptions &options, llvm::StringRef defaultTargets) const;

private:
  llvm::cl::opt<std::string> target;
  NameOption schedule;
};

} // namespace attn

#endif // ATTN_TOOLS_COMMANDLINE_H
