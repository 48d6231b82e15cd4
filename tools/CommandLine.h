//===- CommandLine.h - the common part of the command lines -----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The options are cl::opt of LLVM. Their table is the source of --help, of the manual page, of the shell
// completion, and of the suggestion for a misspelt option.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_COMMANDLINE_H
#define ATTN_TOOLS_COMMANDLINE_H

#include "codegen/emit/OutputFiles.h"
#include "driver/Compile.h"
#include "driver/MaskTiles.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

namespace attn {

/// The category of the compilation options, which every tool that compiles has.
llvm::cl::OptionCategory &attnCategory();

/// Parses the command line. --help displays the options of `categories`, except those named in `rare`, which only
/// --help-all displays. If the command line is wrong, prints one line and exits. `overview` is a sentence that starts
/// with the name of the tool. If standard output cannot be written, the tool ends with an error.
void parseCommandLine(int argc, char **argv, llvm::StringRef overview,
                      llvm::ArrayRef<const llvm::cl::OptionCategory *> categories = {&attnCategory()},
                      llvm::ArrayRef<llvm::StringRef> rare = {});

/// Prints the error as one line after the name of the tool; returns the exit status 1.
int reportError(llvm::StringRef tool, llvm::Error error);

/// The option as users write it: "--target" or "-o".
std::string spell(const llvm::cl::Option &option);

/// The parser of options whose values are names. --help, the pages and error messages list the names.
/// Unlike with LLVM's parser for enums, code that has only a cl::Option can get the names.
class NameParser : public llvm::cl::generic_parser_base {
public:
  using parser_data_type = std::string;

  explicit NameParser(llvm::cl::Option &option);
  /// The parser of `option`, or null if the parser of `option` is not a NameParser.
  static const NameParser *get(const llvm::cl::Option &option);

  /// Called by cl::values; the number is not used.
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

/// The parser of an option that is a count.
struct CountParser : llvm::cl::parser<unsigned> {
  static constexpr unsigned kMax = 1024;

  using parser::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, unsigned &value) {
    if (!text.getAsInteger(10, value) && value >= 1 && value <= kMax)
      return false;
    return option.error("expected a number in [1, " + llvm::Twine(kMax) + "], got '" + text + "'");
  }
};

/// A modifier that adds the values of --from to an option.
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

/// An option whose output goes to standard output or a file.
using OutputOption = llvm::cl::opt<std::string>;

/// The value of an OutputOption. It is a copy, because the linker, which runs in the same process, resets all options
/// of LLVM and attn.
class OutputFile {
public:
  OutputFile() = default;
  explicit OutputFile(const OutputOption &option)
      : wanted(option.getNumOccurrences()), name("--" + option.ArgStr.str()), path(option) {}

  explicit operator bool() const { return wanted; }
  bool isStandardOutput() const { return wanted && path.empty(); }
  llvm::StringRef getPath() const { return path; }
  /// The option as users write it.
  llvm::StringRef getName() const { return name; }
  /// Writes to standard output, or adds the file to `files`.
  llvm::Error write(llvm::function_ref<void(llvm::raw_ostream &)> print, OutputFiles &files) const;

private:
  bool wanted = false;
  std::string name, path;
};

/// Reports an error if two of these files are the same one: the model, the output of a compilation, the files that are
/// written beside it, and `others`.
llvm::Error checkDistinct(const CompileOptions &options, llvm::ArrayRef<const OutputFile *> others);

/// The option --opt-report of every tool that compiles.
struct ReportOption : OutputOption {
  ReportOption();
};

/// Writes `json` if the name of the file ends in .json, `text` otherwise.
llvm::Error writeReport(const OutputFile &file, llvm::StringRef text, llvm::json::Object json,
                        OutputFiles &files);

/// The option --explain-mask of every tool that compiles.
struct ExplainOption : OutputOption {
  ExplainOption();
};

/// Fails if the name of `file` does not have the suffix of a picture.
llvm::Error checkPicture(const OutputFile &file);
/// Writes pictures of `masks`: an image to a file, or text to standard output.
llvm::Error writePictures(const OutputFile &file, llvm::ArrayRef<MaskTiles> masks,
                          OutputFiles &files);

/// The compilation options, which every tool that compiles has.
class CompileFlags {
public:
  CompileFlags();
  llvm::Error apply(CompileOptions &options, llvm::StringRef defaultTargets) const;

private:
  llvm::cl::opt<std::string> target;
  NameOption schedule, compute;
  llvm::cl::opt<unsigned> workers;
  llvm::cl::opt<bool> requireFused;
};

} // namespace attn

#endif // ATTN_TOOLS_COMMANDLINE_H
