#include "driver/Compile.h"

#include "llvm/Support/raw_ostream.h"

int main(int, char **argv) {
  attn::CompileOptions options;
  options.input = argv[1];
  options.output = argv[2];
  options.targets = llvm::cantFail(attn::parseTargets("all"));
  attn::CompileReport report = llvm::cantFail(attn::compile(options));
  llvm::outs() << report.numFused << " fused in " << report.json.getArray("levels")->size()
               << " levels\n";
}
