//===- TilePrefetch.cpp - prefetching the next tile ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/TilePrefetch.h"
#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/MultiplyAdd.h"
#include "codegen/cpu/Prefetch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace attn;

/// Whether `buffer` consists of rows of static length.
static bool isRows(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && type.getRank() == 2 && !type.isDynamicDim(1) && isRowContiguous(type) &&
         type.getElementType().isIntOrFloat() && type.getElementTypeBitWidth() % 8 == 0;
}

/// Whether `view` is known to cover its whole source, except that it may select a single index of some dimensions.
static bool isWhole(Value view) {
  auto part = view.getDefiningOp<memref::SubViewOp>();
  return !part || (llvm::all_of_zip(part.getStaticSizes(), part.getSourceType().getShape(),
                                    [](int64_t size, int64_t all) {
                                      return size == 1 ||
                                             (size == all && !ShapedType::isDynamic(all));
                                    }) &&
                   isWhole(part.getSource()));
}

/// Whether rows follow each other without a gap.
static bool isDense(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) && strides[0] == type.getDimSize(1);
}

static Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

int64_t TilePrefetch::Rows::getLines() const {
  auto type = cast<MemRefType>(buffer.getType());
  return llvm::divideCeil(type.getDimSize(1) * getBytes(type.getElementType()), kBytesPerLine);
}

Value TilePrefetch::Rows::createStride(OpBuilder &builder, Location loc) const {
  auto type = cast<MemRefType>(buffer.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  Value stride =
      getValueOrCreateConstantIndexOp(builder, loc, metadata.getConstifiedMixedStrides()[0]);
  return arith::MulIOp::create(builder, loc, stride,
                               createIndex(builder, loc, getBytes(type.getElementType())));
}

static Value createAddress(OpBuilder &builder, Location loc, Value pointer, Value bytes) {
  Value offset = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), bytes);
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), builder.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{offset});
}

Value TilePrefetch::Rows::createPointer(OpBuilder &builder, Location loc, Value row) const {
  auto type = cast<MemRefType>(buffer.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
  base = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), base);
  base = LLVM::IntToPtrOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()),
                                  base);
  Value bytes = arith::MulIOp::create(builder, loc, metadata.getOffset(),
                                      createIndex(builder, loc, getBytes(type.getElementType())));
  row = arith::AddIOp::create(builder, loc, first, row);
  row = arith::MulIOp::create(builder, loc, row, createStride(builder, loc));
  return createAddress(builder, loc, base, arith::AddIOp::create(builder, loc, bytes, row));
}

//===----------------------------------------------------------------------===//
// What to prefetch
//===----------------------------------------------------------------------===//

/// Calls `body` for the keys and for the values of `step`, in each case only if they are `numKeys` rows of a function
/// argument.
static void forEachKeys(OnlineStepOp step, int64_t numKeys,
                        llvm::function_ref<void(Value rows, bool isKeys)> body) {
  auto visit = [&](Value rows, bool isKeys) {
    if (isRows(rows) && cast<MemRefType>(rows.getType()).getDimSize(0) == numKeys &&
        isOfArgument(rows))
      body(rows, isKeys);
  };
  visit(step.getKey(), true);
  visit(step.getValue(), false);
}

void TilePrefetch::addKeys(OnlineStepOp step, int64_t numKeys) {
  OpBuilder builder(step);
  forEachKeys(step, numKeys, [&](Value rows, bool isKeys) {
    ofKeys.push_back({rows, createIndex(builder, step.getLoc(), isKeys ? numKeys : 0), numKeys});
  });
}

/// The type of the argument that `rows` are a part of, if its heads, and the rows of each head, follow each
/// other in memory without a gap. Otherwise null.
static MemRefType getTypeOfHeads(Value rows) {
  auto type = cast<MemRefType>(rows.getType());
  auto heads = cast<MemRefType>(getSource(rows).getType());
  int64_t rank = heads.getRank();
  bool follow = rank > 2 && heads.getLayout().isIdentity() && isDense(type) &&
                heads.getDimSize(rank - 1) == type.getDimSize(1) &&
                heads.getDimSize(rank - 2) >= type.getDimSize(0);
  return follow ? heads : MemRefType();
}

static int64_t getRowsOfHead(MemRefType heads) { return heads.getDimSize(heads.getRank() - 2); }

