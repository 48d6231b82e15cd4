//===- Pt2.cpp - a .pt2 file of arbitrary bytes -----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

using namespace attn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::importModel(fuzz::writeFile(".pt2", fuzz::toText(data, size)));
  return 0;
}
