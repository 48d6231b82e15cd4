//===- WriteParts.cpp - many insertions become writes to one buffer --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %1 = tensor.insert_slice %a into %x[0, 0] [1, 8] [1, 1]
//   %2 = tensor.insert_slice %b into %1[1, 0] [1, 8] [1, 1]
//   ... at least 16 insertions, each into the result of the one before it, which no other op reads
// becomes
//   %m = memref.alloc()
//   bufferization.materialize_in_destination %x in restrict writable %m
//   %m1 = memref.subview %m[0, 0] [1, 8] [1, 1]
//   bufferization.materialize_in_destination %a in restrict writable %m1
//   %m2 = memref.subview %m[1, 0] [1, 8] [1, 1]
//   bufferization.materialize_in_destination %b in restrict writable %m2
//   ...
//   %2 = bufferization.to_tensor %m restrict writable
//
// The analysis of one-shot bufferization compares each pair of accesses to tensors that may share memory, for each op
// that writes to one of them. Its time therefore grows with the cube of the length of such a chain: 100 insertions take
// 15 seconds. The writes to %m share no tensor. If %x has no elements yet, nothing is written for it. If %x is the buffer
// of a result, the parts are written to this buffer.
//
// eliminate-empty-tensors, which runs next, lets the op that computes %a compute it in %m1. The analysis does not know
// that %m1 is a part of %m. Four conditions make this right: the parts are disjoint, no op reads %m before the last part
// is written, the elements of %x are in %m before any op can compute in it, and no other op reads or overwrites %a.
// attn-copy-inserted, which runs before, ensures the last one. Chains in loops, chains whose parts overlap or have
// unknown places, and shorter chains stay as they are.
// Test: test/passes/bufferize/write-parts.mlir, test/run/slice-writes.test
//
//===----------------------------------------------------------------------===//

#include "passes/Memory.h"
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

/// Returns the next insertion of the chain: the only op that reads the result of `insert`, if it is in the same block and
/// inserts into this result. Otherwise returns null.
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
  if ((before && getNext(before) == insert) || !isa<func::FuncOp>(insert->getParentOp()))
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

/// Returns the buffer for the elements of the chain that begins with `first`, with the elements of its destination.
static Value createBuffer(tensor::InsertSliceOp first) {
  Value start = first.getDest();
  Operation *producer = start.getDefiningOp();
  auto view = dyn_cast_or_null<bufferization::ToTensorOp>(producer);
  if (view && view.getRestrict() && view.getWritable() && start.hasOneUse())
    return view.getBuffer();
  OpBuilder builder(first);
  if (producer)
    builder.setInsertionPointAfter(producer);
  else
    builder.setInsertionPointToStart(first->getBlock());
  auto type = MemRefType::get(first.getType().getShape(), first.getType().getElementType());
  Value buffer = memref::AllocOp::create(builder, first.getLoc(), type);
  auto empty = dyn_cast_or_null<bufferization::AllocTensorOp>(producer);
  if (!empty || empty.getCopy())
    materialize(builder, first.getLoc(), start, buffer);
  return buffer;
}

static void writeParts(ArrayRef<tensor::InsertSliceOp> chain) {
  tensor::InsertSliceOp last = chain.back();
  Value buffer = createBuffer(chain.front());
  OpBuilder builder(last);
  for (tensor::InsertSliceOp insert : chain) {
    builder.setInsertionPoint(insert);
    auto type = memref::SubViewOp::inferRankReducedResultType(
        insert.getSourceType().getShape(), cast<MemRefType>(buffer.getType()),
        insert.getMixedOffsets(), insert.getMixedSizes(), insert.getMixedStrides());
    Value part =
        memref::SubViewOp::create(builder, insert.getLoc(), type, buffer, insert.getMixedOffsets(),
                                  insert.getMixedSizes(), insert.getMixedStrides());
    materialize(builder, insert.getLoc(), insert.getSource(), part);
  }
  Value filled = bufferization::ToTensorOp::create(builder, last.getLoc(), last.getType(), buffer,
                                                   /*restrict=*/true, /*writable=*/true);
  last.getResult().replaceAllUsesWith(filled);
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
