//===- attn-bench-attention.cpp - attention alone -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Session.h"

using namespace attn::bench;

llvm::Error attn::bench::run(Session &session) {
  for (const AttentionShape &shape : getAttentionShapes())
    session.add(getAttention(shape));
  return session.measure();
}
