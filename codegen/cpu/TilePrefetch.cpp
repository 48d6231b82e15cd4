//===- TilePrefetch.cpp - the edges of a tile come while it is computed ----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/TilePrefetch.h"
#include "codegen/cpu/Lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace attn;

/// What a first cache waits for at a time.
static constexpr int64_t kLinesUnderWay = 16;

static bool hasRows(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && type.getRank() == 2 && !type.isDynamicDim(1) && isRowContiguous(type);
}

/// Whether `view` is known to be all of what it is a view of, but for one index of some dimensions.
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

int64_t TilePrefetch::Rows::getWidth() const {
  return cast<MemRefType>(buffer.getType()).getDimSize(1);
}

int64_t TilePrefetch::Rows::getElementsPerLine() const {
  return kLineBits / cast<MemRefType>(buffer.getType()).getElementTypeBitWidth();
}

void TilePrefetch::Rows::createLine(OpBuilder &builder, Location loc, Value row, Value column,
                                    Cache level) const {
  row = arith::AddIOp::create(builder, loc, row, createIndex(builder, loc, ahead));
  createPrefetch(builder, loc, buffer, {row, column}, level, isWrite);
}

void TilePrefetch::Rows::create(OpBuilder &builder, Location loc, Value row, Cache level) const {
  for (int64_t column = 0; column < getWidth(); column += getElementsPerLine())
    createLine(builder, loc, row, createIndex(builder, loc, column), level);
}

/// Calls `body` with the keys and the values of the products before and after `update`, as far as they
/// are rows of an argument.
static void forEachKeys(OnlineUpdateOp update, int64_t numKeys,
                        llvm::function_ref<void(Value rows, bool isBefore)> body) {
  // Scores out, weights in.
  Value scores = update.getOuts()[0];
  DominanceInfo dominance;
  for (auto product : update->getBlock()->getOps<linalg::LinalgOp>()) {
    if (product.getNumDpsInputs() != 2 || product.getNumReductionLoops() != 1)
      continue;
    bool isBefore = product->isBeforeInBlock(update);
    if (isBefore ? product.getDpsInits()[0] != scores
                 : !llvm::is_contained(product.getDpsInputs(), scores))
      continue;
    for (Value rows : product.getDpsInputs()) {
      auto type = dyn_cast<MemRefType>(rows.getType());
      if (rows != scores && hasRows(rows) && type.getDimSize(0) == numKeys && isOfArgument(rows) &&
          dominance.properlyDominates(rows, update))
        body(rows, isBefore);
    }
  }
}

void TilePrefetch::addKeys(OnlineUpdateOp update, int64_t numKeys) {
  forEachKeys(update, numKeys, [&](Value rows, bool isBefore) {
    all.push_back({rows, isBefore ? numKeys : 0, /*isWrite=*/false, /*isKeys=*/true});
  });
}

/// The type of the argument that `rows` are a part of, if its heads follow each other and the rows of a
/// head too.
static MemRefType getHeads(Value rows) {
  auto type = cast<MemRefType>(rows.getType());
  while (auto part = rows.getDefiningOp<memref::SubViewOp>())
    rows = part.getSource();
  auto heads = cast<MemRefType>(rows.getType());
  int64_t rank = heads.getRank();
  bool follow = rank > 2 && heads.getLayout().isIdentity() && isDense(type) &&
                heads.getDimSize(rank - 1) == type.getDimSize(1) &&
                heads.getDimSize(rank - 2) >= type.getDimSize(0);
  return follow ? heads : MemRefType();
}

static int64_t getRowsOfHead(MemRefType heads) { return heads.getDimSize(heads.getRank() - 2); }

