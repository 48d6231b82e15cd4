//===- Mha.h - calls of examples/models/mha.pt2, and their results -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// This header is for programs that call the layer from several threads while its objects change. It contains sets of
// weights, the result for each set in double, and a call that pauses in the middle.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_RUNTIME_MHA_H
#define ATTN_TEST_RUNTIME_MHA_H

#include "attn.h"

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

constexpr int64_t kBatch = 2, kRows = 14, kWidth = 64, kHeads = 8, kDepth = kWidth / kHeads;

inline void check(attn_status status) {
  if (status == ATTN_OK)
    return;
  std::fprintf(stderr, "%s\n", attn_last_error());
  std::exit(1);
}

inline std::vector<float> randomFloats(size_t size, std::mt19937 &generator) {
  std::normal_distribution<float> normal(0, 0.2f);
  std::vector<float> values(size);
  for (float &value : values)
    value = normal(generator);
  return values;
}

/// The input that every caller passes.
inline std::vector<float> randomInput() {
  std::mt19937 generator(7);
  return randomFloats(kBatch * kRows * kWidth, generator);
}

/// Returns x w^T + b. The rows of x have kWidth values.
inline std::vector<double> project(const std::vector<double> &x, const std::vector<float> &w,
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

  /// Returns the result of examples/multi_head_attention.py, computed in double.
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

/// The tensors of one caller.
class Caller {
public:
  /// Copies `input`: callers share only the objects that the program passes to their calls.
  explicit Caller(const std::vector<float> &input) : in(input), out(input.size()) {}

  void call(attn_function *layer, const attn_weights *weights,
            const attn_call_options *options = nullptr) {
    int64_t shape[] = {kBatch, kRows, kWidth};
    DLTensor input = {in.data(), {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, shape, nullptr, 0};
    DLTensor output = input;
    output.data = out.data();
    const DLTensor *inputs[] = {&input}, *outputs[] = {&output};
    check(attn_call(layer, weights, inputs, 1, outputs, 1, options));
  }

  /// Returns whether the last call gave this result.
  bool got(const std::vector<double> &answer) const {
    for (size_t i = 0; i < out.size(); ++i)
      if (!(std::fabs(out[i] - answer[i]) < 1e-5))
        return false;
    return true;
  }

private:
  std::vector<float> in, out;
};

inline attn_call_options inPool(attn_pool *pool) {
  attn_call_options options = {};
  options.size = sizeof options;
  options.parallel_for = attn_pool_parallel_for;
  options.pool = pool;
  return options;
}

/// Stops a call in its first loop, which runs in a pool, until `resume` is called.
class Pause {
public:
  explicit Pause(attn_pool *pool) : pool(pool) {}

  attn_call_options options() {
    attn_call_options options = {};
    options.size = sizeof options;
    options.parallel_for = parallelFor;
    options.pool = this;
    options.workers = attn_pool_workers(pool);
    return options;
  }

  void awaitStop() { await(stopped); }
  void resume() { resumed = true; }

private:
  static void await(const std::atomic<bool> &flag) {
    while (!flag)
      std::this_thread::yield();
  }

  static void parallelFor(void *self, attn_task_fn task, void *context, int64_t count) {
    auto *pause = static_cast<Pause *>(self);
    pause->task = task;
    pause->context = context;
    attn_pool_parallel_for(pause->pool, runTask, pause, count);
  }

  static void runTask(void *self, int64_t index, int64_t worker) {
    auto *pause = static_cast<Pause *>(self);
    pause->stopped = true;
    await(pause->resumed);
    pause->task(pause->context, index, worker);
  }

  attn_pool *pool;
  attn_task_fn task = nullptr;
  void *context = nullptr;
  std::atomic<bool> stopped{false}, resumed{false};
};

#endif // ATTN_TEST_RUNTIME_MHA_H
