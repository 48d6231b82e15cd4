//===- KeepUnitDims.cpp - unambiguous views of dimensions of size 1 --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %0 = memref.subview %m[0, 0, 0] [1, 2, 1] [1, 1, 1]
//      : memref<1x2x6xf32, strided<[?, ?, ?]>> to memref<1x2xf32, strided<[?, ?]>>
// becomes
//   %part = memref.subview %m[0, 0, 0] [1, 2, 1] [1, 1, 1]
//         : memref<1x2x6xf32, strided<[?, ?, ?]>> to memref<1x2x1xf32, strided<[?, ?, ?]>>
//   %base, %offset, %sizes:3, %strides:3 = memref.extract_strided_metadata %part
//   %0 = memref.reinterpret_cast %part to offset: [%offset], sizes: [1, 2], strides: [%strides#0, %strides#1]
//
// If a view drops some dimensions of size 1 and keeps others, the op does not state which dimensions it drops.
// Bufferization derives the type of the view from the sizes of the tensor. Later passes of LLVM 22 derive the dropped
// dimensions from the strides of this type. If the strides are dynamic, these passes may choose other dimensions, and
// the view then reads wrong elements; if a stride of the view is not 1, they crash. In the second form, passes need not
// derive dropped dimensions. Views that drop every dimension of size 1 are unambiguous and stay.
// Test: test/passes/bufferize/keep-unit-dims.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_KEEPUNITDIMS
#include "passes/Passes.h.inc"
} // namespace attn

namespace {
struct KeepUnitDims : attn::impl::KeepUnitDimsBase<KeepUnitDims> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](memref::SubViewOp view) {
      MemRefType type = view.getType();
      MemRefType partType =
          memref::SubViewOp::inferResultType(view.getSourceType(), view.getMixedOffsets(),
                                             view.getMixedSizes(), view.getMixedStrides());
      if (type.getRank() == partType.getRank() || !llvm::is_contained(type.getShape(), 1))
        return;
      // This function chooses the dropped dimensions as bufferization does.
      auto dropped = computeRankReductionMask(partType.getShape(), type.getShape());
      auto kept = [&](ArrayRef<OpFoldResult> all) {
        SmallVector<OpFoldResult> some;
        for (auto [dim, value] : llvm::enumerate(all))
          if (!dropped->contains(dim))
            some.push_back(value);
        return some;
      };
      rewriter.setInsertionPoint(view);
      Location loc = view.getLoc();
      Value part = memref::SubViewOp::create(rewriter, loc, partType, view.getSource(),
                                             view.getMixedOffsets(), view.getMixedSizes(),
                                             view.getMixedStrides());
      auto layout = memref::ExtractStridedMetadataOp::create(rewriter, loc, part);
      rewriter.replaceOpWithNewOp<memref::ReinterpretCastOp>(
          view, type, part, layout.getConstifiedMixedOffset(),
          kept(layout.getConstifiedMixedSizes()), kept(layout.getConstifiedMixedStrides()));
    });
  }
};
} // namespace
