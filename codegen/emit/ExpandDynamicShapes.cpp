//===- ExpandDynamicShapes.cpp - split a dimension into dynamic ones -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %y = memref.expand_shape %x [[0, 1], [2]] output_shape [%b, %s, 8] : memref<?x8xf32> into memref<?x?x8xf32>
// ==>
//   %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %x
//   %stride = affine.apply (s * 8)
//   %y = memref.reinterpret_cast %base to offset: [0], sizes: [%b, %s, 8], strides: [%stride, 8, 1]
//
// expand-strided-metadata, which runs next, computes a dynamic size by division. It cannot do so if a group has more
// than one dynamic size, but the operands of memref.expand_shape give all sizes.
// Test: test/codegen/emit/expand-dynamic-shapes.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace attn {
#define GEN_PASS_DEF_EXPANDDYNAMICSHAPES
#include "codegen/emit/Passes.h.inc"
} // namespace attn

using namespace mlir;

/// `number` if it is static, otherwise `value`.
static OpFoldResult known(OpBuilder &builder, int64_t number, OpFoldResult value) {
  return ShapedType::isDynamic(number) ? value : OpFoldResult(builder.getIndexAttr(number));
}

static bool hasUnknownGroup(memref::ExpandShapeOp op) {
  return llvm::any_of(op.getReassociationIndices(), [&](ArrayRef<int64_t> group) {
    return llvm::count_if(group, [&](int64_t dim) {
             return op.getResultType().isDynamicDim(dim);
           }) > 1;
  });
}

static void expand(memref::ExpandShapeOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  MemRefType type = op.getResultType();
  auto [strides, offset] = type.getStridesAndOffset();
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, op.getSrc());
  SmallVector<OpFoldResult> shape = op.getMixedOutputShape(), newSizes(type.getRank()),
                            newStrides(type.getRank());
  AffineExpr a, b;
  bindSymbols(op.getContext(), a, b);
  for (auto [source, group] : llvm::enumerate(op.getReassociationIndices())) {
    OpFoldResult stride = metadata.getConstifiedMixedStrides()[source];
    for (int64_t dim : llvm::reverse(group)) {
      newSizes[dim] = known(builder, type.getDimSize(dim), shape[dim]);
      newStrides[dim] = known(builder, strides[dim], stride);
      stride = affine::makeComposedFoldedAffineApply(builder, loc, a * b, {stride, newSizes[dim]});
    }
  }
  OpFoldResult newOffset = known(builder, offset, metadata.getConstifiedMixedOffset());
  auto cast = memref::ReinterpretCastOp::create(builder, loc, type, metadata.getBaseBuffer(),
                                                newOffset, newSizes, newStrides);
  op.getResult().replaceAllUsesWith(cast);
  op.erase();
}

namespace {
struct ExpandDynamicShapes : attn::impl::ExpandDynamicShapesBase<ExpandDynamicShapes> {
  void runOnOperation() override {
    getOperation().walk([](memref::ExpandShapeOp op) {
      if (hasUnknownGroup(op))
        expand(op);
    });
  }
};
} // namespace
