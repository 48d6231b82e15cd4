//===- Manifest.cpp - the manifest of a library, with arbitrary text --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// `attn-run --describe` reads the manifest from a library, and `attnc --from=emit` reads it from LLVM IR.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Interface.h"
#include "test/fuzz/Fuzz.h"
#include "tools/Describe.h"

using namespace attn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::Expected<LibraryInfo> library = readManifest(fuzz::toText(data, size));
  if (!library) {
    fuzz::textOf(library.takeError());
    return 0;
  }
  for (const FunctionInfo &function : library->functions)
    describeFunction(function, "x86-64", llvm::nulls());
  writeHeader(*library);
  std::string written = writeManifest(*library);
  llvm::Expected<LibraryInfo> again = readManifest(written);
  fuzz::expect(bool(again), "a written manifest that can be read");
  fuzz::expect(writeManifest(*again) == written, "the manifest that was written");
  return 0;
}
