//===- Memory.cpp - which tensors lie in the same memory ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/Memory.h"

#include "dialect/Attn.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace attn;

void attn::materialize(OpBuilder &builder, Location loc, Value tensor, Value buffer) {
  auto op = bufferization::MaterializeInDestinationOp::create(builder, loc, tensor, buffer);
  op.setRestrict(true);
  op.setWritable(true);
}

Value attn::copyOf(OpBuilder &builder, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    sizes.push_back(dimOf(builder, loc, tensor, dim));
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  return linalg::CopyOp::create(builder, loc, tensor, empty).getResult(0);
}

OpOperand *attn::initOf(OpResult result) {
  Operation *op = result.getOwner();
  if (auto dps = dyn_cast<DestinationStyleOpInterface>(op))
    return dps.getTiedOpOperand(result);
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    return loop.getTiedLoopInit(result);
  return nullptr;
}

/// Returns initOf() or, if `result` is a reshape or a cast, the operand that is reshaped or cast.
static OpOperand *sourceOf(OpResult result) {
  Operation *op = result.getOwner();
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op))
    return &op->getOpOperand(0);
  return initOf(result);
}

SmallVector<OpOperand *> attn::writesInPlace(Value from, Value result) {
  SmallVector<OpOperand *> writes;
  while (result != from) {
    auto computed = dyn_cast<OpResult>(result);
    OpOperand *source = computed ? sourceOf(computed) : nullptr;
    if (!source)
      return {};
    writes.push_back(source);
    result = source->get();
  }
  std::reverse(writes.begin(), writes.end());
  return writes;
}

void attn::forEachInOut(func::FuncOp function,
                        function_ref<void(BlockArgument argument, OpOperand &result)> visit) {
  if (function.isExternal())
    return;
  Operation *terminator = function.getBody().front().getTerminator();
  for (BlockArgument argument : function.getArguments())
    if (std::optional<unsigned> result = getInOutResult(function, argument.getArgNumber()))
      visit(argument, terminator->getOpOperand(*result));
}
