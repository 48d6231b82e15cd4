//===- attn-bench-projections.cpp - products with weights -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Measures x W^T + b, the products around attention in a layer. attn packs W before the call; OpenBLAS gets W as it is.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Modules.h"
#include "benchmark/Table.h"
#include "benchmark/Unfused.h"

using namespace attn::bench;

static llvm::Error run(Table &table) {
  for (const ProductShape &shape : getProjectionShapes())
    table.add({shape.getName(), shape.getFlop(), writeProjection(shape),
               [shape](llvm::ArrayRef<const float *> arguments, float *result) {
                 project(shape, arguments[0], arguments[1], arguments[2], result);
               }});
  return table.measure();
}

int main(int argc, char **argv) { return benchMain(argc, argv, run); }
