//===- attn-bench-attention.cpp - attention alone -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// softmax(Q K^T / sqrt(d)) V for the shapes of Shapes.cpp, plain, causal and cross.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Case.h"
#include "benchmark/Modules.h"
#include "benchmark/Unfused.h"

using namespace attn;
using namespace attn::bench;

/// Heads one after the other, each dense.
static void attend(const AttentionShape &shape, llvm::ArrayRef<const float *> arguments,
                   float *out) {
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

std::vector<Case> attn::bench::getCases(const Target &) {
  std::vector<Case> cases;
  for (const AttentionShape &shape : getAttentionShapes())
    cases.push_back({shape.getName(), shape.getFlop(), writeAttention(shape),
                     [&shape](llvm::ArrayRef<const float *> arguments, float *result) {
                       attend(shape, arguments, result);
                     }});
  return cases;
}
