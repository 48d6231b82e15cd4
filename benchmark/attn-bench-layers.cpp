//===- attn-bench-layers.cpp - whole attention layers ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The projection to queries, keys and values, attention, the output projection.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Case.h"
#include "benchmark/Modules.h"
#include "benchmark/Unfused.h"

using namespace attn;
using namespace attn::bench;

/// The projections of a layer over all tokens.
static ProductShape getInProjection(const AttentionShape &shape) {
  int64_t width = shape.heads * shape.depth;
  return {shape.batch * shape.queries, 3 * width, width};
}
static ProductShape getOutProjection(const AttentionShape &shape) {
  int64_t width = shape.heads * shape.depth;
  return {shape.batch * shape.queries, width, width};
}

static void runLayer(const AttentionShape &shape, llvm::ArrayRef<const float *> arguments,
                     float *out) {
  ProductShape in = getInProjection(shape);
  int64_t width = in.k;
  // As the projection leaves them: the rows of a head lie 3 x width apart.
  static std::vector<float> qkv, attended;
  qkv.resize(in.m * in.n);
  attended.resize(in.m * width);
  project(in, arguments[0], arguments[1], arguments[2], qkv.data());
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h) {
      const float *q = qkv.data() + b * shape.queries * in.n + h * shape.depth;
      attendHead(shape, {q, in.n}, {q + width, in.n}, {q + 2 * width, in.n},
                 {attended.data() + b * shape.queries * width + h * shape.depth, width});
    }
  project(getOutProjection(shape), attended.data(), arguments[3], arguments[4], out);
}

std::vector<Case> attn::bench::getCases(const Target &) {
  std::vector<Case> cases;
  for (const AttentionShape &shape : getLayerShapes()) {
    double flop =
        getInProjection(shape).getFlop() + shape.getFlop() + getOutProjection(shape).getFlop();
    cases.push_back({shape.getName(), flop, writeLayer(shape),
                     [&shape](llvm::ArrayRef<const float *> arguments, float *result) {
                       runLayer(shape, arguments, result);
                     }});
  }
  return cases;
}
