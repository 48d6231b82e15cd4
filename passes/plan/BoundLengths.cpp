//===- BoundLengths.cpp - lengths of a mask do not exceed the keys ---------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @f(%k: tensor<?x64xf32> {attn.dims = ["n", ""]}, %lengths: tensor<2xi32>, ...) {
//     attn.attention ins(%q, %k, %v) captures(%lengths) ... mask(#attn.lengths<0>)
// becomes
//   func.func @f(%k: tensor<?x64xf32> {attn.dims = ["n", ""]},
//                %lengths: tensor<2xi32> {attn.bound = "n"}, ...) {
//
// The runtime then refuses lengths that are negative or greater than the number of keys. The pass runs before
// attn-clone-targets, which separates the signature from the code. The pass adds no bound if the lengths are computed,
// if the argument already has a bound, or if the number of keys is neither static nor the size of a dimension of an
// argument. From an argument that has a bound, because it is also an index, the pass removes attn.below.
// Test: test/passes/plan/bound-lengths.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Symbols.h"
#include "passes/Passes.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_BOUNDLENGTHS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
struct BoundLengths : attn::impl::BoundLengthsBase<BoundLengths> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    function.walk([&](AttentionOp op) {
      MaskInterface mask = op.getMaskAttr();
      if (!mask)
        return;
      mask.walk([&](LengthsAttr lengths) {
        auto argument = dyn_cast<BlockArgument>(op.getCaptures()[lengths.getCapture()]);
        if (!argument || argument.getOwner() != &function.front())
          return;
        if (function.getArgAttr(argument.getArgNumber(), AttnDialect::kBoundAttr)) {
          // An index may be negative, a length may not.
          auto below = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                              AttnDialect::kBelowAttr);
          if (!below || below.getInt() > 0)
            function.removeArgAttr(argument.getArgNumber(), AttnDialect::kBelowAttr);
          return;
        }
        // The runtime does not check other integer types; loops over keys end at the last key in
        // any case.
        Type element = cast<ShapedType>(argument.getType()).getElementType();
        if (!element.isSignlessInteger(32) && !element.isSignlessInteger(64))
          return;
        if (Attribute bound = numKeys(function, op))
          function.setArgAttr(argument.getArgNumber(), AttnDialect::kBoundAttr, bound);
      });
    });
  }

  static Attribute numKeys(func::FuncOp function, AttentionOp op) {
    AffineMap map = op.getKeyMap();
    int64_t axis = *map.getResultPosition(getAffineDimExpr(op.getKDim(), op.getContext()));
    int64_t size = cast<ShapedType>(op.getKey().getType()).getDimSize(axis);
    if (ShapedType::isDynamic(size))
      return symbolOf(function, op.getKey(), axis);
    return IntegerAttr::get(IntegerType::get(op.getContext(), 64), size);
  }
};
} // namespace
