//===- Rounding.cpp - roundings that an attention leaves out ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/raise/Rounding.h"
#include "dialect/Attn.h"
#include "passes/Access.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

linalg::LinalgOp attn::findRounding(Value value) {
  auto op = value.hasOneUse() ? dyn_cast<linalg::LinalgOp>(*value.user_begin()) : nullptr;
  bool rounds =
      op && isRounding(op) && isAttentionElement(getElementTypeOrSelf(op->getResult(0).getType()));
  return rounds ? op : nullptr;
}

/// Returns `value` as an f32. If `value` was rounded, this is the number before the rounding.
static Value widen(Value value) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  Type f32 = builder.getF32Type();
  Operation *op = value.getDefiningOp();
  if (auto round = dyn_cast_or_null<arith::TruncFOp>(op); round && round.getIn().getType() == f32)
    return round.getIn();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op)) {
    double number = cast<FloatAttr>(constant.getValue()).getValueAsDouble();
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(f32, number));
  }
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    Value yes = widen(select.getTrueValue()), no = widen(select.getFalseValue());
    return arith::SelectOp::create(builder, loc, select.getCondition(), yes, no);
  }
  return arith::ExtFOp::create(builder, loc, f32, value);
}

Value attn::dropRoundings(Region &region, Value score) {
  SmallVector<arith::ExtFOp> conversions(region.getOps<arith::ExtFOp>());
  for (arith::ExtFOp op : conversions) {
    if (!op.getType().isF32())
      continue;
    Value wide = widen(op.getIn());
    if (score == op)
      score = wide;
    op.replaceAllUsesWith(wide);
    op.erase();
  }
  return score;
}
