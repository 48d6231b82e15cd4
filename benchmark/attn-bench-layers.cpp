//===- attn-bench-layers.cpp - whole attention layers ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Session.h"

using namespace attn::bench;

llvm::Error attn::bench::run(Session &session) {
  for (const AttentionShape &shape : getLayerShapes())
    session.add(getLayer(shape));
  return session.measure();
}
