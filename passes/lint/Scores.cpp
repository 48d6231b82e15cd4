//===- Scores.cpp - scores of softmaxes, dead code included ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/lint/Scores.h"
#include "passes/Access.h"
#include "passes/Product.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

bool attn::isElementwiseOrView(Operation *op) {
  if (auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op))
    return isScalarFunction(linalgOp);
  return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
                         tensor::CastOp>(op);
}

/// If `value` comes from a product, adds to `scores` the result of the product, the tensors between, and `value`, in
/// the order of computation. Returns whether `value` comes from a product.
static bool collect(Value value, DenseMap<Value, bool> &visited, SetVector<Value> &scores) {
  auto [it, isNew] = visited.try_emplace(value, false);
  if (!isNew)
    return it->second;
  Operation *op = value.getDefiningOp();
  bool restsOnProduct = isProduct(op);
  if (!restsOnProduct && isElementwiseOrView(op))
    for (Value operand : op->getOperands())
      restsOnProduct |= collect(operand, visited, scores);
  if (restsOnProduct)
    scores.insert(value);
  return visited[value] = restsOnProduct;
}

SetVector<Value> attn::scoresOf(linalg::SoftmaxOp softmax) {
  DenseMap<Value, bool> visited;
  SetVector<Value> scores;
  collect(softmax.getInput(), visited, scores);
  return scores;
}

DenseSet<Operation *> attn::liveOps(func::FuncOp function) {
  DenseSet<Operation *> live;
  if (function.isExternal())
    return live;
  SmallVector<Operation *> worklist = {function.front().getTerminator()};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!live.insert(op).second)
      continue;
    // Values that a body captures from outside count as operands.
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && producer->getBlock() == &function.front())
          worklist.push_back(producer);
    });
  }
  return live;
}
