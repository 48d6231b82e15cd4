//===- CopyInserted.cpp - what is joined to others is copied where it must be ===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %0 = tensor.insert_slice %x into %e[0, 0] [1, 8] [1, 1]
// becomes
//   %copy = linalg.copy ins(%x) outs(%empty)
//   %0 = tensor.insert_slice %copy into %e[0, 0] [1, 8] [1, 1]
//
// A concatenation has become insertions. eliminate-empty-tensors, which comes next, gives an op that computes what is
// inserted its part of the whole to write to. What no op computes for this place alone (an argument, a view, a value with
// other uses, parts that were joined already, or what is computed before the place exists) is copied, as the graph says: the copy is such an op.
// Insertions move up to what they insert, so that the next finds its place before its source is computed. Insertions into
// parts that loops or tasks fill stay, because those compute in place. Here because no pass that follows moves a view
// between a copy and its insertion.
// Test: test/passes/bufferize/copy-inserted.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_COPYINSERTED
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Whether an op computes `value` for its one use, after the place for it exists.
static bool isComputedFor(Value value, Value place, DominanceInfo &dominance) {
  Operation *op = value.getDefiningOp();
  return op && value.hasOneUse() &&
         isa<DestinationStyleOpInterface, LoopLikeOpInterface>(op) &&
         !isa<tensor::InsertSliceOp>(op) && dominance.properlyDominates(place, op);
}

/// Moves `op` behind the last of its operands, within its block.
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

/// Whether `insert` puts back a part that was taken out of the same place.
static bool putsBack(tensor::InsertSliceOp insert) {
  return llvm::any_of(insert.getDest().getUsers(), [&](Operation *user) {
    auto extract = dyn_cast<tensor::ExtractSliceOp>(user);
    return extract && extract.getSource() == insert.getDest() &&
           extract.getMixedOffsets() == insert.getMixedOffsets() &&
           extract.getMixedSizes() == insert.getMixedSizes();
  });
}

namespace {
struct CopyInserted : attn::impl::CopyInsertedBase<CopyInserted> {
  void runOnOperation() override {
    DominanceInfo dominance(getOperation());
    getOperation().walk([&](tensor::InsertSliceOp insert) {
      if (putsBack(insert))
        return;
      // As early as can be, so that what is computed later finds its place.
      if (Operation *root = insert.getDest().getDefiningOp();
          isa_and_nonnull<tensor::EmptyOp, bufferization::ToTensorOp>(root))
        moveUp(root);
      moveUp(insert);
      Value source = insert.getSource();
      if (isComputedFor(source, insert.getDest(), dominance))
        return;
      OpBuilder builder(insert);
      RankedTensorType type = insert.getSourceType();
      SmallVector<OpFoldResult> sizes;
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        sizes.push_back(dimOf(builder, insert.getLoc(), source, dim));
      Value empty =
          tensor::EmptyOp::create(builder, insert.getLoc(), sizes, type.getElementType());
      auto copy = linalg::CopyOp::create(builder, insert.getLoc(), source, empty);
      insert.getSourceMutable().assign(copy.getResult(0));
    });
  }
};
} // namespace