void TilePrefetch::addNextHead(OnlineStepOp step, int64_t numKeys, Value queries, int64_t tile) {
  MemRefType heads = getTypeOfHeads(queries);
  if (!heads || getRowsOfHead(heads) <= tile)
    return;
  int64_t bytes = 0, bytesOfHead = 0, l2 = getCpu(step).getL2();
  SmallVector<Value> tiles;
  forEachKeys(step, numKeys, [&](Value rows, bool) {
    MemRefType keys = getTypeOfHeads(rows);
    if (!keys)
      return;
    int64_t size = getBytes(keys.getElementType());
    bytes += keys.hasStaticShape() ? keys.getNumElements() * size : l2 + 1;
    bytesOfHead += getRowsOfHead(keys) * keys.getShape().back() * size;
    tiles.push_back(rows);
  });
  // Do not prefetch if all heads stay in L2 from call to call, or if two heads do not fit into L2.
  if (bytes <= l2 || 2 * bytesOfHead > l2)
    return;

  OpBuilder builder(step);
  Location loc = step.getLoc();
  auto constant = [&](int64_t value) { return createIndex(builder, loc, value); };
  int64_t numTiles = llvm::divideCeil(getRowsOfHead(heads), tile);
  Value tileIndex =
      arith::DivUIOp::create(builder, loc, step.getOrigin().drop_back().back(), constant(tile));
  for (Value rows : tiles) {
    int64_t count = getRowsOfHead(getTypeOfHeads(rows)), share = llvm::divideCeil(count, numTiles);
    Value first =
        arith::AddIOp::create(builder, loc, constant(count),
                              arith::MulIOp::create(builder, loc, tileIndex, constant(share)));
    // Make `first` relative to the start of the tile of keys.
    first = arith::SubIOp::create(builder, loc, first, step.getOrigin().back());
    ofTile.push_back({rows, first, share});
  }
}

TilePrefetch TilePrefetch::create(OnlineStepOp step) {
  TilePrefetch result;
  auto scores = cast<MemRefType>(getSource(step.getScores()).getType());
  result.keysOfWholeTile = scores.getShape().front();
  OpBuilder atStep(step);
  if (scores.hasStaticShape() && scores.getRank() == 2)
    for (Value rows : step.getPrefetch())
      if (isRows(rows))
        result.ofNext.push_back(
            {rows, createIndex(atStep, step.getLoc(), 0), scores.getShape().back()});
  // The step may be inside an scf.if that tests the mask.
  Operation *whole = step;
  while (isa<scf::IfOp>(whole->getParentOp()))
    whole = whole->getParentOp();
  auto loop = dyn_cast<scf::ForOp>(whole->getParentOp());
  if (loop && loop.getInductionVar() != step.getOrigin().back())
    loop = {}; // not a loop over keys
  // Other steps contain the remaining prefetches in two cases: this tile of keys comes after a loop over the other
  // tiles; or, because of a packed mask, this step computes a part of a tile, and another step computes whole tiles.
  if (!loop && !isConstantIntValue(step.getOrigin().back(), 0))
    return result;
  result.loop = loop;
  if (loop)
    whole = loop;
  Block &block = *whole->getBlock();
  OpBuilder builder(step);
  Location loc = step.getLoc();
  Value queries;
  int64_t tile = 0;
  for (PackOp pack : block.getOps<PackOp>())
    if (!whole->isBeforeInBlock(pack) && !pack.getFromRows() && isRows(pack.getSource()) &&
        getSource(step.getQuery()) == pack.getOuts()[0]) {
      queries = pack.getSource();
      tile = cast<MemRefType>(pack.getOuts()[0].getType()).getDimSize(2);
    }
  if (!queries)
    return result;
  DominanceInfo dominance;
  for (OnlineFinishOp finish : block.getOps<OnlineFinishOp>())
    if (whole->isBeforeInBlock(finish) && isRows(finish.getOut()) &&
        dominance.properlyDominates(finish.getOut(), step))
      result.ofTile.push_back({finish.getOut(), createIndex(builder, loc, 0), tile});
  int64_t numRows = cast<MemRefType>(queries.getType()).getDimSize(0);
  int64_t next = ShapedType::isDynamic(numRows) ? tile : std::min(tile, numRows);
  result.ofTile.push_back({queries, createIndex(builder, loc, next), next});

  std::optional<int64_t> keysOfTile =
      getConstantIntValue(memref::getMixedSize(builder, loc, step.getScores(), 0));
  // True if the head has no other tile of queries.
  bool readsKeysOnce = isOfArgument(queries) && isWhole(queries);
  if (readsKeysOnce && keysOfTile)
    result.addKeys(step, *keysOfTile);
  else if (keysOfTile)
    result.addNextHead(step, *keysOfTile, queries, tile);
  if (!loop) {
    result.numKeys = keysOfTile;
    return result;
  }
  std::optional<int64_t> begin = getConstantIntValue(loop.getLowerBound()),
                         end = getConstantIntValue(loop.getUpperBound());
  if (begin && end)
    result.numKeys = *end - *begin;
  return result;
}

