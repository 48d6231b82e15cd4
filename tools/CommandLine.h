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
#include "driver/MaskTiles.h"

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

/// An option for what goes to standard output or a file.
using OutputOption = llvm::cl::opt<std::string>;

/// The value of an OutputOption. Linking in process resets LLVM's options, ours included, so it is read before.
class OutputFile {
public:
  OutputFile() = default;
  explicit OutputFile(const OutputOption &option)
      : wanted(option.getNumOccurrences()), path(option) {}

  explicit operator bool() const { return wanted; }
  bool isStandardOutput() const { return wanted && path.empty(); }
  llvm::StringRef getPath() const { return path; }
  llvm::Error write(llvm::function_ref<void(llvm::raw_ostream &)> print) const;

private:
  bool wanted = false;
  std::string path;
};

/// --opt-report, wherever compilation happens.
struct ReportOption : OutputOption {
  ReportOption();
};

/// Writes `json` if the name of the file ends in .json, `text` otherwise.
llvm::Error writeReport(const OutputFile &file, llvm::StringRef text, llvm::json::Object json);

/// --explain-mask and --dim, wherever compilation happens.
struct ExplainOption : OutputOption {
  ExplainOption();
};
struct DimOption : llvm::cl::list<std::string> {
  explicit DimOption(llvm::cl::OptionCategory &category);
};

/// An error where `file` has a suffix that no picture has.
llvm::Error checkPicture(const OutputFile &file);
/// Pictures of `masks`: an image, or text on standard output.
llvm::Error writePictures(const OutputFile &file, llvm::ArrayRef<MaskTiles> masks);

/// The options of compilation, wherever it happens.
class CompileFlags {
public:
  CompileFlags();
  llvm::Error apply(CompileOptions &options, llvm::StringRef defaultTargets) const;

private:
  llvm::cl::opt<std::string> target;
  NameOption schedule;
  llvm::cl::opt<bool> requireFused;
};

} // namespace attn

#endif // ATTN_TOOLS_COMMANDLINE_H
