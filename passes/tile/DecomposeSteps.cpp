//===- DecomposeSteps.cpp - a step as product, update, product -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.online_step ins(%q, %k, %v) outs(%s, %m, %l, %a) at(...) mask(M)
// becomes
//   %s0 = linalg.fill 0 outs(%s)
//   %s1 = linalg.contract ins(%k, %q) outs(%s0)                      S^T = K Q^T
//   %p, %m1, %l1, %a1 = attn.online_update outs(%s1, %m, %l, %a) at(...) mask(M)
//   %a2 = linalg.generic ins(%p, %v) outs(%a1)                       O^T += V^T P^T where p != 0
//
// Every product of attention then shares one lowering with the projections. Only a masked step needs the guarded
// product, since 0 * NaN is NaN; other steps get a plain contraction. Test: test/passes/tile/decompose-steps.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_DECOMPOSESTEPS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

static void decompose(OnlineStepOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  Value scores = op.getOuts()[0];
  Type scoreType = cast<ShapedType>(scores.getType()).getElementType();
  Value zero = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(scoreType, 0));
  AffineExpr m, n, r; // row, query, reduced
  bindDims(context, m, n, r);
  auto contract = [&](Value a, ArrayRef<AffineExpr> aDims, Value b, Value init) {
    auto maps = AffineMap::inferFromExprList({aDims, ArrayRef<AffineExpr>{r, n}, {m, n}}, context);
    return linalg::ContractOp::create(builder, loc, TypeRange{init.getType()}, ValueRange{a, b},
                                      ValueRange{init}, builder.getAffineMapArrayAttr(maps))
        ->getResult(0);
  };
  scores = linalg::FillOp::create(builder, loc, zero, scores).getResult(0);
  scores = contract(op.getKey(), {m, r}, op.getQuery(), scores);

  SmallVector<Value> outs = {scores};
  llvm::append_range(outs, op.getOuts().drop_front());
  auto update = OnlineUpdateOp::create(builder, loc, ValueRange(outs).getTypes(), op.getCaptures(),
                                       outs, op.getOrigin(), op.getMaskAttr(), op.getCaptureMaps(),
                                       op.getScaleAttr());
  update.getScore().takeBody(op.getScore());

  Value probabilities = update.getResult(0), acc = update.getResult(3);
  if (!op.getMask()) {
    acc = contract(op.getValue(), {r, m}, probabilities, acc);
  } else {
    auto maps = AffineMap::inferFromExprList({ArrayRef<AffineExpr>{r, n}, {r, m}, {m, n}}, context);
    auto parallel = utils::IteratorType::parallel, reduction = utils::IteratorType::reduction;
    acc = linalg::GenericOp::create(
              builder, loc, acc.getType(), ValueRange{probabilities, op.getValue()}, acc, maps,
              ArrayRef{parallel, parallel, reduction},
              [&](OpBuilder &b, Location loc, ValueRange args) {
                Value live =
                    arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, args[0], zero);
                Value product = arith::MulFOp::create(b, loc, args[0], args[1]);
                Value sum = arith::AddFOp::create(b, loc, args[2], product);
                Value kept = arith::SelectOp::create(b, loc, live, sum, args[2]);
                linalg::YieldOp::create(b, loc, kept);
              })
              .getResult(0);
  }
  op.replaceAllUsesWith(ValueRange{probabilities, update.getResult(1), update.getResult(2), acc});
  op.erase();
}

namespace {
struct DecomposeSteps : attn::impl::DecomposeStepsBase<DecomposeSteps> {
  void runOnOperation() override { getOperation().walk(decompose); }
};
} // namespace
