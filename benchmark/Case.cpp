//===- Case.cpp - one benchmark case --------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Case.h"
#include "benchmark/Modules.h"
#include "benchmark/Unfused.h"

using namespace llvm;
using namespace attn::bench;

/// Computes the heads one after the other. Each head is a dense matrix.
static void attend(const AttentionShape &shape, ArrayRef<const float *> arguments, float *out) {
  int64_t depth = shape.depth;
  const float *q = arguments[0], *k = arguments[1], *v = arguments[2];
  for (int64_t head = 0; head < shape.batch * shape.heads; ++head) {
    attendHead(shape, {q, depth}, {k, depth}, {v, depth}, {out, depth});
    q += shape.queries * depth;
    k += shape.keys * depth;
    v += shape.keys * depth;
    out += shape.queries * depth;
  }
}

/// The projections of a layer over all tokens.
static ProductShape getInProjection(const AttentionShape &shape) {
  int64_t width = shape.heads * shape.depth;
  return {shape.batch * shape.queries, 3 * width, width};
}
static ProductShape getOutProjection(const AttentionShape &shape) {
  int64_t width = shape.heads * shape.depth;
  return {shape.batch * shape.queries, width, width};
}

static void runLayer(const AttentionShape &shape, ArrayRef<const float *> arguments, float *out) {
  ProductShape in = getInProjection(shape);
  int64_t width = in.k;
  // The layout that the projection produces: the rows of a head are 3 x width elements apart.
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

Case attn::bench::getAttention(const AttentionShape &shape, StringRef plan) {
  return {shape.getName(), shape.getFlop(), writeAttention(shape, plan),
          [shape](ArrayRef<const float *> arguments, float *result) {
            attend(shape, arguments, result);
          }};
}

Case attn::bench::getLayer(const AttentionShape &shape, StringRef plan) {
  double projections = getInProjection(shape).getFlop() + getOutProjection(shape).getFlop();
  return {shape.getName(), shape.getFlop() + projections, writeLayer(shape, plan),
          [shape](ArrayRef<const float *> arguments, float *result) {
            runLayer(shape, arguments, result);
          }};
}
