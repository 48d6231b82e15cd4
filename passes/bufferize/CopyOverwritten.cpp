//===- CopyOverwritten.cpp - in-out arguments are written in place ---------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @step(%k, %p, %cache {attn.in_out = 1}) -> (..) {
//     %new = tensor.insert_slice %k into %cache[%p, 0] [1, 64] [1, 1]
//     %sum = ... %new ... %cache
//     return %sum, %new
// becomes
//     %old = linalg.copy ins(%cache) outs(%empty)
//     %new = tensor.insert_slice %k into %cache[%p, 0] [1, 64] [1, 1]
//     %sum = ... %new ... %old
//     return %sum, %new
//
// The result of an in-out argument lies in the memory of the argument. If ops compute the result from the argument in
// place, as above, the pass copies the old elements that are read later, before an op overwrites them. If the result is
// computed in an empty tensor, it is computed in the argument instead. If it is computed elsewhere, it is copied to the
// argument at the end. Bufferization then has nothing to copy. The pass runs in this stage because later passes keep
// the order of reads and writes.
// Test: test/passes/bufferize/copy-overwritten.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Memory.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_COPYOVERWRITTEN
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

static bool isReshape(Operation *op) {
  return isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op);
}

/// Replaces `value` with a copy in all ops that read it and do not precede `writer`. The use `inPlace`, through which
/// the memory of `value` is overwritten, stays unchanged.
static void copyReadAfter(Value value, Operation *writer, OpOperand *inPlace) {
  Block *block = writer->getBlock();
  SmallVector<OpOperand *> late;
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    Operation *user = block->findAncestorOpInBlock(*use.getOwner());
    if (&use == inPlace)
      continue;
    if (!user->isBeforeInBlock(writer))
      late.push_back(&use);
    else if (isReshape(user) || isa<tensor::ExtractSliceOp>(user))
      copyReadAfter(user->getResult(0), writer, /*inPlace=*/nullptr);
  }
  if (late.empty())
    return;
  OpBuilder builder(writer);
  Value copy = copyOf(builder, writer->getLoc(), value);
  for (OpOperand *use : late)
    use->set(copy);
}

/// The tensor.empty in which ops compute `value`, step by step, or null.
static tensor::EmptyOp emptyOf(Value value) {
  while (auto result = dyn_cast<OpResult>(value)) {
    OpOperand *init = initOf(result);
    if (!init)
      break;
    value = init->get();
  }
  return value.getDefiningOp<tensor::EmptyOp>();
}

/// Puts `result`, which is computed elsewhere, into the memory of `argument`. Returns the uses that write to this
/// memory.
static SmallVector<OpOperand *> writeAtEnd(BlockArgument argument, OpOperand &result) {
  tensor::EmptyOp empty = emptyOf(result.get());
  if (empty && empty->hasOneUse() && empty.getType() == argument.getType()) {
    empty.replaceAllUsesWith(argument);
    return writesInPlace(argument, result.get());
  }
  OpBuilder builder(result.getOwner());
  auto copy = linalg::CopyOp::create(builder, result.get().getLoc(), result.get(), argument);
  result.set(copy.getResult(0));
  return {copy.getDpsInitOperand(0)};
}

namespace {
struct CopyOverwritten : attn::impl::CopyOverwrittenBase<CopyOverwritten> {
  void runOnOperation() override {
    forEachInOut(getOperation(), [](BlockArgument argument, OpOperand &result) {
      SmallVector<OpOperand *> writes = writesInPlace(argument, result.get());
      if (writes.empty() && result.get() != argument)
        writes = writeAtEnd(argument, result);
      for (auto [i, write] : llvm::enumerate(writes)) {
        auto writer = llvm::find_if(ArrayRef(writes).drop_front(i),
                                    [](OpOperand *next) { return !isReshape(next->getOwner()); });
        if (writer != writes.end())
          copyReadAfter(write->get(), (*writer)->getOwner(), write);
      }
    });
  }
};
} // namespace
