//===- WriteParts.cpp - many insertions become writes to one buffer --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %1 = tensor.insert_slice %a into %0[0, 0] [1, 8] [1, 1]
//   %2 = tensor.insert_slice %b into %1[1, 0] [1, 8] [1, 1]
//   ... at least 16 insertions, each into the result of the one before it, which no other op reads
// becomes
//   %m = memref.alloc()
//   bufferization.materialize_in_destination %0 in restrict writable %m       // not if %0 is empty
//   %m1 = memref.subview %m[0, 0] [1, 8] [1, 1]
//   bufferization.materialize_in_destination %a in restrict writable %m1
//   %m2 = memref.subview %m[1, 0] [1, 8] [1, 1]
//   bufferization.materialize_in_destination %b in restrict writable %m2
//   ...
//   %2 = bufferization.to_tensor %m restrict writable
//
// The analysis of one-shot bufferization compares each pair of accesses to tensors that may share memory, for each op
// that writes to one of them. Its time therefore grows with the cube of the length of such a chain: 100 insertions take
// 15 seconds. The writes to %m share no tensor.
//
// eliminate-empty-tensors, which runs next, lets the op that computes %a write directly to %m1, at an earlier place than
// the insertion. This is right because the parts are disjoint, no op reads %m before the last write, and the elements of
// %0 are written before anything else. Chains whose parts overlap or have unknown places stay as they are, and so do
// shorter chains.
// Test: test/passes/bufferize/write-parts.mlir, test/tools/slice-writes.test
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_WRITEPARTS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The least number of insertions that the pass replaces. The analysis of fewer takes less than 0.1 seconds.
static constexpr size_t kManyInsertions = 16;

/// The only op that reads the result of `insert`, if it is the next insertion into this result in the same block.
static tensor::InsertSliceOp getNext(tensor::InsertSliceOp insert) {
  if (!insert->hasOneUse())
    return {};
  OpOperand &use = *insert->use_begin();
  auto next = dyn_cast<tensor::InsertSliceOp>(use.getOwner());
  bool isNext = next && next->getBlock() == insert->getBlock() && &use == &next.getDestMutable();
  return isNext ? next : nullptr;
}

static bool isStatic(tensor::InsertSliceOp insert) {
  return insert.getType().hasStaticShape() &&
         llvm::none_of(insert.getStaticOffsets(), ShapedType::isDynamic) &&
         llvm::none_of(insert.getStaticSizes(), ShapedType::isDynamic) &&
         llvm::none_of(insert.getStaticStrides(), ShapedType::isDynamic);
}

/// Whether two static insertions write different elements: in one dimension, one part ends before the other begins, or
/// both have the same stride and start at a different remainder.
static bool areDisjoint(tensor::InsertSliceOp a, tensor::InsertSliceOp b) {
  for (unsigned dim = 0; dim < a.getType().getRank(); ++dim) {
    int64_t beginA = a.getStaticOffset(dim), beginB = b.getStaticOffset(dim);
    int64_t strideA = a.getStaticStride(dim), strideB = b.getStaticStride(dim);
    int64_t lastA = beginA + (a.getStaticSize(dim) - 1) * strideA;
    int64_t lastB = beginB + (b.getStaticSize(dim) - 1) * strideB;
    if (lastA < beginB || lastB < beginA)
      return true;
    if (strideA == strideB && strideA > 0 && (beginA - beginB) % strideA != 0)
      return true;
  }
  return false;
}

/// Returns the chain of insertions that begins with `insert`; none if this chain stays as it is.
static SmallVector<tensor::InsertSliceOp> findChain(tensor::InsertSliceOp insert) {
  auto before = insert.getDest().getDefiningOp<tensor::InsertSliceOp>();
  if (before && getNext(before) == insert)
    return {};
  SmallVector<tensor::InsertSliceOp> chain;
  for (tensor::InsertSliceOp next = insert; next; next = getNext(next))
    chain.push_back(next);
  if (chain.size() < kManyInsertions || !llvm::all_of(chain, isStatic))
    return {};
  for (auto [index, part] : llvm::enumerate(chain))
    for (tensor::InsertSliceOp other : ArrayRef(chain).take_front(index))
      if (!areDisjoint(part, other))
        return {};
  return chain;
}

static void write(OpBuilder &builder, Location loc, Value tensor, Value buffer) {
  auto write = bufferization::MaterializeInDestinationOp::create(builder, loc, tensor, buffer);
  write.setWritable(true);
  write.setRestrict(true);
}

static void writeParts(ArrayRef<tensor::InsertSliceOp> chain) {
  tensor::InsertSliceOp first = chain.front(), last = chain.back();
  Value start = first.getDest();
  OpBuilder builder(first);
  // Ops that come after the buffer and the elements of `start` can write directly to the buffer.
  Operation *producer = start.getDefiningOp();
  bool isEmpty = isa_and_nonnull<tensor::EmptyOp>(producer);
  if (producer && !isEmpty && producer->getBlock() == first->getBlock())
    builder.setInsertionPointAfter(producer);
  else
    builder.setInsertionPointToStart(first->getBlock());
  auto type = MemRefType::get(first.getType().getShape(), first.getType().getElementType());
  Value buffer = memref::AllocOp::create(builder, first.getLoc(), type);
  if (!isEmpty)
    write(builder, first.getLoc(), start, buffer);
  for (tensor::InsertSliceOp insert : chain) {
    builder.setInsertionPoint(insert);
    auto part = memref::SubViewOp::inferRankReducedResultType(
        insert.getSourceType().getShape(), type, insert.getMixedOffsets(), insert.getMixedSizes(),
        insert.getMixedStrides());
    write(builder, insert.getLoc(), insert.getSource(),
          memref::SubViewOp::create(builder, insert.getLoc(), part, buffer,
                                    insert.getMixedOffsets(), insert.getMixedSizes(),
                                    insert.getMixedStrides()));
  }
  last.getResult().replaceAllUsesWith(
      bufferization::ToTensorOp::create(builder, last.getLoc(), last.getType(), buffer,
                                        /*restrict=*/true, /*writable=*/true)
          .getResult());
  for (tensor::InsertSliceOp insert : llvm::reverse(chain))
    insert.erase();
}

namespace {
struct WriteParts : attn::impl::WritePartsBase<WriteParts> {
  void runOnOperation() override {
    SmallVector<SmallVector<tensor::InsertSliceOp>> chains;
    getOperation().walk([&](tensor::InsertSliceOp insert) {
      if (SmallVector<tensor::InsertSliceOp> chain = findChain(insert); !chain.empty())
        chains.push_back(std::move(chain));
    });
    for (ArrayRef<tensor::InsertSliceOp> chain : chains)
      writeParts(chain);
  }
};
} // namespace
