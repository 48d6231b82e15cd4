//===- attn-bench-projections.cpp - products with weights -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// x W^T + b, W packed before the call: what is around attention in a layer.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Case.h"
#include "benchmark/Modules.h"
#include "benchmark/Unfused.h"

using namespace attn;
using namespace attn::bench;

std::vector<Case> attn::bench::getCases(const Target &) {
  std::vector<Case> cases;
  for (const ProductShape &shape : getProjectionShapes())
    cases.push_back({shape.getName(), shape.getFlop(), writeProjection(shape),
                     [&shape](llvm::ArrayRef<const float *> arguments, float *result) {
                       project(shape, arguments[0], arguments[1], arguments[2], result);
                     }});
  return cases;
}