//===----------------------------------------------------------------------===//
// When to prefetch
//===----------------------------------------------------------------------===//

void TilePrefetch::createShare(OpBuilder &builder, Location loc, Value key, int64_t height,
                               Value step, int64_t steps, int64_t length) const {
  auto constant = [&](int64_t value) { return createIndex(builder, loc, value); };
  int64_t iterations = llvm::divideCeil(length, steps);
  Value iteration = arith::DivUIOp::create(builder, loc, step, constant(steps));
  // Prefetches `perIteration` lines of the rows, row after row.
  auto createLines = [&](Value pointer, Value stride, int64_t linesOfRow, int64_t perIteration,
                         Cache level) {
    for (int64_t i = 0; i < perIteration; ++i) {
      Value line = arith::MulIOp::create(builder, loc, iteration, constant(perIteration));
      line = arith::AddIOp::create(builder, loc, line, constant(i));
      // If a row consists of whole lines, and rows follow each other without a gap, `gap` is 0 and the lines are
      // consecutive.
      Value row = arith::DivUIOp::create(builder, loc, line, constant(linesOfRow));
      Value gap = arith::SubIOp::create(builder, loc, stride, constant(linesOfRow * kBytesPerLine));
      Value bytes = arith::AddIOp::create(
          builder, loc, arith::MulIOp::create(builder, loc, line, constant(kBytesPerLine)),
          arith::MulIOp::create(builder, loc, row, gap));
      createPrefetch(builder, loc, createAddress(builder, loc, pointer, bytes), level);
    }
  };
  for (const Rows &rows : ofKeys)
    createLines(rows.createPointer(builder, loc, key), rows.createStride(builder, loc),
                rows.getLines(), llvm::divideCeil(height * rows.getLines(), iterations),
                Cache::Second);
  for (const Rows &rows : ofNext) {
    int64_t share = llvm::divideCeil(rows.count, llvm::divideCeil(keysOfWholeTile, height));
    Value block = arith::DivUIOp::create(builder, loc, key, constant(height));
    Value begin = arith::MulIOp::create(builder, loc, block, constant(share));
    createLines(rows.createPointer(builder, loc, begin), rows.createStride(builder, loc),
                rows.getLines(), llvm::divideCeil(share * rows.getLines(), iterations),
                Cache::ForOneUse);
  }
  if (ofTile.empty())
    return;

  // The rows of all buffers form groups with about one line for each iteration. The groups, buffer after
  // buffer, are distributed over the blocks of keys.
  int64_t linesOfRow = 0, numGroups = 0;
  for (const Rows &rows : ofTile)
    linesOfRow = std::max(linesOfRow, rows.getLines());
  int64_t rowsOfGroup = std::max<int64_t>(iterations / linesOfRow, 1);
  int64_t perIteration = llvm::divideCeil(rowsOfGroup * linesOfRow, iterations);
  SmallVector<int64_t> firstGroups;
  for (const Rows &rows : ofTile) {
    firstGroups.push_back(numGroups);
    numGroups += llvm::divideCeil(rows.count, rowsOfGroup);
  }
  int64_t numBlocks = numKeys ? std::max<int64_t>(*numKeys / height, 1) : numGroups;
  int64_t atOnce = llvm::divideCeil(numGroups, numBlocks);
  if (scf::ForOp around = loop)
    key = arith::AddIOp::create(
        builder, loc, key,
        arith::SubIOp::create(builder, loc, around.getInductionVar(), around.getLowerBound()));
  Value block = arith::DivUIOp::create(builder, loc, key, constant(height));
  for (int64_t i = 0; i < atOnce; ++i) {
    Value group = arith::MulIOp::create(builder, loc, block, constant(atOnce));
    group = arith::AddIOp::create(builder, loc, group, constant(i));
    // Beyond the last group, prefetch the last group again.
    group = arith::MinUIOp::create(builder, loc, group, constant(numGroups - 1));
    Value pointer, stride;
    for (auto [rows, firstGroup] : llvm::zip_equal(ofTile, firstGroups)) {
      Value row = arith::SubIOp::create(builder, loc, group, constant(firstGroup));
      row = arith::MulIOp::create(builder, loc, row, constant(rowsOfGroup));
      Value itsPointer = rows.createPointer(builder, loc, row),
            itsStride = rows.createStride(builder, loc);
      if (!pointer) {
        pointer = itsPointer;
        stride = itsStride;
        continue;
      }
      Value isIts = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, group,
                                          constant(firstGroup));
      pointer = arith::SelectOp::create(builder, loc, isIts, itsPointer, pointer);
      stride = arith::SelectOp::create(builder, loc, isIts, itsStride, stride);
    }
    createLines(pointer, stride, linesOfRow, perIteration, Cache::Second);
  }
}
