//===- MatrixMultiply.cpp - multiply matrices with one warp ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/MatrixMultiply.h"
#include "codegen/gpu/TileCopies.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

std::optional<MatrixMultiply> MatrixMultiply::get(Type element) {
  if (element.isF16() || element.isBF16() || element.isF32())
    return MatrixMultiply(element);
  return std::nullopt;
}

/// Converts `value`, the elements of one register, to the type of the operands of mma.sync.
Value MatrixMultiply::toRegister(ThreadBuilder &b, Value value) const {
  if (element.isF16())
    return value;
  return LLVM::BitcastOp::create(b, b.getI32Type(), value);
}

/// Loads four matrices with 8 rows of 16 bytes each. (`row`, `column`) of lane l is the beginning of row l mod 8 of
/// matrix l / 8. The first two matrices make one factor, and the last two make another.
std::array<Factor, 2> MatrixMultiply::loadMatrices(ThreadBuilder &b, Value tile, Value row,
                                                   Value column, bool transposes) const {
  int64_t inRegister = 32 / element.getIntOrFloatBitWidth();
  SmallVector<Value> at = {row, column};
  if (isSwizzled(tile)) {
    int64_t rows = cast<MemRefType>(tile.getType()).getDimSize(0);
    at = {createSwizzledPlace(b, rows, row, column)};
    tile = memref::CollapseShapeOp::create(b, tile, ArrayRef<ReassociationIndices>{{0, 1}});
  }
  Value matrices = nvgpu::LdMatrixOp::create(b, VectorType::get({4, inRegister}, element), tile, at,
                                             transposes, 4);
  std::array<Factor, 2> factors;
  for (int64_t i = 0; i < 4; ++i) {
    Value elements =
        inRegister == 1
            ? vector::ExtractOp::create(b, matrices, ArrayRef<int64_t>{i, 0}).getResult()
            : vector::ExtractOp::create(b, matrices, i).getResult();
    factors[i / 2].push_back(toRegister(b, elements));
  }
  return factors;
}

Factor MatrixMultiply::loadLeft(ThreadBuilder &b, Value tile, Value row, int64_t column) const {
  Value lane = b.lane();
  auto [first, second] =
      loadMatrices(b, tile, b.add(row, b.remainder(lane, 16)),
                   b.add(b.multiply(b.divide(lane, 16), chunk()), column), /*transposes=*/false);
  first.append(second);
  return first;
}

std::array<Factor, 2> MatrixMultiply::loadRight(ThreadBuilder &b, Value tile, Value row,
                                                int64_t column) const {
  Value lane = b.lane();
  Value inTile = b.add(b.remainder(lane, 8), b.multiply(b.divide(lane, 16), 8));
  Value half = b.remainder(b.divide(lane, 8), 2);
  return loadMatrices(b, tile, b.add(inTile, row), b.add(b.multiply(half, chunk()), column),
                      /*transposes=*/false);
}

std::array<Factor, 2> MatrixMultiply::loadRightRows(ThreadBuilder &b, Value tile, Value row,
                                                    Value column, bool isBesideLoaded) const {
  Value lane = b.lane();
  if (isSwizzled(tile)) // see createOpaque(): addresses do not differ by constants
    lane = arith::IndexCastOp::create(b, b.getIndexType(), createOpaque(b, b.toI32(lane)));
  if (!element.isF32())
    return loadMatrices(b, tile, b.add(b.remainder(lane, 16), row),
                        b.add(b.multiply(b.divide(lane, 16), chunk()), column),
                        /*transposes=*/true);
  // ldmatrix transposes 16-bit elements only. Elements t and t + 4 of the depth are the rows t and t + 4 of the tile
  // or, if toLeft() permuted the columns of the left factor, the rows 2t and 2t + 1.
  std::array<Factor, 2> factors;
  int64_t first = isBesideLoaded ? 1 : 2, second = isBesideLoaded ? 4 : 1;
  Value inRows = b.add(b.multiply(b.remainder(lane, 4), first), row),
        inColumns = b.add(b.divide(lane, 4), column);
  for (int64_t half : {0, 1})
    for (int64_t i : {0, 1}) {
      Value value = memref::LoadOp::create(
          b, tile, ValueRange{b.add(inRows, i * second), b.add(inColumns, half * kMatrixColumns)});
      factors[half].push_back(toRegister(b, value));
    }
  return factors;
}

