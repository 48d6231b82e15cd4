//===- CommandLine.h - what the tools' command lines share ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_COMMANDLINE_H
#define ATTN_TOOLS_COMMANDLINE_H

#include "driver/Compile.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

namespace attn {

/// The options of our tools; LLVM's own stay hidden.
llvm::cl::OptionCategory &attnCategory();

/// Parses, showing only our options in --help.
void parseCommandLine(int argc, char **argv, llvm::StringRef overview);

/// Prints the error as one line after the tool's name; returns the exit status 1.
int reportError(llvm::StringRef tool, llvm::Error error);

/// The options of compilation, wherever it happens.
class CompileFlags {
public:
  CompileFlags();
  llvm::Error apply(CompileOptions &options, llvm::StringRef defaultTargets) const;

private:
  llvm::cl::opt<std::string> target;
  llvm::cl::opt<Schedule> schedule;
};

} // namespace attn

#endif // ATTN_TOOLS_COMMANDLINE_H
