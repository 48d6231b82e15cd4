//===- attn-opt.cpp - mlir-opt with attn registered ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/Registry.h"

#include "codegen/Pipeline.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

/// Prints one screen with the options that are needed most. MlirOptMain's own text, which --help-all displays, has
/// several hundred lines.
static void printHelp() {
  llvm::outs() << R"(attn-opt runs passes on a file in MLIR, as mlir-opt does, and prints the result

usage: attn-opt [options] [--<pass>...] [<file.mlir>]

Passes and pipelines:

  --<pass>                    Run a pass, such as --attn-fold-scale or --canonicalize; several run in the order given
  --pass-pipeline=<text>      Run a pipeline, such as 'builtin.module(func.func(attn-fold-scale),cse)'
)";
  for (const attn::Stage &stage : attn::getStages())
    llvm::outs() << "  --attn-to-"
                 << llvm::format("%-17s Run the stages up to this one; result: ", stage.name.data())
                 << stage.leaves << "\n";
  llvm::outs() << R"(
Looking and testing:

  -o <file>                   Write the result to a file
  --mlir-print-ir-after-all   Print the IR after each pass; --mlir-print-ir-after=<pass> prints it after one
  --mlir-print-debuginfo      Print locations
  --split-input-file          Run on each part of the file, between lines of // -----
  --verify-diagnostics        Compare errors, warnings and remarks with the comments // expected-... in the file
  --load-pass-plugin=<file>   Load passes from a shared library

--help-all also displays the other options, and every pass with a line on what it does.
)";
}

int main(int argc, char **argv) {
  for (char *&argument : llvm::MutableArrayRef(argv, argc)) {
    llvm::StringRef text(argument);
    if (text == "--help" || text == "-help" || text == "-h") {
      printHelp();
      return 0;
    }
    static char help[] = "--help";
    if (text == "--help-all")
      argument = help;
  }
  attn::registerVersion();
  mlir::DialectRegistry registry;
  attn::registerEveryDialect(registry);
  attn::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "attn optimizer\n", registry));
}