SmallVector<Factor> MatrixMultiply::toLeft(ThreadBuilder &b,
                                           ArrayRef<Accumulator> accumulators) const {
  SmallVector<Factor> factors;
  if (element.isF32()) {
    for (const Accumulator &sums : accumulators) {
      factors.emplace_back();
      for (int64_t i : {0, 2, 1, 3})
        factors.back().push_back(toRegister(b, sums[i]));
    }
    return factors;
  }
  for (size_t i = 0; i < accumulators.size(); i += 2) {
    factors.emplace_back();
    for (const Accumulator &sums : accumulators.slice(i, 2))
      for (int64_t row : {0, 2}) {
        // The first operand becomes the upper half. This is not an fptrunc, because LLVM would move an fptrunc into
        // later blocks, and the f32 operands would occupy registers until then.
        Value pair = LLVM::CallIntrinsicOp::create(b, VectorType::get(2, element),
                                                   b.getStringAttr(element.isBF16()
                                                                       ? "llvm.nvvm.ff2bf16x2.rn"
                                                                       : "llvm.nvvm.ff2f16x2.rn"),
                                                   ValueRange{sums[row + 1], sums[row]})
                         .getResult(0);
        factors.back().push_back(toRegister(b, pair));
      }
  }
  return factors;
}

/// Adds the product of `left` and `right`, which one instruction computes, to `sums`.
static void multiplyOnce(ThreadBuilder &b, Type element, ValueRange left, ValueRange right,
                         Accumulator &sums) {
  auto f32 = b.getF32Type();
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  std::optional<std::array<NVVM::MMATypes, 2>> types;
  if (element.isBF16())
    types = {NVVM::MMATypes::bf16, NVVM::MMATypes::bf16};
  else if (element.isF32())
    types = {NVVM::MMATypes::tf32, NVVM::MMATypes::tf32};
  int64_t depth = element.isF32() ? 8 : 16;
  Value result = NVVM::MmaOp::create(
      b, type, left, right, ValueRange(ArrayRef<Value>(sums)),
      ArrayRef<int64_t>{kMatrixRows, kMatrixColumns, depth}, std::nullopt, std::nullopt, types,
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [i, sum] : llvm::enumerate(sums))
    sum = LLVM::ExtractValueOp::create(b, result, i);
}

namespace {
/// The numbers of an f32 factor, each as the sum of a number of tf32 in `great` and a number in `rest`. Instructions
/// use only the bits of `rest` that tf32 has. `finite` is `great` with 0 in place of infinities and NaN, because the
/// product of an infinity and a rest of 0 would be NaN.
struct Split {
  Factor great, finite, rest;

  Split(ThreadBuilder &b, const Factor &factor) {
    Value exponent = b.i32(0x7f800000);
    for (Value bits : factor) {
      Value whole = LLVM::BitcastOp::create(b, b.getF32Type(), bits);
      Value first = arith::AndIOp::create(b, bits, b.i32(int32_t(0xffffe000)));
      Value isFinite = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                             arith::AndIOp::create(b, bits, exponent), exponent);
      // Replace each NaN, because the first bits of some NaNs are those of an infinity.
      Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, whole, whole);
      great.push_back(arith::SelectOp::create(b, isNaN, b.i32(0x7fffffff), first));
      finite.push_back(arith::SelectOp::create(b, isFinite, first, b.i32(0)));
      Value part = LLVM::BitcastOp::create(b, b.getF32Type(), finite.back());
      Value difference = arith::SubFOp::create(b, whole, part);
      rest.push_back(arith::SelectOp::create(
          b, isFinite, LLVM::BitcastOp::create(b, b.getI32Type(), difference), b.i32(0)));
    }
  }
};
} // namespace

void MatrixMultiply::multiply(ThreadBuilder &b, const Factor &left, const Factor &right,
                              Accumulator &sums) const {
  if (!element.isF32())
    return multiplyOnce(b, element, left, right, sums);
  Split l(b, left), r(b, right);
  multiplyOnce(b, element, l.rest, r.finite, sums);
  multiplyOnce(b, element, l.finite, r.rest, sums);
  multiplyOnce(b, element, l.great, r.great, sums);
}
