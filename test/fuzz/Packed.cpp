//===- Packed.cpp - a file of packed weights with arbitrary bytes ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Kernel.h"

using namespace attn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const rt::Function forward = fuzz::createFunction("forward");
  std::string path = fuzz::writeFile(".packed", fuzz::toText(data, size));
  attn_weights *weights = nullptr;
  if (attn_weights_map(forward.get(), path.c_str(), &weights) == ATTN_OK)
    fuzz::callForward(forward.get(), rt::Weights(weights).get());
  return 0;
}
