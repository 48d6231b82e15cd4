//===- Assertions.cpp - aten's checks --------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

using namespace mlir;
using namespace attn::pt2;

/// Checks the type and the sizes of a tensor. Ignores its device, layout and strides.
static LogicalResult assertMetadata(Call &call) {
  Tensor x = call.tensor("a");
  DType dtype = call.dtype("dtype", x.dtype);
  bool hasSizes = call.has("size");
  Sizes sizes = hasSizes ? call.integers("size") : x.sizes;
  if (call.has("stride"))
    call.integers("stride");
  if (call.failed())
    return failure();
  if (dtype != x.dtype || sizes != x.sizes)
    return call.error() << "expected a tensor " << str(dtype) << str(sizes) << ", got "
                        << str(x.dtype) << str(x.sizes);
  return success();
}

void attn::pt2::addAssertions(AtenOps &ops) {
  ops.add("_assert_tensor_metadata.default", assertMetadata);
}
