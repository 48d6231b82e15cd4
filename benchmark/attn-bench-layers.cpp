//===- attn-bench-layers.cpp - whole attention layers ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Table.h"

using namespace attn::bench;

static llvm::Error run(Table &table) {
  for (const AttentionShape &shape : getLayerShapes())
    table.add(getLayer(shape));
  return table.measure();
}

int main(int argc, char **argv) { return benchMain(argc, argv, run); }
