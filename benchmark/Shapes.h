//===- Shapes.h - the sizes that are measured -------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_SHAPES_H
#define ATTN_BENCHMARK_SHAPES_H

#include <cstdint>
#include <string>
#include <vector>

namespace attn::bench {

/// The product of an m x k and a k x n matrix.
struct ProductShape {
  int64_t m, n, k;

  std::string getName() const; ///< "512x768x768"
  double getFlop() const;
};

/// Attention of `queries` to `keys` by `heads` heads of size `depth` in each of `batch` items.
struct AttentionShape {
  int64_t batch, heads, queries, keys, depth;
  bool causal;

  std::string getName() const; ///< "causal_b1_h12_s512_d64", "cross_b8_h12_q64_k1500_d64"
  double getFlop() const;      ///< useful work: half of all products with a causal mask
  float getScale() const;
};

/// Attention alone: lengths from 1 to 4096 tokens and head sizes from 16 to 256. The batch size and the number of heads
/// are chosen so that a call takes about 1 to 100 ms on one core.
const std::vector<AttentionShape> &getAttentionShapes();

/// Attention layers. Their width is heads x depth.
const std::vector<AttentionShape> &getLayerShapes();

/// Projections of real layers.
const std::vector<ProductShape> &getProjectionShapes();

} // namespace attn::bench

#endif // ATTN_BENCHMARK_SHAPES_H
