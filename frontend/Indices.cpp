//===- Indices.cpp - indices that stay within their tensors ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Test: test/frontend/mlir/indices.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/Indices.h"
#include "dialect/Attn.h"
#include "dialect/Symbols.h"
#include "frontend/Intervals.h"

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

/// Whether `index` is the index of a loop over a dimension that has the same size as dimension `axis` of `tensor`.
static bool coversDimension(Value index, func::FuncOp function, Value tensor, int64_t axis) {
  StringAttr size = symbolOf(function, tensor, axis);
  if (!size)
    return false;
  if (auto loop = scf::getForInductionVarOwner(index)) {
    auto end = loop.getUpperBound().getDefiningOp<tensor::DimOp>();
    return countsUp(loop) && end && end.getConstantIndex() &&
           getConstantIntValue(loop.getLowerBound()) == 0 &&
           symbolOf(function, end.getSource(), *end.getConstantIndex()) == size;
  }
  auto number = index.getDefiningOp<linalg::IndexOp>();
  if (!number)
    return false;
  auto op = cast<linalg::LinalgOp>(number->getParentOp());
  return llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
    std::optional<unsigned> position = op.getMatchingIndexingMap(&operand).getResultPosition(
        getAffineDimExpr(number.getDim(), number.getContext()));
    return position && symbolOf(function, operand.get(), *position) == size;
  });
}

/// Whether `index` is max(min(i, size - 1), 0) or min(max(i, 0), size - 1).
static bool isClamped(Value index, int64_t size) {
  auto min = index.getDefiningOp<arith::MinSIOp>();
  auto max = index.getDefiningOp<arith::MaxSIOp>();
  if (max)
    min = max.getLhs().getDefiningOp<arith::MinSIOp>();
  else if (min)
    max = min.getLhs().getDefiningOp<arith::MaxSIOp>();
  return min && max && size >= 1 && getConstantIntValue(max.getRhs()) == 0 &&
         getConstantIntValue(min.getRhs()) == size - 1;
}

/// Whether `index` is proved to be a position in dimension `axis` of `tensor`.
static bool isInside(func::FuncOp function, Value index, Value tensor, int64_t axis) {
  int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(axis);
  if (coversDimension(index, function, tensor, axis))
    return true;
  std::optional<Interval> interval = intervalOf(index);
  if (!interval || interval->least < 0 || ShapedType::isDynamic(size))
    return isClamped(index, size);
  if (!interval->argument)
    return interval->most < size;
  unsigned number = interval->argument.getArgNumber();
  auto bound = function.getArgAttrOfType<IntegerAttr>(number, AttnDialect::kBoundAttr);
  return bound && !function.getArgAttr(number, AttnDialect::kBelowAttr) && size <= kMostRows &&
         bound.getInt() < size - interval->most;
}

/// Ensures that dimension `axis` of `tensor` has an element in every call, if its size is a number or a symbol: raises
/// the minimum of the symbol, or fails.
static LogicalResult requireElement(Operation *op, func::FuncOp function, Value tensor,
                                    int64_t axis) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getDimSize(axis) == 0)
    return op->emitError() << "expected a tensor with an element along dimension " << axis
                           << ", because an index into it is known only at the call, got " << type;
  StringAttr name = symbolOf(function, tensor, axis);
  if (!name)
    return success();
  SmallVector<Attribute> symbols;
  for (SymbolAttr symbol :
       function->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr).getAsRange<SymbolAttr>()) {
    if (symbol.getName() == name.getValue() && symbol.getMin() == 0) {
      if (symbol.getMax() == 0)
        return op->emitError() << "expected a size of " << name << " of at least 1, got 0";
      symbol = SymbolAttr::get(op->getContext(), symbol.getName(), 1, symbol.getMax());
    }
    symbols.push_back(symbol);
  }
  function->setAttr(AttnDialect::kSymbolsAttr, ArrayAttr::get(op->getContext(), symbols));
  return success();
}

static Value clamp(OpBuilder &b, Location loc, Value index, Value last) {
  return arith::MaxSIOp::create(b, loc, arith::MinSIOp::create(b, loc, index, last),
                                arith::ConstantIndexOp::create(b, loc, 0));
}

/// Clamps the `indices` of an element of `tensor`.
static LogicalResult clampElement(Operation *op, func::FuncOp function, Value tensor,
                                  MutableOperandRange indices) {
  OpBuilder b(op);
  for (auto [axis, index] : llvm::enumerate(indices)) {
    if (isInside(function, index.get(), tensor, axis))
      continue;
    if (failed(requireElement(op, function, tensor, axis)))
      return failure();
    Value size = b.createOrFold<tensor::DimOp>(op->getLoc(), tensor, axis);
    Value one = arith::ConstantIndexOp::create(b, op->getLoc(), 1);
    index.set(clamp(b, op->getLoc(), index.get(),
                    b.createOrFold<arith::SubIOp>(op->getLoc(), size, one)));
  }
  return success();
}

/// Clamps the offsets of a slice of `tensor`. The slice fits into the tensor (tieSizes()), and its strides are constants
/// of at least 1.
static void clampOffsets(OffsetSizeAndStrideOpInterface op, func::FuncOp function, Value tensor,
                         MutableOperandRange offsets) {
  // If the offsets of a tensor.extract_slice do not vary, tieSizes() ensures that they are in bounds.
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
    std::optional<int64_t> most = getConstantIntValue(last);
    std::optional<Interval> interval = intervalOf(offset.get());
    bool isSingle = getConstantIntValue(op.getMixedSizes()[axis]) == 1;
    if ((isSingle && coversDimension(offset.get(), function, tensor, axis)) ||
        (most && isClamped(offset.get(), *most + 1)) ||
        (most && interval && !interval->argument && interval->least >= 0 &&
         interval->most <= *most))
      continue;
    offset.set(clamp(b, loc, offset.get(), getValueOrCreateConstantIndexOp(b, loc, last)));
  }
}

LogicalResult attn::clampIndices(func::FuncOp function) {
  WalkResult walk = function.walk([&](Operation *op) -> WalkResult {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      return clampElement(op, function, extract.getTensor(), extract.getIndicesMutable());
    if (auto insert = dyn_cast<tensor::InsertOp>(op))
      return clampElement(op, function, insert.getDest(), insert.getIndicesMutable());
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      clampOffsets(slice, function, slice.getSource(), slice.getOffsetsMutable());
    else if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
      clampOffsets(slice, function, slice.getDest(), slice.getOffsetsMutable());
    else if (auto slice = dyn_cast<tensor::ParallelInsertSliceOp>(op))
      clampOffsets(slice, function, slice.getDest(), slice.getOffsetsMutable());
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
