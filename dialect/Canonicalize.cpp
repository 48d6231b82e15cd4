//===- Canonicalize.cpp - folds and canonical forms of the operations ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "dialect/KeyBounds.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// attn.key_range
//===----------------------------------------------------------------------===//

LogicalResult KeyRangeOp::fold(FoldAdaptor adaptor, SmallVectorImpl<OpFoldResult> &results) {
  // Every bound needs the number of keys.
  if (!adaptor.getKeys())
    return failure();
  KeyBounds bounds = KeyBounds::get(getContext(), getMaskAttr(), getBatch().size(), getStep());
  SmallVector<int64_t> operands;
  for (auto [i, operand] : llvm::enumerate(adaptor.getOperands())) {
    auto constant = dyn_cast_or_null<IntegerAttr>(operand);
    if (!constant && bounds.isFunctionOf(i))
      return failure();
    operands.push_back(constant ? constant.getInt() : 0);
  }
  for (int64_t bound : bounds.evaluate(operands))
    results.push_back(IntegerAttr::get(IndexType::get(getContext()), bound));
  return success();
}
