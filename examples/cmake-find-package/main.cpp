//===- main.cpp - call a layer that is linked into the program --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   find-package X.npy OUT.npy [LEVEL]
//
// Calls the layer with X through the header that attnc wrote for it, and prints the largest
// difference between the output and OUT. LEVEL selects the code for an ISA level such as x86-64-v3.
//
//===----------------------------------------------------------------------===//

#include "mha.h"
#include "npy.h"

#include <attn.hpp>

#include <cstdio>

namespace rt = attn::rt;

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: find-package X.npy OUT.npy [LEVEL]\n");
    return 1;
  }
  try {
    Tensor x = readNpy(argv[1]), expected = readNpy(argv[2]);
    Tensor out = expected;
    if (x.shape != std::vector<int64_t>{2, 14, 64} || out.shape != x.shape)
      throw std::runtime_error("expected X and OUT of shape 2 x 14 x 64");

    rt::Library library = rt::openLibrary(attn_query_mha);
    rt::Function layer = rt::createFunction(library, "forward", argc > 3 ? argv[3] : nullptr);
    rt::Weights weights = rt::loadWeights(layer, WEIGHTS);
    rt::check(mha_forward(layer.get(), weights.get(), x.data.data(), out.data.data(), nullptr));
    std::printf("code for %s: largest error %.1e\n", attn_function_level(layer.get()),
                maxError(out, expected));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "find-package: %s\n", error.what());
    return 1;
  }
}
