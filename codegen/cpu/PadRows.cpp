//===- PadRows.cpp - rows of temporaries in different sets of L1 -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %m = memref.alloc() : memref<128x96x32xf32>
//   %rows = memref.collapse_shape %m [[0], [1, 2]] : memref<128x96x32xf32> into memref<128x3072xf32>
// becomes
//   %padded = memref.alloc() : memref<128x97x32xf32>
//   %m = memref.subview %padded[0, 0, 0] [128, 96, 32] [1, 1, 1]
//      : memref<128x97x32xf32> to memref<128x96x32xf32, strided<[3104, 32, 1]>>
//   %rows = memref.collapse_shape %m [[0], [1, 2]]
//      : memref<128x96x32xf32, strided<[3104, 32, 1]>> into memref<128x3072xf32, strided<[3104, 1]>>
//
// On most x86-64 CPUs, a way of L1 has 4096 bytes. Therefore, elements that lie a multiple of 4096 bytes apart share
// one set, which has only a few cache lines. A product reads several rows of its left operand at a time. If the size of
// a row is a multiple of 4096 bytes, the rows evict each other and the packed weights: on an EPYC (Zen 2), the product
// of 1576 x 3072 by 3072 x 768 ran at 58 GFLOP/s, and at 86 GFLOP/s with rows of 3088 elements. Arguments of a call
// have a compact layout, so only temporaries are padded; passes/plan/CopyRows.cpp copies arguments to temporaries.
//
// The pass does not change a temporary that is an operand of an op that might need a compact layout, such as a call.
// Test: test/codegen/cpu/pad-rows.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Cpu.h"
#include "codegen/cpu/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

namespace attn {
#define GEN_PASS_DEF_PADROWS
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

using namespace mlir;

using attn::kWayBytes;

static constexpr int64_t kLineBytes = 64;

/// Returns `type` with padding in one dimension: the innermost dimension that, together with the dimensions inside it,
/// takes a multiple of kWayBytes. Returns null if there is none, or if the dimension around it has size 1.
static MemRefType padType(MemRefType type) {
  if (!type.getLayout().isIdentity() || !type.getElementType().isIntOrFloat() ||
      type.getElementTypeBitWidth() % 8)
    return {};
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  for (int64_t dim = type.getRank() - 1; dim > 0 && !type.isDynamicDim(dim); --dim) {
    int64_t size = type.getDimSize(dim), row = size * bytes;
    if (row > 0 && row % kWayBytes == 0) {
      if (type.getDimSize(dim - 1) == 1)
        return {};
      SmallVector<int64_t> shape(type.getShape());
      shape[dim] += llvm::divideCeil(kLineBytes, bytes);
      return MemRefType::get(shape, type.getElementType(), MemRefLayoutAttrInterface(),
                             type.getMemorySpace());
    }
    bytes = row;
  }
  return {};
}

/// Returns the type that `view` has if the type of its source is `source`; null if such a view is not possible.
static MemRefType typeOfView(Operation *view, MemRefType source) {
  if (auto subview = dyn_cast<memref::SubViewOp>(view))
    return memref::SubViewOp::inferRankReducedResultType(
        subview.getType().getShape(), source, subview.getMixedOffsets(), subview.getMixedSizes(),
        subview.getMixedStrides());
  if (auto expand = dyn_cast<memref::ExpandShapeOp>(view)) {
    FailureOr<MemRefType> type = memref::ExpandShapeOp::computeExpandedType(
        source, expand.getType().getShape(), expand.getReassociationIndices());
    return succeeded(type) ? *type : MemRefType();
  }
  auto collapse = dyn_cast<memref::CollapseShapeOp>(view);
  if (!collapse || !memref::CollapseShapeOp::isGuaranteedCollapsible(
                       source, collapse.getReassociationIndices()))
    return {};
  return memref::CollapseShapeOp::computeCollapsedType(source, collapse.getReassociationIndices());
}

/// Collects `value` with its new type `type`, and all views of `value` with the types that they then have. Returns
/// false if a user of these values does not support the new types.
static bool findTypes(Value value, MemRefType type, SmallVectorImpl<std::pair<Value, MemRefType>> &types) {
  types.push_back({value, type});
  for (Operation *user : value.getUsers()) {
    if (isa<linalg::LinalgOp, memref::LoadOp, memref::StoreOp, memref::DimOp>(user))
      continue;
    MemRefType view = typeOfView(user, type);
    if (!view || !findTypes(user->getResult(0), view, types))
      return false;
  }
  return true;
}

namespace {
struct PadRows : attn::impl::PadRowsBase<PadRows> {
  void runOnOperation() override {
    SmallVector<memref::AllocOp> allocs;
    getOperation().walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
    IRRewriter rewriter(&getContext());
    for (memref::AllocOp alloc : allocs) {
      MemRefType type = alloc.getType(), padded = padType(type);
      if (!padded)
        continue;
      rewriter.setInsertionPointAfter(alloc);
      SmallVector<OpFoldResult> zeros(type.getRank(), rewriter.getIndexAttr(0)),
          ones(type.getRank(), rewriter.getIndexAttr(1)), sizes;
      auto dynamic = alloc.getDynamicSizes().begin();
      for (int64_t size : type.getShape())
        sizes.push_back(ShapedType::isDynamic(size) ? OpFoldResult(*dynamic++)
                                                    : rewriter.getIndexAttr(size));
      MemRefType viewed = memref::SubViewOp::inferResultType(padded, zeros, sizes, ones);
      SmallVector<std::pair<Value, MemRefType>> types;
      if (!findTypes(alloc, viewed, types))
        continue;
      auto larger = memref::AllocOp::create(rewriter, alloc.getLoc(), padded, alloc.getDynamicSizes(),
                                            alloc.getAlignmentAttr());
      auto view = memref::SubViewOp::create(rewriter, alloc.getLoc(), viewed, larger, zeros, sizes, ones);
      for (auto [value, newType] : llvm::drop_begin(types))
        value.setType(newType);
      rewriter.replaceOp(alloc, view);
    }
  }
};
} // namespace
