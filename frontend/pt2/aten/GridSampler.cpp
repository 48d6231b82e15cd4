//===- GridSampler.cpp - elements of an image at the positions of a grid ---===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// grid_sampler reads an image (n, c, h, w) at positions (n, y, x, 2) with coordinates (column, row) between -1 and 1.
// With `align_corners`, -1 and 1 are the centres of the first and the last element of a dimension; otherwise they are
// its outer edges. Between elements, the result is the nearest one or the bilinear interpolation of four. Where no element is, it
// is 0 or, with the padding 'border', the nearest element.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"
#include "frontend/pt2/Call.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn::graph;
using namespace attn::pt2;

// The numbers of the modes in the arguments.
static constexpr int64_t kBilinear = 0, kNearest = 1, kZeros = 0, kBorder = 1;

namespace {
/// A coordinate of a position, in elements of a dimension, and the greatest coordinate of an element.
struct Coordinate {
  Value position, last;
};

/// An element along a dimension: its index, whether it exists, and its weight in the interpolation.
struct Tap {
  Value index, exists, weight;
};
} // namespace

static Value constantOf(TensorBuilder &b, Type type, double number) {
  return arith::ConstantOp::create(b, b.getFloatAttr(type, number));
}

/// `number`, a coordinate from -1 to 1, in elements of a dimension of `size`.
static Coordinate toElements(TensorBuilder &b, Value number, const Size &size, bool alignsCorners,
                             bool isBorder) {
  Type type = number.getType();
  Value count = arith::IndexCastOp::create(b, b.getI64Type(), b.indexOf(size));
  count = arith::SIToFPOp::create(b, type, count);
  Value one = constantOf(b, type, 1), half = constantOf(b, type, 0.5);
  Value last = arith::SubFOp::create(b, count, one);
  Value position = arith::AddFOp::create(b, number, one);
  if (alignsCorners) {
    position = arith::MulFOp::create(b, arith::MulFOp::create(b, position, half), last);
  } else {
    position = arith::SubFOp::create(b, arith::MulFOp::create(b, position, count), one);
    position = arith::MulFOp::create(b, position, half);
  }
  if (isBorder) {
    Value zero = constantOf(b, type, 0);
    position = arith::MinNumFOp::create(b, arith::MaxNumFOp::create(b, position, zero), last);
  }
  return {position, last};
}

/// The element at `position`, which is an integer.
static Tap tapAt(TensorBuilder &b, Value position, Value last, Value weight) {
  Type type = position.getType();
  Value zero = constantOf(b, type, 0);
  // Where the position is NaN, no element exists, and the index is 0.
  Value exists =
      arith::AndIOp::create(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, position, zero),
                            arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, position, last));
  Value inside = arith::MinNumFOp::create(b, arith::MaxNumFOp::create(b, position, zero), last);
  Value index = arith::FPToSIOp::create(b, b.getI64Type(), inside);
  return {arith::IndexCastOp::create(b, b.getIndexType(), index), exists, weight};
}

static SmallVector<Tap> tapsOf(TensorBuilder &b, const Coordinate &at, int64_t mode) {
  Value one = constantOf(b, at.position.getType(), 1);
  if (mode == kNearest)
    return {tapAt(b, math::RoundEvenOp::create(b, at.position), at.last, one)};
  Value floor = math::FloorOp::create(b, at.position);
  Value next = arith::AddFOp::create(b, floor, one);
  return {tapAt(b, floor, at.last, arith::SubFOp::create(b, next, at.position)),
          tapAt(b, next, at.last, arith::SubFOp::create(b, at.position, floor))};
}

static LogicalResult gridSampler(Call &call) {
  Tensor image = call.tensor("input"), grid = call.tensor("grid");
  int64_t mode = call.constant("interpolation_mode"), padding = call.constant("padding_mode");
  bool alignsCorners = call.flag("align_corners");
  if (call.failed())
    return failure();
  if (image.rank() != 4 || grid.rank() != 4 || grid.sizes[3] != Size(2) ||
      image.sizes[0] != grid.sizes[0] || image.dtype != grid.dtype || !isFloat(image.dtype))
    return call.error()
           << "expected an image (n, c, h, w) and a grid (n, y, x, 2) of one float type, got "
           << str(image.dtype) << str(image.sizes) << " and " << str(grid.dtype) << str(grid.sizes);
  if ((mode != kBilinear && mode != kNearest) || (padding != kZeros && padding != kBorder))
    return call.error() << "expected the mode 'bilinear' or 'nearest' and the padding 'zeros' or "
                           "'border', got mode "
                        << mode << " and padding " << padding;
  for (int64_t dim : {2, 3})
    call.requireElement(image.sizes[dim], 0);
  if (call.failed())
    return failure();
  TensorBuilder &b = call.b;
  DType as = computeType(image.dtype);
  Sizes sizes = {image.sizes[0], image.sizes[1], grid.sizes[1], grid.sizes[2]};
  auto read = [&](ArrayRef<int64_t> dims, int64_t coordinate) {
    Tensor part = b.select(grid, 3, coordinate);
    SmallVector<AffineExpr> exprs;
    for (int64_t dim : dims)
      exprs.push_back(b.getAffineDimExpr(dim));
    return Operand{part, as, AffineMap::get(4, 0, exprs, b.getContext())};
  };
  Tensor result = b.elementwise(
      sizes, image.dtype, {read({0, 2, 3}, 0), read({0, 2, 3}, 1)}, [&](ValueRange e) -> Value {
        bool isBorder = padding == kBorder;
        auto tapsAlong = [&](Value number, const Size &size) {
          return tapsOf(b, toElements(b, number, size, alignsCorners, isBorder), mode);
        };
        Value n = linalg::IndexOp::create(b, 0), c = linalg::IndexOp::create(b, 1);
        Type type = e[0].getType();
        Value zero = constantOf(b, type, 0), sum = zero;
        SmallVector<Tap> columns = tapsAlong(e[0], image.sizes[3]);
        for (const Tap &row : tapsAlong(e[1], image.sizes[2]))
          for (const Tap &column : columns) {
            Value element = tensor::ExtractOp::create(b, image.value,
                                                      ValueRange{n, c, row.index, column.index});
            Value weight = arith::MulFOp::create(b, row.weight, column.weight);
            Value exists = arith::AndIOp::create(b, row.exists, column.exists);
            // The weight is NaN if a coordinate is NaN or infinite. As in torch, the result is then NaN.
            element = arith::SelectOp::create(b, exists, b.convert(element, image.dtype, as), zero);
            sum = arith::AddFOp::create(b, sum, arith::MulFOp::create(b, element, weight));
          }
        return sum;
      });
  return call.result(result);
}

void attn::pt2::addGridSampler(AtenOps &ops) {
  StringRef limits = "images of three dimensions; mode 'bicubic'; padding 'reflection'";
  ops.add("grid_sampler.default", gridSampler, limits);
  ops.add("grid_sampler_2d.default", gridSampler, limits);
}
