//===- attn-import.cpp - print the module of an imported model -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/Frontend.h"
#include "tools/StandardOutput.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

namespace cl = llvm::cl;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  attn::checkStandardOutput("attn-import");
  cl::OptionCategory category("attn-import");
  cl::opt<std::string> input(cl::Positional, cl::desc("<model>"));
  cl::opt<bool> ops("ops", cl::cat(category),
                    cl::desc("Print docs/ops.md, the supported ops, and read no model"));
  mlir::registerAsmPrinterCLOptions();
  cl::HideUnrelatedOptions(category); // --help-hidden displays them
  cl::SetVersionPrinter([](llvm::raw_ostream &out) { out << "attn " ATTN_VERSION "\n"; });
  cl::ParseCommandLineOptions(
      argc, argv, "Prints the module that attn makes of a model, and the names of its weights\n");

  if (ops) {
    attn::printOps(llvm::outs());
    return 0;
  }
  if (input.empty()) {
    llvm::WithColor::error(llvm::errs()) << "expected a model\n";
    return 1;
  }
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::Expected<attn::Model> model = attn::importFile(input, context);
  if (!model) {
    llvm::WithColor::error(llvm::errs()) << llvm::toString(model.takeError()) << "\n";
    return 1;
  }
  model->module->print(llvm::outs());
  for (const attn::NamedTensor &weight : model->weights)
    llvm::outs() << "// " << weight.name << ": " << weight.bytes->getBufferSize() << " bytes\n";
  return 0;
}
