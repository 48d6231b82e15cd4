//===- ValueSizes.cpp - numbers and sizes in a function --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/checks/ValueSizes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

/// Element `i` of a tensor of integers that ops state one by one; null if they do not.
static OpFoldResult elementOf(Value tensor, int64_t i) {
  if (auto elements = tensor.getDefiningOp<tensor::FromElementsOp>())
    return elements.getElements()[i];
  DenseIntElementsAttr constant;
  if (matchPattern(tensor, m_Constant(&constant)))
    return IntegerAttr::get(constant.getElementType(), constant.getValues<APInt>()[i]);
  return nullptr;
}

std::optional<Size> ValueSizes::sizeOf(Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return Size(type.getDimSize(dim));
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return unstatedSizeOf(tensor, dim);
  return llvm::TypeSwitch<Operation *, std::optional<Size>>(op)
      .Case([&](tensor::EmptyOp empty) { return statedSizeOf(empty.getMixedSizes()[dim]); })
      .Case([&](tensor::CastOp cast) {
        return isa<RankedTensorType>(cast.getSource().getType()) ? sizeOf(cast.getSource(), dim)
                                                                 : unstatedSizeOf(tensor, dim);
      })
      .Case([&](tensor::ExpandShapeOp expand) {
        return statedSizeOf(expand.getMixedOutputShape()[dim]);
      })
      .Case([&](tensor::CollapseShapeOp collapse) {
        return countOf(collapse.getSrc(), collapse.getReassociationIndices()[dim]);
      })
      .Case([&](tensor::ReshapeOp reshape) {
        OpFoldResult size = elementOf(reshape.getShape(), dim);
        return size ? statedSizeOf(size) : unstatedSizeOf(tensor, dim);
      })
      .Case([&](tensor::ExtractSliceOp slice) {
        llvm::SmallBitVector dropped = slice.getDroppedDims();
        int64_t kept = -1, axis = -1;
        while (kept < dim)
          kept += !dropped.test(++axis);
        return statedSizeOf(slice.getMixedSizes()[axis]);
      })
      .Case([&](tensor::ConcatOp concat) {
        if (dim != int64_t(concat.getDim()))
          return sizeOf(concat.getInputs().front(), dim);
        std::optional<Size> sum = Size(0);
        for (Value input : concat.getInputs())
          if (std::optional<Size> size = sizeOf(input, dim); sum)
            sum = size ? add(*sum, *size) : std::nullopt;
        return sum;
      })
      .Case([&](tensor::PadOp pad) -> std::optional<Size> {
        std::optional<Size> size = sizeOf(pad.getSource(), dim),
                            low = statedSizeOf(pad.getMixedLowPad()[dim]),
                            high = statedSizeOf(pad.getMixedHighPad()[dim]);
        std::optional<Size> sum = size && low ? add(*size, *low) : std::nullopt;
        return sum && high ? add(*sum, *high) : std::nullopt;
      })
      .Case<tensor::SplatOp, tensor::GenerateOp>([&](auto op) {
        int64_t numBefore = llvm::count_if(llvm::seq(dim), [&](int64_t i) { return type.isDynamicDim(i); });
        return statedSizeOf(OpFoldResult(op->getOperand(op->getNumOperands() - type.getNumDynamicDims() + numBefore)));
      })
      .Case([&](tensor::BitcastOp cast) { return sizeOf(cast.getSource(), dim); })
      .Case([&](DestinationStyleOpInterface op) {
        return sizeOf(op.getTiedOpOperand(cast<OpResult>(tensor))->get(), dim);
      })
      .Default([&](Operation *) { return unstatedSizeOf(tensor, dim); });
}

std::optional<Size> ValueSizes::countOf(Value tensor, ArrayRef<int64_t> dims) {
  std::optional<Size> count = Size(1);
  for (int64_t dim : dims)
    if (std::optional<Size> size = sizeOf(tensor, dim); count)
      count = size ? multiply(*count, *size) : std::nullopt;
  return count;
}
