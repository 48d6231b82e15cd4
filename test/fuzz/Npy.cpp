//===- Npy.cpp - an .npy file of arbitrary bytes ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/Array.h"
#include "test/fuzz/Fuzz.h"

using namespace attn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Array array;
  if (readNpy(fuzz::writeFile(".npy", fuzz::toText(data, size)), array))
    return 0;
  fuzz::expect(array.data.size() == uint64_t(array.getNumElements() * (array.bits / 8)), "data whose size fits the shape");
  for (int64_t i = 0; i < array.getNumElements(); ++i)
    array.at(i);
  std::string copy = fuzz::pathOf(".copy.npy");
  fuzz::expect(!writeNpy(copy, array), "an array that can be written");
  Array again;
  fuzz::expect(!readNpy(copy, again) && again.shape == array.shape && again.data == array.data, "the array that was written");
  return 0;
}
