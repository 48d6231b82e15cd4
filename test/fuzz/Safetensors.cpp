//===- Safetensors.cpp - a file of weights of any bytes ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Both readers: the runtime's, and that of `attn-run --reference`.
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
      fuzz::expect(array.data.size() == uint64_t(array.getNumElements() * (array.bits / 8)), "data of its shape");
  else
    fuzz::textOf(tensors.takeError());
  attn_weights *weights = nullptr;
  if (attn_weights_load(forward.get(), path.c_str(), &weights) == ATTN_OK)
    fuzz::callForward(forward.get(), rt::Weights(weights).get());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes = fuzz::toText(data, size);
  read(bytes);
  // Behind a length that fits them, up to the first zero: otherwise few headers of another length are read.
  char length[8];
  llvm::support::endian::write64le(length, bytes.take_until([](char c) { return c == '\0'; }).size());
  read((llvm::StringRef(length, sizeof length) + bytes).str());
  return 0;
}
