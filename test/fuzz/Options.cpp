//===- Options.cpp - values of options that have a syntax of their own ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The first line of the input is a value of --target; each other line is a value of --dim.
//
//===----------------------------------------------------------------------===//

#include "codegen/Target.h"
#include "test/fuzz/Kernel.h"
#include "tools/call/Arguments.h"

#include "llvm/ADT/StringExtras.h"

using namespace attn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const rt::Function forward = fuzz::createFunction("forward");
  auto [targets, lines] = fuzz::toText(data, size).split('\n');
  if (auto levels = parseTargets(targets))
    fuzz::expect(!levels->empty(), "a level");
  else
    fuzz::textOf(levels.takeError());
  std::vector<std::string> dims;
  for (llvm::StringRef line : llvm::split(lines, '\n'))
    dims.push_back(line.str());
  std::vector<Array> inputs;
  if (Failure failure = makeRandomInputs(forward.get(), dims, inputs))
    fuzz::expect(failure.message.find('\n') == std::string::npos, "a message of one line");
  return 0;
}
