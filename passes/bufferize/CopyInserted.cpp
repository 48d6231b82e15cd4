//===- CopyInserted.cpp - copies of values that are inserted ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %0 = tensor.insert_slice %x into %e[0, 0] [1, 8] [1, 1]
// becomes
//   %copy = linalg.copy ins(%x) outs(%empty)
//   %0 = tensor.insert_slice %copy into %e[0, 0] [1, 8] [1, 1]
//
// attn-decompose-concat has turned concatenations into insertions. eliminate-empty-tensors, which runs next, lets the
// op that computes an inserted value write it directly to its part of the whole tensor. This pass copies each value
// that no op computes for this insertion alone: an argument, a view, a value with other uses, the result of another
// insertion, or a value that is computed before the destination of the insertion exists. The copy is then the op that
// computes the value. Insertions move up, right after their operands, so that the destination of the next insertion
// exists before its source is computed. The other branch of an scf.if may use the same destination. If a loop or a task
// has filled a part of a tensor, and an insertion puts this part back, the insertion stays unchanged, because loops and
// tasks compute in place. Insertions into a tensor that other ops read, such as an in-out argument, do not move, and
// their source is copied.
//
// A slice whose dimensions are collapsed is copied too, unless these dimensions are contiguous in memory.
//
// The pass runs in this stage because no later pass moves a view between a copy and its insertion.
// Test: test/passes/bufferize/copy-inserted.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Memory.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_COPYINSERTED
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Whether an op after `place`, the destination of the insertion, computes `value` for the insertion alone.
static bool isComputedFor(Value value, Value place, DominanceInfo &dominance) {
  Operation *op = value.getDefiningOp();
  return op && value.hasOneUse() &&
         isa<DestinationStyleOpInterface, LoopLikeOpInterface>(op) &&
         !isa<tensor::InsertSliceOp>(op) && dominance.properlyDominates(place, op);
}

/// Whether ops other than `insert` may use its destination, except in the other branch of an scf.if. If they do, the
/// inserted value must not be written before the insertion. In a loop, one iteration may take one branch and the next
/// iteration the other.
static bool isShared(tensor::InsertSliceOp insert) {
  Value place = insert.getDest();
  Operation *user = insert;
  bool isInLoop = insert->getParentOfType<LoopLikeOpInterface>();
  while (llvm::all_of(place.getUsers(), [&](Operation *other) {
    return other == user || (!isInLoop && insideMutuallyExclusiveRegions(other, insert));
  })) {
    Operation *view = place.getDefiningOp();
    if (!isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(view))
      return false;
    user = view;
    place = view->getOperand(0);
  }
  return true;
}

/// Moves `op` up within its block, to the place right after the last of its operands.
static void moveUp(Operation *op) {
  Operation *last = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (source && source->getBlock() == op->getBlock() &&
        (!last || last->isBeforeInBlock(source)))
      last = source;
  }
  if (last)
    op->moveAfter(last);
  else
    op->moveBefore(op->getBlock(), op->getBlock()->begin());
}

/// Whether `insert` puts back a part that was extracted from the same place, or a value computed in such a part.
static bool putsBack(tensor::InsertSliceOp insert) {
  Value source = insert.getSource();
  return llvm::any_of(insert.getDest().getUsers(), [&](Operation *user) {
    auto extract = dyn_cast<tensor::ExtractSliceOp>(user);
    return extract && extract.getSource() == insert.getDest() &&
           extract.getMixedOffsets() == insert.getMixedOffsets() &&
           extract.getMixedSizes() == insert.getMixedSizes() &&
           (extract == source.getDefiningOp() || !writesInPlace(extract, source).empty());
  });
}

/// Whether `slice` takes or fills all of `tensor`, and `tensor` is a tensor.empty.
static bool isAllOfEmpty(OffsetSizeAndStrideOpInterface slice, Value tensor) {
  auto empty = tensor.getDefiningOp<tensor::EmptyOp>();
  return empty && isEqualConstantIntOrValueArray(slice.getMixedSizes(), empty.getMixedSizes());
}

/// The type of the buffer that `tensor` will become: a view, if it is a slice, and otherwise a buffer of its own.
static MemRefType bufferOf(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>())
    return memref::SubViewOp::inferRankReducedResultType(
        type.getShape(), bufferOf(slice.getSource()), slice.getMixedOffsets(),
        slice.getMixedSizes(), slice.getMixedStrides());
  return MemRefType::get(type.getShape(), type.getElementType());
}

namespace {
struct CopyInserted : attn::impl::CopyInsertedBase<CopyInserted> {
  void runOnOperation() override {
    // If a value fills all of an empty tensor only to get unit dimensions, insert the value instead of that tensor.
    getOperation().walk([](tensor::InsertSliceOp insert) {
      auto inner = insert.getSource().getDefiningOp<tensor::InsertSliceOp>();
      if (!inner || !inner->hasOneUse() || !isAllOfEmpty(inner, inner.getDest()) ||
          isRankReducedType(insert.getSourceType(), inner.getSourceType()) !=
              SliceVerificationResult::Success)
        return;
      insert.getSourceMutable().assign(inner.getSource());
      inner.erase();
    });
    // A slice of all of an empty tensor becomes an empty tensor, which an insertion can replace.
    getOperation().walk([](tensor::ExtractSliceOp slice) {
      if (!isAllOfEmpty(slice, slice.getSource()))
        return;
      Value empty = slice.getSource();
      if (slice.getType() != empty.getType()) {
        if (!empty.hasOneUse())
          return;
        OpBuilder builder(slice);
        SmallVector<OpFoldResult> sizes;
        llvm::SmallBitVector dropped = slice.getDroppedDims();
        for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes()))
          if (!dropped.test(dim))
            sizes.push_back(size);
        empty = tensor::EmptyOp::create(builder, slice.getLoc(), sizes,
                                        slice.getType().getElementType());
      }
      slice.replaceAllUsesWith(empty);
      slice.erase();
    });
    DominanceInfo dominance(getOperation());
    getOperation().walk([&](tensor::InsertSliceOp insert) {
      if (putsBack(insert))
        return;
      // Allocate the destination as early as possible, so that it exists before later values are computed.
      Operation *root = insert.getDest().getDefiningOp();
      if (isa_and_nonnull<tensor::EmptyOp, bufferization::ToTensorOp>(root))
        moveUp(root);
      // The destination becomes allocated memory here. If it stayed an empty tensor, each of its uses would get a
      // separate empty tensor.
      if (auto empty = dyn_cast_or_null<tensor::EmptyOp>(root)) {
        OpBuilder builder(empty);
        auto place = bufferization::AllocTensorOp::create(builder, empty.getLoc(), empty.getType(),
                                                          empty.getDynamicSizes());
        insert.getDestMutable().assign(place);
      }
      Value source = insert.getSource();
      if (!isShared(insert)) {
        moveUp(insert);
        if (isComputedFor(source, insert.getDest(), dominance))
          return;
      }
      OpBuilder builder(insert);
      insert.getSourceMutable().assign(copyOf(builder, insert.getLoc(), source));
    });
    getOperation().walk([&](tensor::CollapseShapeOp collapse) {
      Value source = collapse.getSrc();
      if (memref::CollapseShapeOp::isGuaranteedCollapsible(bufferOf(source),
                                                           collapse.getReassociationIndices()))
        return;
      OpBuilder builder(collapse);
      collapse.getSrcMutable().assign(copyOf(builder, collapse.getLoc(), source));
    });
  }
};
} // namespace
