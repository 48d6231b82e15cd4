//===- attn-bench-attention.cpp - attention alone -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Session.h"

using namespace attn::bench;

static llvm::Error run(Session &session) {
  for (const AttentionShape &shape : getAttentionShapes())
    session.add(getAttention(shape));
  return session.measure();
}

int main(int argc, char **argv) { return benchMain(argc, argv, run); }
