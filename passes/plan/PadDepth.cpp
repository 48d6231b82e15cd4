//===- PadDepth.cpp - zeros where query and key have no elements -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(%q, %k, %v : tensor<2x8x0xf32>, tensor<2x8x0xf32>, tensor<2x8x16xf32>) ...
// becomes
//   %q1 = linalg.fill 0 outs(tensor<2x8x1xf32>)   %k1 = linalg.fill 0 outs(tensor<2x8x1xf32>)
//   attn.attention ins(%q1, %k1, %v : tensor<2x8x1xf32>, tensor<2x8x1xf32>, tensor<2x8x16xf32>) ...
//
// If an attention captures all its scores, or if they are constant, its query and key have head size 0. Tiling takes
// slices of query and key, and no slice of a dimension of size 0 is valid. Other attentions stay unchanged.
// Test: test/passes/plan/pad-depth.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PADDEPTH
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Replaces `operand` with zeros, of size 1 along `axis`.
static void pad(OpBuilder &builder, OpOperand &operand, int64_t axis) {
  Location loc = operand.getOwner()->getLoc();
  auto type = cast<RankedTensorType>(operand.get().getType());
  SmallVector<OpFoldResult> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    sizes.push_back(i == axis ? builder.getIndexAttr(1) : dimOf(builder, loc, operand.get(), i));
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
  operand.set(linalg::FillOp::create(builder, loc, zero, empty).getResult(0));
}

namespace {
struct PadDepth : attn::impl::PadDepthBase<PadDepth> {
  void runOnOperation() override {
    getOperation().walk([&](AttentionOp op) {
      AffineExpr depth = getAffineDimExpr(op.getDDim(), &getContext());
      unsigned inQuery = *op.getQueryMap().getResultPosition(depth),
               inKey = *op.getKeyMap().getResultPosition(depth);
      if (cast<ShapedType>(op.getQuery().getType()).getDimSize(inQuery) != 0)
        return;
      OpBuilder builder(op);
      pad(builder, op.getQueryMutable(), inQuery);
      pad(builder, op.getKeyMutable(), inKey);
    });
  }
};
} // namespace
