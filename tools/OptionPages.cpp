//===- OptionPages.cpp - manual page and shell completion -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Writes a manual page and a completion for bash from the option table of the command line parser. The completion of a
// value depends on the name of the value in the help text: `dir`, `file` and names that begin with `f.` stand for
// paths, and `level` and `levels` stand for ISA levels (codegen/Target.h).
//
//===----------------------------------------------------------------------===//

#include "tools/OptionPages.h"
#include "tools/CommandLine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace cl = llvm::cl;
using namespace attn;
using llvm::StringRef;

llvm::SmallVector<const cl::Option *> attn::getVisibleOptions() {
  auto all = llvm::make_second_range(cl::getRegisteredOptions());
  llvm::SmallVector<const cl::Option *> options;
  llvm::copy_if(all, std::back_inserter(options), [](const cl::Option *option) {
    // Rare options are Hidden, and so are LLVM's own help options.
    return option->getOptionHiddenFlag() == cl::NotHidden ||
           (option->getOptionHiddenFlag() == cl::Hidden &&
            !llvm::is_contained(option->Categories, &cl::getGeneralCategory()) &&
            !option->ArgStr.starts_with("help"));
  });
  llvm::sort(options, [](const cl::Option *a, const cl::Option *b) {
    return std::pair(a->Categories.front()->getName(), a->ArgStr) <
           std::pair(b->Categories.front()->getName(), b->ArgStr);
  });
  return options;
}

//===----------------------------------------------------------------------===//
// The manual page
//===----------------------------------------------------------------------===//

/// Escapes text for roff, so that minus signs can be copied and no line is a request.
static std::string roff(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  return result.find_first_of(".'") == 0 ? "\\&" + result : result;
}

static void writeEntry(StringRef name, StringRef text, llvm::raw_ostream &out) {
  out << ".TP\n" << name << "\n" << roff(text) << "\n";
}

/// The option with its value, as in "--target=levels", in roff fonts.
static std::string withValue(const cl::Option &option) {
  std::string name = "\\fB" + roff(spell(option)) + "\\fR";
  if (option.ValueStr.empty())
    return name;
  std::string value = "\\fI" + roff(option.ValueStr) + "\\fR";
  if (option.getValueExpectedFlag() == cl::ValueOptional)
    return name + "[=" + value + "]";
  return name + (option.ArgStr.size() == 1 ? " " : "=") + value;
}

void attn::writeManPage(StringRef tool, StringRef does, llvm::raw_ostream &out) {
  out << ".TH " << tool.upper() << " 1 \"\" \"attn " ATTN_VERSION "\" \"User Commands\"\n"
      << ".SH NAME\n"
      << tool << " \\- " << roff(does) << "\n.SH SYNOPSIS\n.B " << tool << "\n[\\fIoptions\\fR]";
  for (const cl::Option *positional : cl::SubCommand::getTopLevel().PositionalOpts)
    out << " " << roff(positional->HelpStr);
  out << "\n.SH OPTIONS\n";
  const cl::OptionCategory *category = nullptr;
  for (const cl::Option *option : getVisibleOptions()) {
    if (category != option->Categories.front()) {
      category = option->Categories.front();
      out << ".SS " << category->getName() << "\n";
    }
    writeEntry(withValue(*option), option->HelpStr, out);
    const NameParser *names = NameParser::get(*option);
    if (!names)
      continue;
    out << ".RS\n";
    for (unsigned i = 0; i < names->getNumOptions(); ++i)
      writeEntry("\\fB" + roff(names->getOption(i)) + "\\fR", names->getDescription(i), out);
    out << ".RE\n";
  }
  out << ".SH EXIT STATUS\n0, or 1 after a line on standard error that says what was "
         "expected. With \\fB--lint\\fR and without \\fB-o\\fR also 1 if there are findings.\n";
}

//===----------------------------------------------------------------------===//
// The completion for bash
//===----------------------------------------------------------------------===//

/// The bash statement that completes the value of `option`: with names, with files, or not at all.
static std::string completionOf(const cl::Option &option) {
  llvm::SmallVector<StringRef> words;
  if (const NameParser *names = NameParser::get(option))
    for (unsigned i = 0; i < names->getNumOptions(); ++i)
      words.push_back(names->getOption(i));
  else if (option.ValueStr.starts_with("level")) {
    for (const Target *target : getTargets())
      words.push_back(target->level);
    if (option.ValueStr == "levels")
      words.append({"native", "all"});
  }
  if (!words.empty())
    return "words='" + llvm::join(words, " ") + "'";
  if (option.ValueStr == "dir")
    return "files=-d";
  if (option.ValueStr == "file" || option.ValueStr.starts_with("f."))
    return "files=-f";
  return "return";
}

void attn::writeBashCompletion(StringRef tool, llvm::raw_ostream &out) {
  llvm::SmallVector<std::string> options;
  out << "# Completion of " << tool << " for bash, made by " << tool << " --generate=bash.\n_"
      << tool << R"(() {
  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} words= files=
  # Bash splits --option=value at the equals sign.
  if [[ $word == = ]]; then
    option+== word=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}=
  fi
  case $option in
)";
  for (const cl::Option *option : getVisibleOptions()) {
    std::string name = spell(*option);
    bool isRequired = option->getValueExpectedFlag() == cl::ValueRequired;
    options.push_back(name + (isRequired && option->ArgStr.size() > 1 ? "=" : ""));
    if (!option->ValueStr.empty())
      out << "    " << name << "=" << (isRequired ? " | " + name : "") << ") "
          << completionOf(*option) << " ;;\n";
  }
  out << "    *) if [[ $word == -* ]]; then words='" << llvm::join(options, " ")
      << R"('; else files=-f; fi ;;
  esac
  if [[ $files ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen $files -- "$word")
  else
    # In a list such as x86-64,x86-64-v3, complete the last name.
    local last=${word##*,}
    mapfile -t COMPREPLY < <(compgen -P "${word%"$last"}" -W "$words" -- "$last")
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  fi
}
complete -F _)"
      << tool << " " << tool << "\n";
}
