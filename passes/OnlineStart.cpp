//===- OnlineStart.cpp - the state of an attention before its first key ---===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/OnlineStart.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

/// Sets max and sum of `state` to their values after the sink. `none` is the sum where the sink is -inf.
static void startFromSink(OpBuilder &builder, Location loc, OnlineState &state, Value sink,
                          Value none) {
  Type type = getElementTypeOrSelf(state.max.getType());
  AffineMap rows = builder.getMultiDimIdentityMap(1);
  bool isScalar = cast<RankedTensorType>(sink.getType()).getRank() == 0;
  AffineMap read = isScalar ? AffineMap::get(1, 0, {}, builder.getContext()) : rows;
  auto start = linalg::GenericOp::create(
      builder, loc, TypeRange{state.max.getType(), state.sum.getType()}, sink,
      ValueRange{state.max, state.sum}, {read, rows, rows}, {utils::IteratorType::parallel},
      [&](OpBuilder &b, Location loc, ValueRange args) {
        auto constant = [&](double value) {
          return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
        };
        Value score = convertScalarToDtype(b, loc, args[0], type, /*isUnsignedCast=*/false);
        // A sink of -inf adds nothing to the sum; a sink of NaN or +inf makes the sum NaN.
        Value weight =
            arith::AddFOp::create(b, loc, arith::SubFOp::create(b, loc, score, score), constant(1));
        Value isNone = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, score,
                                             constant(-std::numeric_limits<double>::infinity()));
        Value sum = arith::SelectOp::create(b, loc, isNone, none, weight);
        linalg::YieldOp::create(b, loc, ValueRange{score, sum});
      });
  state.max = start.getResult(0);
  state.sum = start.getResult(1);
}

OnlineState attn::createOnlineStart(OpBuilder &builder, Location loc, AttentionOp op,
                                    const OnlineState &outs, Value sink, OpFoldResult numKeys,
                                    bool rows) {
  Type type = getElementTypeOrSelf(outs.max.getType());
  auto init = OnlineInitOp::create(
      builder, loc, TypeRange{outs.max.getType(), outs.sum.getType(), outs.acc.getType()}, outs.max,
      outs.sum, outs.acc, rows);
  OnlineState state = {init.getResult(0), init.getResult(1), init.getResult(2)};
  Value sum = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, 0));
  bool isEmptySum = op.getEmptyRow() == EmptyRow::NaN && !getConstantIntValue(numKeys);
  if (isEmptySum) {
    // If there is no key, the sum starts from 1, so the output is the empty sum, 0 / 1, and not 0 / 0.
    Value none = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       getValueOrCreateConstantIndexOp(builder, loc, numKeys),
                                       arith::ConstantIndexOp::create(builder, loc, 0));
    sum = arith::UIToFPOp::create(builder, loc, type, none);
  }
  if (sink)
    startFromSink(builder, loc, state, sink, sum);
  else if (isEmptySum)
    state.sum = linalg::FillOp::create(builder, loc, sum, state.sum).getResult(0);
  return state;
}
