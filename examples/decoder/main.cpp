//===- main.cpp - generate token by token, with caches of keys and values ---===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   decoder [COUNT]
//
// Generates COUNT tokens (default: 32; at most 40, because the caches hold 40) with the decoding step of a small Llama:
// a call takes a token, adds its key and value to the caches, and computes the scores of the next token. Then the
// program computes the scores of all tokens in one call of the same model without caches, and prints the largest
// difference from the scores of the steps.
//
//===----------------------------------------------------------------------===//

#include "step.h"
#include "tensor.h"
#include "whole.h"

#include <attn.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace rt = attn::rt;

/// Sizes of the models in examples/models/export.py: the vocabulary, and caches of 2 heads x 40 tokens x 8 elements.
static constexpr int64_t kVocabulary = 32, kCacheSize = 2 * 40 * 8;

static int64_t findBest(const float *scores) {
  return std::max_element(scores, scores + kVocabulary) - scores;
}

/// Computes the scores of the next token after each token, with one call for all tokens.
static Tensor computeWhole(const std::vector<int64_t> &tokens, int64_t count) {
  rt::Library library = rt::openLibrary(attn_query_whole);
  rt::Function forward = rt::createFunction(library, "forward");
  rt::Weights weights = rt::loadWeights(forward, WHOLE_WEIGHTS);
  Tensor scores{{count, kVocabulary}, std::vector<float>(count * kVocabulary)};
  rt::check(whole_forward(forward.get(), weights.get(), count, tokens.data(), scores.data.data(),
                          nullptr));
  return scores;
}

int main(int argc, char **argv) {
  int64_t count = argc > 1 ? std::atoll(argv[1]) : 32;
  if (count < 1) {
    std::fprintf(stderr, "usage: decoder [COUNT], a number of tokens from 1 on\n");
    return 1;
  }
  try {
    rt::Library library = rt::openLibrary(attn_query_step);
    rt::Function step = rt::createFunction(library, "forward");
    rt::Weights weights = rt::loadWeights(step, STEP_WEIGHTS);
    Tensor scores{{count, kVocabulary}, std::vector<float>(count * kVocabulary)};

    // A sequence has one set of caches. The mask hides the positions that are not written yet.
    std::vector<float> keys(kCacheSize), values(kCacheSize);
    std::vector<int64_t> tokens = {1};
    for (int64_t position = 0; position < count; ++position) {
      float *next = &scores.data[position * kVocabulary];
      rt::check(step_forward(step.get(), weights.get(), &tokens.back(), &position, keys.data(),
                             values.data(), next, nullptr));
      tokens.push_back(findBest(next));
    }

    for (int64_t token : tokens)
      std::printf("%lld ", (long long)token);
    std::printf("\ncode for %s: largest difference from the whole sequence %.1e\n",
                attn_function_level(step.get()), maxError(scores, computeWhole(tokens, count)));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "decoder: %s\n", error.what());
    return 1;
  }
}
