//===- ScoreBlock.cpp - score regions of attentions -----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/ScoreBlock.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

Block *attn::createScoreBlock(OpBuilder &builder, AttentionOp op, Region &region) {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> types(op.getKDim() + 1, builder.getIndexType());
  types.push_back(op.getAccumulatorType());
  for (auto [i, capture] : llvm::enumerate(op.getCaptures()))
    types.push_back(elementOfCapture(capture, op.getCaptureMap(i)));
  SmallVector<Location> locs(types.size(), op.getLoc());
  Block *block = builder.createBlock(&region, {}, types, locs);
  YieldOp::create(builder, op.getLoc(), block->getArgument(op.getKDim() + 1));
  return block;
}

void attn::fillScores(OpBuilder &builder, AttentionOp op, Block &score) {
  OpBuilder::InsertionGuard guard(builder);
  auto yield = cast<YieldOp>(score.getTerminator());
  builder.setInsertionPoint(yield);
  ValueRange arguments = score.getArguments();
  unsigned numDims = op.getKDim() + 1;
  Value kept = createKept(builder, op.getLoc(), op.getMaskAttr(), arguments.take_front(numDims),
                          arguments.drop_front(numDims + 1));
  Value fill = arith::ConstantOp::create(
      builder, op.getLoc(),
      builder.getFloatAttr(op.getAccumulatorType(), op.getFill()->convertToDouble()));
  if (op.getAdded())
    fill = arith::AddFOp::create(builder, op.getLoc(), yield.getValue(), fill);
  yield.setOperand(
      arith::SelectOp::create(builder, op.getLoc(), kept, yield.getValue(), fill).getResult());
}
