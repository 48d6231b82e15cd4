//===- Unfused.h - attention as three calls of OpenBLAS ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// What one would write with a good BLAS and a little care: the line that a fused kernel has to beat.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_UNFUSED_H
#define ATTN_BENCHMARK_UNFUSED_H

#include "benchmark/Shapes.h"

#include <string>

namespace attn::bench {

/// A matrix of f32 whose rows lie `stride` elements apart.
template <typename T> struct Rows {
  T *data;
  int64_t stride;
};

/// The kernels that OpenBLAS chose for this CPU. From here on it uses the calling thread alone.
std::string useOneBlasThread();

/// out = a b, m x k by k x n.
void multiply(const ProductShape &shape, const float *a, const float *b, float *out);

/// out = x w^T + bias, m x k by n x k.
void project(const ProductShape &shape, const float *x, const float *w, const float *bias,
             float *out);

/// One head of `shape`: scores in memory, softmax over them in passes, their product with v.
void attendHead(const AttentionShape &shape, Rows<const float> q, Rows<const float> k,
                Rows<const float> v, Rows<float> out);

} // namespace attn::bench

#endif // ATTN_BENCHMARK_UNFUSED_H