void TilePrefetch::addNextHead(OnlineUpdateOp update, int64_t numKeys, Value queries,
                               int64_t tile) {
  MemRefType heads = getHeads(queries);
  if (!heads || getRowsOfHead(heads) <= tile)
    return;
  int64_t bytes = 0, bytesOfHead = 0, l2 = getTarget(update).getL2();
  forEachKeys(update, numKeys, [&](Value rows, bool) {
    MemRefType keys = getHeads(rows);
    if (!keys)
      return;
    Rows next = {rows, getRowsOfHead(keys), /*isWrite=*/false, /*isKeys=*/true};
    int64_t size = keys.getElementTypeBitWidth() / 8;
    bytes += keys.hasStaticShape() ? keys.getNumElements() * size : l2 + 1;
    bytesOfHead += next.ahead * next.getWidth() * size;
    nextHead.push_back(next);
  });
  // All heads stay from call to call, or not even two.
  if (bytes <= l2 || 2 * bytesOfHead > l2)
    return nextHead.clear();

  OpBuilder builder(update);
  Location loc = update.getLoc();
  int64_t numQueries = getRowsOfHead(heads);
  numTiles = llvm::divideCeil(numQueries, tile);
  Value queriesLeft = arith::SubIOp::create(builder, loc, createIndex(builder, loc, numQueries - 1),
                                            update.getOrigin().drop_back().back());
  tilesLeft = arith::DivUIOp::create(builder, loc, queriesLeft, createIndex(builder, loc, tile));
  // The first tiles meet few keys where a mask hides the rest: the last half of them asks for all.
  if (update.getMaskAttr())
    numTiles = llvm::divideCeil(numTiles, 2);
}

void TilePrefetch::createNextHead(OpBuilder &builder, Location loc, Value key,
                                  int64_t numKeys) const {
  auto constant = [&](int64_t value) { return createIndex(builder, loc, value); };
  auto linesOf = [](const Rows &rows) {
    return llvm::divideCeil(rows.getWidth(), rows.getElementsPerLine());
  };
  int64_t atOnce = 0;
  for (const Rows &rows : nextHead)
    atOnce += llvm::divideCeil(numKeys * linesOf(rows), numTiles);
  if (atOnce > kLinesUnderWay)
    return;
  for (const Rows &rows : nextHead) {
    int64_t linesPerRow = linesOf(rows), lines = numKeys * linesPerRow;
    int64_t share = llvm::divideCeil(lines, numTiles);
    Value first = arith::MulIOp::create(builder, loc, tilesLeft, constant(share));
    for (int64_t i = 0; i < share; ++i) {
      Value line = arith::AddIOp::create(builder, loc, first, constant(i));
      line = arith::RemUIOp::create(builder, loc, line, constant(lines));
      Value row = arith::DivUIOp::create(builder, loc, line, constant(linesPerRow));
      Value column = arith::RemUIOp::create(builder, loc, line, constant(linesPerRow));
      rows.createLine(
          builder, loc, arith::AddIOp::create(builder, loc, key, row),
          arith::MulIOp::create(builder, loc, column, constant(rows.getElementsPerLine())),
          Cache::Second);
    }
  }
}

