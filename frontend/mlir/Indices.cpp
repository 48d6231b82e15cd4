//===- Indices.cpp - indices that stay within their tensors ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Test: test/frontend/mlir/indices.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/mlir/Indices.h"
#include "dialect/Attn.h"
#include "frontend/checks/ElementRanges.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

bool attn::varies(Value index) {
  llvm::SetVector<Value> values;
  values.insert(index);
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (!op || isa<tensor::ExtractOp, linalg::IndexOp>(op))
      return true;
    if (!isa<tensor::DimOp>(op))
      values.insert_range(op->getOperands());
  }
  return false;
}

/// Whether `index` is proved to lie in [0, size).
static bool isInside(FunctionSizes &sizes, Value index, const Size &size) {
  if (!FunctionSizes::isKnown(size))
    return false;
  ElementRange range = rangeOf(sizes, index);
  std::optional<Size> last = range.isKnown() ? subtract(size, *range.most) : std::nullopt;
  last = last ? subtract(*last, Size(1)) : last;
  if (!last || sizes.facts.isAtMost(Size(0), *range.least) != true)
    return false;
  if (!range.argument)
    return sizes.facts.isAtMost(Size(0), *last) == true;
  unsigned number = range.argument.getArgNumber();
  auto bound = sizes.function.getArgAttrOfType<IntegerAttr>(number, AttnDialect::kBoundAttr);
  return bound && !sizes.function.getArgAttr(number, AttnDialect::kBelowAttr) &&
         size.constant().value_or(kMostRows + 1) <= kMostRows &&
         sizes.facts.isAtMost(Size(bound.getInt()), *last) == true;
}

/// Ensures that dimension `axis` of `tensor` has an element in every call.
static LogicalResult requireElement(Operation *op, FunctionSizes &sizes, Value tensor,
                                    int64_t axis) {
  Size size = sizes.reduced(sizes.namedSizeOf(tensor, axis));
  if (FunctionSizes::isKnown(size) && sizes.requireAtMost(Size(1), size))
    return success();
  return op->emitError() << "expected a tensor with an element along dimension " << axis
                         << ", because an index into it is known only at the call, got "
                         << tensor.getType();
}

static Value clamp(OpBuilder &b, Location loc, Value index, Value last) {
  return arith::MaxSIOp::create(b, loc, arith::MinSIOp::create(b, loc, index, last),
                                arith::ConstantIndexOp::create(b, loc, 0));
}

/// Clamps the `indices` of an element of `tensor`.
static LogicalResult clampElement(Operation *op, FunctionSizes &sizes, Value tensor,
                                  MutableOperandRange indices) {
  OpBuilder b(op);
  for (auto [axis, index] : llvm::enumerate(indices)) {
    if (isInside(sizes, index.get(), sizes.reduced(sizes.namedSizeOf(tensor, axis))))
      continue;
    if (failed(requireElement(op, sizes, tensor, axis)))
      return failure();
    // The size does not change from iteration to iteration.
    Operation *place = op;
    for (auto loops = op->getParentOfType<linalg::LinalgOp>();
         loops && !loops->isAncestor(tensor.getParentBlock()->getParentOp());
         loops = loops->getParentOfType<linalg::LinalgOp>())
      place = loops;
    OpBuilder outside(place);
    Value size = outside.createOrFold<tensor::DimOp>(op->getLoc(), tensor, axis);
    Value one = arith::ConstantIndexOp::create(outside, op->getLoc(), 1);
    Value last = outside.createOrFold<arith::SubIOp>(op->getLoc(), size, one);
    index.set(clamp(b, op->getLoc(), index.get(), last));
  }
  return success();
}

/// Clamps the offsets of a slice of `tensor`. The slice fits into the tensor (requireSizes()), and its strides are constants
/// of at least 1.
static void clampOffsets(OffsetSizeAndStrideOpInterface op, FunctionSizes &sizes, Value tensor,
                         MutableOperandRange offsets) {
  // If the offsets of a tensor.extract_slice do not vary, requireSizes() ensures that they are in bounds.
  bool isRead = isa<tensor::ExtractSliceOp>(*op);
  OpBuilder b(op);
  if (isa<tensor::ParallelInsertSliceOp>(*op))
    b.setInsertionPoint(op->getParentOp());
  Location loc = op.getLoc();
  unsigned next = 0;
  for (int64_t axis = 0; axis < int64_t(op.getStaticOffsets().size()); ++axis) {
    if (!op.isDynamicOffset(axis))
      continue;
    OpOperand &offset = offsets[next++];
    if (isRead && !varies(offset.get()))
      continue;
    // The greatest valid offset is size - 1 - (count - 1) * stride.
    AffineExpr size, count, stride;
    bindSymbols(op.getContext(), size, count, stride);
    OpFoldResult last = affine::makeComposedFoldedAffineApply(
        b, loc, size - 1 - (count - 1) * stride,
        {tensor::getMixedSize(b, loc, tensor, axis), op.getMixedSizes()[axis],
         op.getMixedStrides()[axis]});
    std::optional<Size> span = subtract(sizes.namedNumberOf(op.getMixedSizes()[axis]), Size(1));
    span = span ? multiply(*span, sizes.namedNumberOf(op.getMixedStrides()[axis])) : span;
    std::optional<Size> offsetsInside =
        span ? subtract(sizes.namedSizeOf(tensor, axis), *span) : std::nullopt;
    if (offsetsInside && isInside(sizes, offset.get(), sizes.reduced(*offsetsInside)))
      continue;
    offset.set(clamp(b, loc, offset.get(), getValueOrCreateConstantIndexOp(b, loc, last)));
  }
}

LogicalResult attn::clampIndices(FunctionSizes &sizes) {
  WalkResult walk = sizes.function.walk([&](Operation *op) -> WalkResult {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      return clampElement(op, sizes, extract.getTensor(), extract.getIndicesMutable());
    if (auto insert = dyn_cast<tensor::InsertOp>(op))
      return clampElement(op, sizes, insert.getDest(), insert.getIndicesMutable());
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      clampOffsets(slice, sizes, slice.getSource(), slice.getOffsetsMutable());
    else if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
      clampOffsets(slice, sizes, slice.getDest(), slice.getOffsetsMutable());
    else if (auto slice = dyn_cast<tensor::ParallelInsertSliceOp>(op))
      clampOffsets(slice, sizes, slice.getDest(), slice.getOffsetsMutable());
    return WalkResult::advance();
  });
  sizes.setRanges();
  return failure(walk.wasInterrupted());
}
