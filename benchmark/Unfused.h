//===- Unfused.h - attention with products of OpenBLAS ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// This is the unfused baseline with which the benchmarks compare compiled attention.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_UNFUSED_H
#define ATTN_BENCHMARK_UNFUSED_H

#include "benchmark/Shapes.h"

#include <string>

namespace attn::bench {

/// A matrix of f32 with rows that are `stride` elements apart.
template <typename T> struct Rows {
  T *data;
  int64_t stride;
};

/// Makes OpenBLAS use only the calling thread from now on. Returns the name of the kernels that OpenBLAS chose
/// for this CPU.
std::string useOneBlasThread();

/// out = a b, where a is m x k and b is k x n.
void multiply(const ProductShape &shape, const float *a, const float *b, float *out);

/// out = x w^T + bias, where x is m x k and w is n x k.
void project(const ProductShape &shape, const float *x, const float *w, const float *bias,
             float *out);

/// Computes one head of `shape`: all scores in memory, a softmax in several passes over them, and the
/// product of the result with v.
void attendHead(const AttentionShape &shape, Rows<const float> q, Rows<const float> k,
                Rows<const float> v, Rows<float> out);

} // namespace attn::bench

#endif // ATTN_BENCHMARK_UNFUSED_H