TilePrefetch TilePrefetch::create(OnlineUpdateOp update) {
  TilePrefetch result;
  auto loop = dyn_cast<scf::ForOp>(update->getParentOp());
  result.loop = loop;
  Operation *whole = loop ? loop : update.getOperation();
  Block &block = *whole->getBlock();
  int64_t tile = 0;
  bool readsKeysOnce = false; // there is no other tile of queries of the head
  Value queries;
  for (PackOp pack : block.getOps<PackOp>()) {
    if (whole->isBeforeInBlock(pack) || pack.getFromRows() || !hasRows(pack.getSource()))
      continue;
    tile = cast<MemRefType>(pack.getOuts()[0].getType()).getDimSize(2);
    readsKeysOnce |= isOfArgument(pack.getSource()) && isWhole(pack.getSource());
    int64_t numRows = cast<MemRefType>(pack.getSource().getType()).getDimSize(0);
    queries = pack.getSource();
    result.all.push_back({pack.getSource(),
                          ShapedType::isDynamic(numRows) ? tile : std::min(tile, numRows),
                          /*isWrite=*/false});
  }
  for (OnlineFinishOp finish : block.getOps<OnlineFinishOp>())
    if (whole->isBeforeInBlock(finish) && hasRows(finish.getOuts()[0]))
      result.all.push_back({finish.getOuts()[0], 0, /*isWrite=*/true});
  OpBuilder builder(update);
  Value scores = update.getOuts()[0];
  result.numRows = memref::getMixedSize(builder, update.getLoc(), scores, 1);
  std::optional<int64_t> numKeys =
      getConstantIntValue(memref::getMixedSize(builder, update.getLoc(), scores, 0));
  if (readsKeysOnce && numKeys)
    result.addKeys(update, *numKeys);
  else if (loop && queries && numKeys)
    result.addNextHead(update, *numKeys, queries, tile);
  if (loop) {
    std::optional<int64_t> begin = getConstantIntValue(loop.getLowerBound()),
                           end = getConstantIntValue(loop.getUpperBound());
    numKeys = begin && end ? std::optional(*end - *begin) : std::nullopt;
  }
  // What is due together with the tile's own operands.
  int64_t lines = 0;
  for (const Rows &rows : result.all)
    if (!rows.isKeys)
      lines += llvm::divideCeil(rows.getWidth(), rows.getElementsPerLine()) * tile;
  if (loop && lines * kLineBits / 8 <= getTarget(update).getL1())
    result.level = Cache::First;
  if (numKeys && tile)
    result.keysPerRow = std::clamp<int64_t>(*numKeys / tile, 1, result.keysPerRow);
  return result;
}

void TilePrefetch::createShare(OpBuilder &builder, Location loc, Value key, int64_t numKeys,
                               Value step, int64_t steps, int64_t length) const {
  auto constant = [&](int64_t value) { return createIndex(builder, loc, value); };
  for (const Rows &rows : all) {
    if (loop && !rows.isKeys)
      continue;
    // In elements of all rows, one behind the other.
    int64_t width = rows.getWidth(), keysPerRow = rows.isKeys ? 1 : this->keysPerRow;
    int64_t perStep = llvm::divideCeil(llvm::divideCeil(numKeys, keysPerRow) * width, length);
    Value row = arith::DivUIOp::create(builder, loc, key, constant(keysPerRow));
    Value first = arith::AddIOp::create(
        builder, loc, arith::MulIOp::create(builder, loc, row, constant(width)),
        arith::MulIOp::create(builder, loc, step, constant(perStep)));
    for (int64_t i = 0; i < steps * perStep; i += rows.getElementsPerLine()) {
      Value column = arith::AddIOp::create(builder, loc, first, constant(i));
      row = constant(0);
      if (!isDense(cast<MemRefType>(rows.buffer.getType()))) {
        row = arith::DivUIOp::create(builder, loc, column, constant(width));
        column = arith::RemUIOp::create(builder, loc, column, constant(width));
      }
      rows.createLine(builder, loc, row, column, Cache::Second);
    }
  }
}

void TilePrefetch::createNext(OpBuilder &builder, Location loc, Value key, int64_t numKeys) {
  if (!loop || all.empty())
    return;
  createNextHead(builder, loc, key, numKeys);
  auto constant = [&](int64_t value) { return createIndex(builder, loc, value); };
  Value before = arith::SubIOp::create(builder, loc, loop.getInductionVar(), loop.getLowerBound());
  key = arith::AddIOp::create(builder, loc, before, key);
  Value first = arith::DivUIOp::create(builder, loc, key, constant(keysPerRow));
  // Beyond the last row, that one again.
  Value last = arith::SubIOp::create(
      builder, loc, getValueOrCreateConstantIndexOp(builder, loc, numRows), constant(1));
  for (int64_t i = 0; i * keysPerRow < numKeys; ++i) {
    Value row = arith::AddIOp::create(builder, loc, first, constant(i));
    row = arith::MinUIOp::create(builder, loc, row, last);
    for (const Rows &rows : all)
      if (!rows.isKeys)
        rows.create(builder, loc, row, level);
  }
}
