//===- Unfused.cpp - attention with products of OpenBLAS -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// This file is compiled for the host CPU and with reassociation, so that the compiler vectorises the loops of
// softmax.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Unfused.h"

#include <algorithm>
#include <cblas.h>
#include <cmath>
#include <vector>

using namespace attn::bench;

std::string attn::bench::useOneBlasThread() {
  openblas_set_num_threads(1);
  return openblas_get_corename();
}

void attn::bench::multiply(const ProductShape &shape, const float *a, const float *b, float *out) {
  auto [m, n, k] = shape;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, out, n);
}

void attn::bench::project(const ProductShape &shape, const float *x, const float *w,
                          const float *bias, float *out) {
  auto [m, n, k] = shape;
  for (int64_t row = 0; row < m; ++row)
    std::copy_n(bias, n, out + row * n);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, x, k, w, k, 1, out, n);
}

/// e^x for x <= 0, with an error of a few ulp near 0 and of up to 64 ulp at -87; for smaller x, the result is 2^-126.
/// Computes 2^f by the series of e^(f ln 2) for |f| <= 1/2, and the exponent by bit arithmetic. A call of libm for
/// every element would prevent vectorisation.
static float fastExp(float x) {
  float y = std::max(x * 1.44269504f, -126.0f);
  float whole = std::nearbyint(y), f = y - whole;
  float power = 1.54035304e-4f;
  for (float coefficient :
       {1.33335581e-3f, 9.61812911e-3f, 5.55041087e-2f, 2.40226507e-1f, 6.93147181e-1f, 1.0f})
    power = power * f + coefficient;
  return power * __builtin_bit_cast(float, (int32_t(whole) + 127) << 23);
}

static void softmax(float *row, int64_t count) {
  float max = row[0], sum = 0;
  for (int64_t j = 0; j < count; ++j)
    max = std::max(max, row[j]);
  for (int64_t j = 0; j < count; ++j)
    sum += row[j] = fastExp(row[j] - max);
  for (int64_t j = 0; j < count; ++j)
    row[j] /= sum;
}

void attn::bench::attendHead(const AttentionShape &shape, Rows<const float> q, Rows<const float> k,
                             Rows<const float> v, Rows<float> out) {
  int64_t queries = shape.queries, keys = shape.keys, depth = shape.depth;
  static std::vector<float> scores; // reused, because new memory for each call would slow down long sequences
  scores.resize(std::max<size_t>(scores.size(), queries * keys));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, queries, keys, depth, shape.getScale(),
              q.data, q.stride, k.data, k.stride, 0, scores.data(), keys);
  for (int64_t i = 0; i < queries; ++i) {
    float *row = scores.data() + i * keys;
    int64_t kept = shape.causal ? std::min(i + 1, keys) : keys;
    softmax(row, kept);
    std::fill(row + kept, row + keys, 0.0f);
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, queries, depth, keys, 1, scores.data(),
              keys, v.data, v.stride, 0, out.data, out.stride);
}
