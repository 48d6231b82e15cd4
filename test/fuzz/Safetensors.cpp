//===- Safetensors.cpp - a file of weights with arbitrary bytes -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Tests two readers: that of the runtime, and that of `attn-run --reference`.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Kernel.h"
#include "tools/SafetensorsFile.h"

#include "llvm/Support/Endian.h"

using namespace attn;

static void read(llvm::StringRef bytes) {
  static const rt::Function forward = fuzz::createFunction("forward");
  std::string path = fuzz::writeFile(".safetensors", bytes);
  if (auto tensors = readSafetensors(path))
    for (const auto &[name, array] : *tensors)
      fuzz::expect(array.data.size() == uint64_t(array.getNumElements() * (array.bits / 8)), "data whose size fits the shape");
  else
    fuzz::textOf(tensors.takeError());
  attn_weights *weights = nullptr;
  if (attn_weights_load(forward.get(), path.c_str(), &weights) == ATTN_OK)
    fuzz::callForward(forward.get(), rt::Weights(weights).get());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes = fuzz::toText(data, size);
  read(bytes);
  // Read the bytes once more, with the right header length before them: the header then ends at the first zero. The
  // lengths in most mutated files are wrong.
  char length[8];
  llvm::support::endian::write64le(length, bytes.take_until([](char c) { return c == '\0'; }).size());
  read((llvm::StringRef(length, sizeof length) + bytes).str());
  return 0;
}
