//===- swap.cpp - a layer is called by eight threads while its weights change ===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn-swap-test mha.so SECONDS
//
// The layer is examples/models/mha.pt2. Each answer must be that of one of two sets of weights, computed here in
// double; a mixture of both is far from either.
//
//===----------------------------------------------------------------------===//

#include "attn.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kBatch = 2, kRows = 14, kWidth = 64, kHeads = 8, kDepth = kWidth / kHeads;
constexpr int kCallers = 8;

void check(attn_status status) {
  if (status == ATTN_OK)
    return;
  std::fprintf(stderr, "attn-swap-test: %s\n", attn_last_error());
  std::exit(1);
}

std::vector<float> randomFloats(size_t size, std::mt19937 &generator) {
  std::normal_distribution<float> normal(0, 0.2f);
  std::vector<float> values(size);
  for (float &value : values)
    value = normal(generator);
  return values;
}

/// y = x w^T + b, rows of `width` values.
std::vector<double> project(const std::vector<double> &x, const std::vector<float> &w,
                            const std::vector<float> &b) {
  std::vector<double> y(x.size() / kWidth * b.size());
  for (size_t row = 0; row < x.size() / kWidth; ++row)
    for (size_t n = 0; n < b.size(); ++n) {
      double sum = b[n];
      for (int64_t k = 0; k < kWidth; ++k)
        sum += x[row * kWidth + k] * w[n * kWidth + k];
      y[row * b.size() + n] = sum;
    }
  return y;
}

struct WeightSet {
  std::vector<float> qkv, qkvBias, out, outBias;

  explicit WeightSet(unsigned seed) {
    std::mt19937 generator(seed);
    qkv = randomFloats(3 * kWidth * kWidth, generator);
    qkvBias = randomFloats(3 * kWidth, generator);
    out = randomFloats(kWidth * kWidth, generator);
    outBias = randomFloats(kWidth, generator);
  }

  attn_weights *pack(const attn_function *layer) {
    const char *names[] = {"qkv_proj.weight", "qkv_proj.bias", "out_proj.weight", "out_proj.bias"};
    int64_t shapes[][2] = {{3 * kWidth, kWidth}, {3 * kWidth, 0}, {kWidth, kWidth}, {kWidth, 0}};
    float *data[] = {qkv.data(), qkvBias.data(), out.data(), outBias.data()};
    std::array<DLTensor, 4> tensors;
    std::array<const DLTensor *, 4> pointers;
    for (int i = 0; i < 4; ++i) {
      tensors[i] = {data[i], {kDLCPU, 0}, i % 2 ? 1 : 2, {kDLFloat, 32, 1}, shapes[i], nullptr, 0};
      pointers[i] = &tensors[i];
    }
    attn_weights *weights;
    check(attn_weights_create(layer, names, pointers.data(), 4, &weights));
    return weights;
  }

  /// What examples/multi_head_attention.py says, in double.
  std::vector<double> answer(const std::vector<float> &input) const {
    std::vector<double> x(input.begin(), input.end()), merged(input.size());
    std::vector<double> projected = project(x, qkv, qkvBias);
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t h = 0; h < kHeads; ++h) {
        auto at = [&](int64_t row, int64_t part, int64_t d) {
          return projected[(b * kRows + row) * 3 * kWidth + part * kWidth + h * kDepth + d];
        };
        for (int64_t q = 0; q < kRows; ++q) {
          double weights[kRows], sum = 0;
          for (int64_t k = 0; k < kRows; ++k) {
            double score = 0;
            for (int64_t d = 0; d < kDepth; ++d)
              score += at(q, 0, d) * at(k, 1, d);
            sum += weights[k] = std::exp(score / std::sqrt(double(kDepth)));
          }
          for (int64_t d = 0; d < kDepth; ++d) {
            double value = 0;
            for (int64_t k = 0; k < kRows; ++k)
              value += weights[k] / sum * at(k, 2, d);
            merged[(b * kRows + q) * kWidth + h * kDepth + d] = value;
          }
        }
      }
    return project(merged, out, outBias);
  }
};

bool equals(const std::vector<float> &got, const std::vector<double> &expected) {
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::fabs(got[i] - expected[i]) < 1e-5))
      return false;
  return true;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: attn-swap-test mha.so SECONDS\n");
    return 1;
  }
  attn_library *library;
  attn_function *layer;
  check(attn_library_load(argv[1], &library));
  check(attn_function_create(library, "forward", nullptr, &layer));

  std::mt19937 generator(7);
  std::vector<float> x = randomFloats(kBatch * kRows * kWidth, generator);
  WeightSet sets[] = {WeightSet(1), WeightSet(2)};
  std::vector<double> answers[] = {sets[0].answer(x), sets[1].answer(x)};
  attn_weights *shared = sets[0].pack(layer);

  std::atomic<bool> stop{false};
  std::atomic<int64_t> seen[2] = {}, wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i)
    callers.emplace_back([&] {
      std::vector<float> in = x, out(x.size());
      int64_t shape[] = {kBatch, kRows, kWidth};
      DLTensor input = {in.data(), {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, shape, nullptr, 0};
      DLTensor output = input;
      output.data = out.data();
      const DLTensor *inputs[] = {&input}, *outputs[] = {&output};
      while (!stop) {
        check(attn_call(layer, shared, inputs, 1, outputs, 1, nullptr));
        if (equals(out, answers[0]))
          ++seen[0];
        else if (equals(out, answers[1]))
          ++seen[1];
        else
          ++wrong;
      }
    });

  int64_t swaps = 0;
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[2]));
  while (std::chrono::steady_clock::now() < end) {
    attn_weights *next = sets[++swaps % 2].pack(layer);
    check(attn_weights_swap(shared, next));
    attn_weights_release(next);
  }
  stop = true;
  for (std::thread &caller : callers)
    caller.join();
  std::printf(
      "%lld swaps; answers of the first weights %lld, of the second %lld, of neither %lld\n",
      (long long)swaps, (long long)seen[0], (long long)seen[1], (long long)wrong);
  attn_weights_release(shared);
  attn_function_release(layer);
  attn_library_release(library);
  return wrong || !seen[0] || !seen[1];
}
