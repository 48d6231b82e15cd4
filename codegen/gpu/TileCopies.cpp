//===- TileCopies.cpp - copies of tiles to shared memory -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/TileCopies.h"
#include "codegen/gpu/WarpgroupMultiply.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;

bool attn::hasAlignedRows(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (type.getMemorySpace()) // asynchronous copies read global memory only
    return false;
  int64_t chunk = 128 / type.getElementTypeBitWidth();
  if (auto subview = buffer.getDefiningOp<memref::SubViewOp>()) {
    return isMultiple(subview.getMixedOffsets().back(), chunk) &&
           !subview.getDroppedDims().test(subview.getSourceType().getRank() - 1) &&
           getConstantIntValue(subview.getMixedStrides().back()) == 1 &&
           hasAlignedRows(subview.getSource());
  }
  return type.getLayout().isIdentity() && type.getRank() > 0 &&
         !type.isDynamicDim(type.getRank() - 1) && type.getShape().back() % chunk == 0;
}

Value SharedTile::allocate(ThreadBuilder &b, int64_t stages) const {
  auto type = MemRefType::get({stages, rows, pitch()}, element, MemRefLayoutAttrInterface(),
                              sharedSpace(b.getContext()));
  auto buffer = memref::AllocaOp::create(b, type, b.getI64IntegerAttr(isSwizzled ? 1024 : 16));
  if (isSwizzled)
    buffer->setAttr(AttnDialect::kSwizzledAttr, b.getUnitAttr());
  return buffer;
}

Value attn::createSwizzledPlace(ThreadBuilder &b, int64_t rows, Value row, Value column) {
  Value unit = b.divide(b.remainder(column, kSwizzledColumns), 8);
  unit = b.createOrFold<arith::XOrIOp>(unit, b.remainder(row, 8));
  Value inRow = b.add(b.multiply(unit, 8), b.remainder(column, 8));
  Value block = b.multiply(b.divide(column, kSwizzledColumns), rows);
  return b.add(b.multiply(b.add(block, row), kSwizzledColumns), inRow);
}

bool attn::isSwizzled(Value tile) {
  while (auto view = tile.getDefiningOp<memref::SubViewOp>())
    tile = view.getSource();
  Operation *buffer = tile.getDefiningOp();
  return buffer && buffer->hasAttr(AttnDialect::kSwizzledAttr);
}

namespace {
/// Gives access to the elements of several tiles by stage (the number of the tile), row and column.
struct TileElements {
  TileElements(ThreadBuilder &b, const SharedTile &tile, Value tiles) : tile(tile), memory(tiles) {
    if (tile.isSwizzled)
      memory =
          memref::CollapseShapeOp::create(b, tiles, ArrayRef<ReassociationIndices>{{0}, {1, 2}});
  }
  SmallVector<Value> at(ThreadBuilder &b, Value stage, Value row, Value column) const {
    if (!tile.isSwizzled)
      return {stage, row, column};
    return {stage, createSwizzledPlace(b, tile.rows, row, column)};
  }

  const SharedTile &tile;
  Value memory;
};
} // namespace

Value SharedTile::view(ThreadBuilder &b, Value tiles, Value stage, OpFoldResult rows) const {
  SmallVector<OpFoldResult> offsets = {stage, b.getIndexAttr(0), b.getIndexAttr(0)},
                            sizes = {b.getIndexAttr(1), rows, b.getIndexAttr(columns)},
                            strides(3, b.getIndexAttr(1));
  int64_t staticRows = getConstantIntValue(rows).value_or(ShapedType::kDynamic);
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(
      {staticRows, columns}, cast<MemRefType>(tiles.getType()), offsets, sizes, strides);
  return memref::SubViewOp::create(b, type, tiles, offsets, sizes, strides);
}

void attn::forEachOfThread(ThreadBuilder &b, int64_t count, int64_t threads, bool unrolls,
                           function_ref<void(Value)> body) {
  Value thread = b.thread();
  auto guarded = [&](Value number, bool isLast) {
    if (!isLast || count % threads == 0)
      return body(number);
    auto isWork = scf::IfOp::create(b, b.isLess(number, b.constant(count)));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(isWork.thenBlock());
    body(number);
  };
  if (unrolls) {
    for (int64_t first = 0; first < count; first += threads)
      guarded(b.add(thread, first), first + threads > count);
    return;
  }
  auto loop = scf::ForOp::create(b, thread, b.constant(count), b.constant(threads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void SharedTile::clearPadding(ThreadBuilder &b, Value tiles, int64_t stages,
                              int64_t threads) const {
  int64_t padding = paddedColumns() - columns;
  if (padding == 0)
    return;
  Value zero = arith::ConstantOp::create(b, b.getFloatAttr(element, 0));
  TileElements elements(b, *this, tiles);
  forEachOfThread(b, stages * rows * padding, threads, /*unrolls=*/false, [&](Value number) {
    Value row = b.divide(number, padding), column = b.add(b.remainder(number, padding), columns);
    memref::StoreOp::create(b, zero, elements.memory,
                            elements.at(b, b.divide(row, rows), b.remainder(row, rows), column));
  });
}

void SharedTile::copy(ThreadBuilder &b, Value source, Value validRows, Value validColumns,
                      bool isAligned, Value tiles, Value stage, int64_t threads) const {
  TileElements elements(b, *this, tiles);
  auto isValid = [&](Value row, Value column) -> Value {
    Value valid = b.isLess(row, validRows);
    return validColumns
               ? arith::AndIOp::create(b, valid, b.isLess(column, validColumns)).getResult()
               : valid;
  };
  if (isAligned && columns % chunk() == 0) {
    int64_t inRow = columns / chunk();
    forEachOfThread(b, rows * inRow, threads, /*unrolls=*/true, [&](Value number) {
      Value row = b.divide(number, inRow), column = b.multiply(b.remainder(number, inRow), chunk());
      // A copy of no elements reads nothing, so its source address may lie outside of the buffer.
      Value count =
          arith::SelectOp::create(b, isValid(row, column), b.constant(chunk()), b.constant(0));
      nvgpu::DeviceAsyncCopyOp::create(b, nvgpu::DeviceAsyncTokenType::get(b.getContext()),
                                       elements.memory, elements.at(b, stage, row, column), source,
                                       ValueRange{row, column}, b.getIndexAttr(chunk()), count,
                                       /*bypassL1=*/b.getUnitAttr());
    });
    return;
  }
  Value none = arith::ConstantOp::create(b, b.getFloatAttr(element, 0));
  forEachOfThread(b, rows * columns, threads, /*unrolls=*/false, [&](Value number) {
    Value row = b.divide(number, columns), column = b.remainder(number, columns);
    auto read = scf::IfOp::create(b, TypeRange{element}, isValid(row, column), /*withElse=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(read.thenBlock());
      Value value = memref::LoadOp::create(b, source, ValueRange{row, column});
      scf::YieldOp::create(b, value);
      b.setInsertionPointToStart(read.elseBlock());
      scf::YieldOp::create(b, none);
    }
    memref::StoreOp::create(b, read.getResult(0), elements.memory,
                            elements.at(b, stage, row, column));
  });
}

void attn::waitForCopies(ThreadBuilder &b, bool toWarpgroups) {
  NVVM::CpAsyncWaitGroupOp::create(b, b.getI32IntegerAttr(0));
  if (toWarpgroups)
    showToWarpgroups(b);
  gpu::BarrierOp::create(b);
}
