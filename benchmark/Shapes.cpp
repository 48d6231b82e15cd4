//===- Shapes.cpp - the sizes that are measured ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Shapes.h"

#include <cmath>

using namespace attn::bench;

std::string ProductShape::getName() const {
  return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
}

double ProductShape::getFlop() const { return 2.0 * m * n * k; }

std::string AttentionShape::getName() const {
  bool cross = queries != keys;
  std::string name = cross ? "cross" : causal ? "causal" : "plain";
  name += "_b" + std::to_string(batch) + "_h" + std::to_string(heads);
  name += cross ? "_q" + std::to_string(queries) + "_k" + std::to_string(keys)
                : "_s" + std::to_string(queries);
  return name + "_d" + std::to_string(depth);
}

double AttentionShape::getFlop() const {
  return 4.0 * batch * heads * queries * keys * depth * (causal ? 0.5 : 1);
}

float AttentionShape::getScale() const { return 1 / std::sqrt(float(depth)); }

const std::vector<AttentionShape> &attn::bench::getAttentionShapes() {
  static const std::vector<AttentionShape> shapes = {
      // batch, heads, queries, keys, depth, causal
      // Lengths of decoding steps, chats, ViT, BERT, Whisper, GPT and long contexts.
      {512, 32, 1, 1, 64, false},
      {256, 12, 7, 7, 64, false},
      {128, 12, 14, 14, 64, false},
      {128, 12, 16, 16, 64, false},
      {16, 12, 64, 64, 64, false},
      {8, 12, 128, 128, 64, false},
      {8, 12, 197, 197, 64, false},
      {4, 12, 256, 256, 64, false},
      {1, 12, 509, 509, 64, false},
      {1, 12, 512, 512, 64, false},
      {1, 12, 1024, 1024, 64, false},
      {1, 8, 1500, 1500, 64, false},
      {1, 8, 2048, 2048, 64, false},
      {1, 2, 4096, 4096, 64, false},
      // The same lengths, except 1, with a causal mask.
      {256, 12, 7, 7, 64, true},
      {128, 12, 14, 14, 64, true},
      {128, 12, 16, 16, 64, true},
      {16, 12, 64, 64, 64, true},
      {8, 12, 128, 128, 64, true},
      {8, 12, 197, 197, 64, true},
      {4, 12, 256, 256, 64, true},
      {1, 12, 509, 509, 64, true},
      {1, 12, 512, 512, 64, true},
      {1, 12, 1024, 1024, 64, true},
      {1, 8, 1500, 1500, 64, true},
      {1, 12, 2048, 2048, 64, true},
      {1, 4, 4096, 4096, 64, true},
      // Head sizes other than 64.
      {8, 12, 128, 128, 16, false},
      {8, 12, 128, 128, 32, false},
      {8, 12, 128, 128, 128, false},
      {8, 4, 197, 197, 96, false},
      {1, 16, 1024, 1024, 16, false},
      {1, 16, 1024, 1024, 32, false},
      {1, 16, 1024, 1024, 72, false},
      {1, 16, 1024, 1024, 80, false},
      {1, 8, 1024, 1024, 96, false},
      {1, 8, 1024, 1024, 128, false},
      {1, 8, 1024, 1024, 256, false},
      {16, 12, 64, 64, 16, true},
      {1, 16, 512, 512, 32, true},
      {1, 16, 512, 512, 80, true},
      {1, 16, 512, 512, 128, true},
      {1, 8, 512, 512, 256, true},
      {1, 8, 2048, 2048, 128, true},
      // Cross attention, and decoding with a single query.
      {1, 8, 64, 1500, 64, false},
      {1, 8, 1024, 77, 64, false},
      {8, 12, 16, 512, 64, false},
      {1, 32, 1, 4096, 128, false},
      {8, 12, 1, 1024, 64, false},
  };
  return shapes;
}

const std::vector<AttentionShape> &attn::bench::getLayerShapes() {
  static const std::vector<AttentionShape> shapes = {
      // batch, heads, queries, keys, depth, causal
      {8, 12, 128, 128, 32, false},   // a small encoder
      {1, 12, 512, 512, 64, false},   // BERT
      {8, 12, 197, 197, 64, false},   // ViT
      {1, 12, 1024, 1024, 64, true},  // GPT-2
      {1, 16, 2048, 2048, 64, false}, // long and wide
      {2, 4, 14, 14, 16, false},      // tiny
  };
  return shapes;
}

const std::vector<ProductShape> &attn::bench::getProjectionShapes() {
  static const std::vector<ProductShape> shapes = {
      {512, 768, 768}, {512, 2304, 768}, {1576, 3072, 768},  {1576, 768, 3072},
      {128, 384, 384}, {14, 64, 64},     {2048, 1024, 1024},
  };
  return shapes;
}
