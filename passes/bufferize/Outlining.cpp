//===- Outlining.cpp - what passes that create functions share -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/bufferize/Outlining.h"
#include "dialect/Attn.h"
#include "passes/Product.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

Captures::Captures(ValueRange used) {
  for (Value value : used) {
    if (matchPattern(value, m_Constant()))
      constants.push_back(value.getDefiningOp());
    else
      arguments.push_back(value);
  }
}

StringRef attn::nameOfWork(Operation *work) {
  StringRef name = "map";
  work->walk([&](Operation *op) {
    if (isa<OnlineStepOp>(op))
      name = "attend";
    else if (isProduct(op) && name == "map")
      name = "project";
    else if (isConvolution(op) && name == "map")
      name = "convolve";
    else if (isa<linalg::SoftmaxOp>(op) && name == "map")
      name = "softmax";
    else if (isa<PackMaskOp>(op))
      name = "pack_mask";
  });
  return name;
}

bool attn::areEqual(func::FuncOp left, func::FuncOp right) {
  return left.getFunctionType() == right.getFunctionType() &&
         left.getArgAttrsAttr() == right.getArgAttrsAttr() &&
         OperationEquivalence::isRegionEquivalentTo(&left.getBody(), &right.getBody(),
                                                    OperationEquivalence::IgnoreLocations);
}
