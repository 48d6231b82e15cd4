//===- Bands.cpp - buffers that hold a number or a band of a matrix --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/Bands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/Endian.h"

using namespace llvm;
using namespace attn;
using namespace attn::graph;
using namespace attn::pt2;

/// The bits of element `i`, where a boolean is 0 or 1.
static uint64_t elementAt(const NamedTensor &values, int64_t i) {
  unsigned bits = values.elementType.getIntOrFloatBitWidth(), bytes = divideCeil(bits, 8);
  const char *data = values.bytes->getBufferStart() + i * bytes;
  uint64_t element = 0;
  for (unsigned byte = 0; byte < bytes; ++byte)
    element |= uint64_t(uint8_t(data[byte])) << (8 * byte);
  return bits == 1 ? element != 0 : element;
}

std::optional<Band> pt2::findNumber(const NamedTensor &values) {
  if (!all_of(values.shape, [](int64_t size) { return size == 1; }))
    return std::nullopt;
  Band band;
  band.inside = APInt(values.elementType.getIntOrFloatBitWidth(), elementAt(values, 0));
  band.outside = band.inside;
  return band;
}

std::optional<Band> pt2::findBand(const NamedTensor &values) {
  ArrayRef<int64_t> shape = values.shape;
  unsigned bits = values.elementType.getIntOrFloatBitWidth();
  if (shape.size() < 2 || !all_of(shape.drop_back(2), [](int64_t size) { return size == 1; }))
    return std::nullopt;
  int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows < 2 || columns < 2)
    return std::nullopt;
  auto at = [&](int64_t row, int64_t column) { return elementAt(values, row * columns + column); };

  // The corners at the top right and the bottom left have the value outside the band, unless the band reaches them.
  uint64_t above = at(0, columns - 1), below = at(rows - 1, 0), first = at(0, 0);
  Band band;
  uint64_t inside, outside;
  if (above != below) {
    // The matrix consists of two triangles. Either can be the band, because the other triangle is its complement: take
    // the triangle that contains the first element.
    bool isLower = first == below;
    std::tie(inside, outside) = isLower ? std::pair(below, above) : std::pair(above, below);
    int64_t count = 0;
    if (isLower) {
      while (at(0, count) == below)
        ++count;
      band.upper = count - 1;
    } else {
      while (at(count, 0) == above)
        ++count;
      band.lower = count - 1;
    }
  } else {
    std::tie(inside, outside) = std::pair(first, above);
    int64_t right = 0, down = 0;
    while (right < columns && at(0, right) == first)
      ++right;
    while (down < rows && at(down, 0) == first)
      ++down;
    band.upper = right - 1;
    band.lower = down - 1;
  }
  if (inside == outside)
    return std::nullopt;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      bool isInside = (!band.upper || column - row <= *band.upper) &&
                      (!band.lower || row - column <= *band.lower);
      if (at(row, column) != (isInside ? inside : outside))
        return std::nullopt;
    }
  band.inside = APInt(bits, inside);
  band.outside = APInt(bits, outside);
  return band;
}

Tensor pt2::createBand(TensorBuilder &b, const Band &band, ArrayRef<Size> sizes, DType dtype) {
  auto constant = [&](const APInt &bits) -> mlir::Value {
    mlir::Type type = elementType(dtype, b.getContext());
    if (auto floats = dyn_cast<mlir::FloatType>(type))
      return mlir::arith::ConstantOp::create(
          b, b.getFloatAttr(type, APFloat(floats.getFloatSemantics(), bits)));
    return mlir::arith::ConstantOp::create(b, b.getIntegerAttr(type, bits));
  };
  mlir::Value inside = constant(band.inside), outside = constant(band.outside);
  if (!band.lower && !band.upper)
    return b.fill(Sizes(sizes), inside, dtype);
  int64_t rank = sizes.size();
  return b.elementwise(sizes, dtype, {}, [&](mlir::ValueRange) -> mlir::Value {
    mlir::Value row = mlir::linalg::IndexOp::create(b, rank - 2),
                column = mlir::linalg::IndexOp::create(b, rank - 1);
    mlir::Value element = inside;
    // Keep the elements for which left <= right + distance.
    auto keep = [&](mlir::Value left, mlir::Value right, std::optional<int64_t> distance) {
      if (!distance)
        return;
      mlir::Value most =
          mlir::arith::AddIOp::create(b, right, mlir::arith::ConstantIndexOp::create(b, *distance));
      mlir::Value isKept =
          mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::sle, left, most);
      element = mlir::arith::SelectOp::create(b, isKept, element, outside);
    };
    keep(column, row, band.upper);
    keep(row, column, band.lower);
    return b.convert(element, dtype, computeType(dtype));
  });
}
