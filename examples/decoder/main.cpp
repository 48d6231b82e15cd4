//===- main.cpp - decode token by token, with caches of keys and values -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   decoder X.npy OUT.npy [FIRST]
//
// Calls the step for each token of X, at positions from FIRST on, 0 unless given. A step reads the caches, adds its
// token's key and value to them and leaves them to the next. Prints the largest error of the outputs against OUT, which
// is attention over all tokens at once.
//
//===----------------------------------------------------------------------===//

#include "npy.h"
#include "step.h"

#include <attn.hpp>

#include <cstdio>

namespace rt = attn::rt;

/// What the model's caches hold: 1 x 4 heads x 64 tokens x 8.
static constexpr int64_t kWidth = 32, kCacheSize = 4 * 64 * 8;

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: decoder X.npy OUT.npy [FIRST]\n");
    return 1;
  }
  try {
    Tensor x = readNpy(argv[1]), expected = readNpy(argv[2]);
    Tensor out = expected;
    if (x.shape.size() != 3 || x.shape[0] != 1 || x.shape[2] != kWidth || out.shape != x.shape)
      throw std::runtime_error("expected X and OUT of shape 1 x tokens x 32");

    rt::Library library = rt::openLibrary(attn_query_step);
    rt::Function step = rt::createFunction(library, "forward");
    rt::Weights weights = rt::loadWeights(step, WEIGHTS);
    // One set of caches for each sequence. What is not written yet has no influence.
    std::vector<float> keys(kCacheSize), values(kCacheSize);
    int64_t position = argc > 3 ? std::atoll(argv[3]) : 0;
    for (int64_t token = 0; token < x.shape[1]; ++token, ++position)
      rt::check(step_forward(step.get(), weights.get(), &x.data[token * kWidth], &position,
                             keys.data(), values.data(), &out.data[token * kWidth], nullptr));
    std::printf("%lld tokens with code for %s: largest error %.1e\n", (long long)x.shape[1],
                attn_function_level(step.get()), maxError(out, expected));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "decoder: %s\n", error.what());
    return 1;
  }
}
