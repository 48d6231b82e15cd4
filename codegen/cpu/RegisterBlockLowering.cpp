//===- RegisterBlockLowering.cpp - contractions in register blocks ---------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/RegisterBlockLowering.h"
#include "codegen/cpu/Prefetch.h"
#include "codegen/cpu/RegisterBlocks.h"
#include "codegen/cpu/StridedView.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace attn;

/// The length of the shortest sum that gets a second accumulator, if there are registers for it.
static constexpr int64_t kLongChain = 64;
/// The prefetch distance, in vectors, for vectors that are used only once: the number of vectors that
/// a core reads from memory during the latency of one access.
static constexpr int64_t kVectorsAhead = 64;

namespace {

/// Emits one contraction. The nest consists of the outer loops, n, m, and the reductions of one register block.
class Lowering {
public:
  Lowering(OpBuilder &builder, const Contraction &contraction, const Start &start, CpuAttr cpu,
           Epilogue *epilogue);

  void run() {
    Value zero = constant(builder, 0);
    Origin origin = {zero, zero, zero, zero};
    if (!depthBlock)
      return emitOuter(builder, roles.outer, origin);
    unsigned loop = roles.reductions.front();
    OpFoldResult depth = std::exchange(sizes[loop], builder.getIndexAttr(*depthBlock));
    createLoop(builder, loc, builder.getIndexAttr(0), depth, *depthBlock, {},
               [&](OpBuilder &inner, Value k, ValueRange) {
                 emitOuter(inner, roles.outer, advance(inner, origin, loop, k));
                 return SmallVector<Value>();
               });
  }

private:
  /// The position of a block: an index into the StridedView of each operand.
  struct Origin {
    Value scalar, vector, out, start;
  };
  Value constant(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Origin advance(OpBuilder &b, Origin origin, unsigned loop, Value count);

  void emitOuter(OpBuilder &b, ArrayRef<unsigned> loops, Origin origin);
  void emitColumns(OpBuilder &b, Origin origin);
  /// `count` adjacent vectors, the first at column `offset`. `mask` is the mask of the last vector, or null.
  SmallVector<Lanes> columnsAt(OpBuilder &b, Value offset, int64_t count, Value mask);
  void emitRows(OpBuilder &b, Origin origin, ArrayRef<Lanes> columns);
  SmallVector<Value> emitBlock(OpBuilder &b, Origin origin, Value row, int64_t rows,
                               ArrayRef<Lanes> columns, ValueRange carried);
  SmallVector<Value> emitResults(OpBuilder &b, Origin origin, ArrayRef<Value> rowNumbers,
                                 ArrayRef<Lanes> columns, ValueRange sums, ValueRange carried);
  SmallVector<Value> numberRows(OpBuilder &b, Value first, int64_t count);
  /// The start of the sums, if it is a scalar; otherwise zeros.
  Value initialSums(OpBuilder &b) { return startScalar ? splat(b, startScalar) : zeroSums(b); }
  /// The index of row `row` of the block that begins at `index`.
  Value rowIndex(OpBuilder &b, StridedView &view, Value index, int64_t row) {
    return roles.m ? view.advance(b, loc, index, *roles.m, constant(b, row)) : index;
  }
  /// The index of the first column of vector `vector` of the block that begins at `index`.
  Value columnIndex(OpBuilder &b, StridedView &view, Value index, int64_t vector) {
    return view.advance(b, loc, index, roles.n, constant(b, vector * lanes));
  }

  bool canUseTiles() const;
  SmallVector<Value> emitTiles(OpBuilder &b, Origin origin, Value row, int64_t rows,
                               ArrayRef<Lanes> columns, ValueRange carried);
  SmallVector<Value> finishTiles(OpBuilder &b, Origin origin, Value row, ArrayRef<Value> tiles,
                                 OpFoldResult whole, ArrayRef<Lanes> columns, ValueRange carried);
  SmallVector<Value> emitTileReductions(OpBuilder &b, ArrayRef<unsigned> loops, Value scalarIndex,
                                        Value vectorIndex, ValueRange sums, ArrayRef<Value> rows,
                                        int64_t width);
  SmallVector<Value> emitReductions(OpBuilder &b, ArrayRef<unsigned> loops, Value scalarIndex,
                                    Value vectorIndex, ValueRange sums, ArrayRef<Value> rows,
                                    ArrayRef<Lanes> columns);
  SmallVector<Value> emitSteps(OpBuilder &b, unsigned loop, Value scalarIndex, Value vectorIndex,
                               ValueRange sums, ArrayRef<Value> rows, ArrayRef<Lanes> columns);
  void prefetchNextRows(OpBuilder &b, unsigned loop, Value row, Value k, Value scalarIndex,
                        int64_t steps);
  void prefetchNextPanel(OpBuilder &b, int64_t length, Value row, Value k, Value vectorIndex);
  void prefetchVectors(OpBuilder &b, unsigned loop, Value vectorIndex, int64_t width);
  SmallVector<Value> emitStep(OpBuilder &b, Value scalarIndex, Value vectorIndex, ValueRange sums,
                              int64_t rows, ArrayRef<Lanes> columns);

  /// Loads the factors of `columns` at `index` of the vector operand.
  Value loadVector(OpBuilder &b, Value index, const Lanes &columns);
  /// Loads the factor, or the group of factors, at `index` of the scalar operand into all lanes.
  Value loadScalar(OpBuilder &b, Value index);

  Value splat(OpBuilder &b, Value scalar) {
    return vector::BroadcastOp::create(b, loc, VectorType::get(lanes, scalar.getType()), scalar);
  }
  Value zeroSums(OpBuilder &b) { return zeroConstant(b, loc, VectorType::get(lanes, sumType)); }

  OpBuilder &builder;
  Location loc;
  const MultiplyAdd &instruction;
  bool guarded, guardsVectors;
  const Contraction::Roles &roles;
  CpuAttr cpu;
  Epilogue *epilogue;
  func::FuncOp function;
  Type sumType;
  int64_t lanes;                                 // of a vector of sums
  int64_t elementsPerVector;                     // of a vector of factors
  int64_t scalarsPerLine, vectorElementsPerLine; // factors in a cache line, of each operand
  RegisterBlock block;
  /// The number of rows of a block of tiles; 0 if tiles are not used. With tiles, `block` is the block of vectors for
  /// the edges that do not fill a tile.
  int64_t tileRows = 0;
  int64_t wholeHeight;               // rows of the tallest block of the whole product
  std::optional<int64_t> depthBlock; // length of the parts of the sum, if it is split
  SmallVector<OpFoldResult> sizes;   // of each loop
  StridedView scalars, vectors, out, start;
  Value startScalar; // replaces the view `start` if the sum starts from a scalar
  /// Whether the vectors come from memory, and a single block of rows uses all of them.
  bool passesOnce;
  /// Whether the vectors come from memory, several blocks of rows use them, and the vectors of each step directly
  /// follow those of the previous step.
  bool isPanel;
};

} // namespace

Lowering::Lowering(OpBuilder &builder, const Contraction &contraction, const Start &start,
                   CpuAttr cpu, Epilogue *epilogue)
    : builder(builder), loc(contraction.op->getLoc()), instruction(*contraction.instruction),
      guarded(contraction.skipsZeros), guardsVectors(contraction.guardsVectors()),
      roles(*contraction.roles), cpu(cpu), epilogue(epilogue),
      function(contraction.op->getParentOfType<func::FuncOp>()),
      sumType(instruction.getSumType(builder.getContext())), lanes(cpu.getLanes(sumType)),
      elementsPerVector(lanes * instruction.group), sizes(getLoopSizes(builder, contraction.op)) {
  linalg::LinalgOp op = contraction.op;
  BlockAttr planned = contraction.getBlock(cpu);
  block = {planned.getRows(), planned.getVectors()};
  auto view = [&](OpOperand *operand) {
    return StridedView::create(builder, loc, operand->get(), op.getMatchingIndexingMap(operand));
  };
  scalars = view(op.getDpsInputOperand(1 - roles.vectorInput));
  vectors = view(op.getDpsInputOperand(roles.vectorInput));
  scalarsPerLine = kBytesPerLine / getBytes(scalars.getElementType());
  vectorElementsPerLine = kBytesPerLine / getBytes(vectors.getElementType());
  out = view(op.getDpsInitOperand(0));
  if (canUseTiles())
    tileRows = block.rows;
  if (block.rows > kMostRows)
    block = fitEdges(cpu, instruction, block);
  std::optional<int64_t> rowCount =
      roles.m ? getConstantIntValue(sizes[*roles.m]) : std::optional<int64_t>(1);
  bool isFromMemory = isOfArgument(op.getDpsInputOperand(roles.vectorInput)->get()) &&
                      vectors.strides[roles.reductions.back()];
  passesOnce = rowCount && *rowCount <= block.rows && isFromMemory;
  isPanel = isFromMemory && !passesOnce && !epilogue && roles.reductions.size() == 1 &&
            block.vectors * elementsPerVector >= vectorElementsPerLine &&
            getConstantIntValue(vectors.strides[roles.reductions.front()]) ==
                block.vectors * elementsPerVector;
  std::optional<int64_t> split = contraction.getSplit(cpu);
  if (!start.writer && !epilogue)
    depthBlock = split;
  // An epilogue needs the whole sum, so the sum is not split. The block has fewer rows instead, so
  // that registers are left for two partial sums of each element.
  if (epilogue && split)
    block = fitTwoSums(cpu, instruction, block);
  // The height of a block of vectors must divide that of a block of tiles, and must be a multiple of the group size.
  if (tileRows)
    while (tileRows % block.rows != 0 || block.rows % instruction.group != 0)
      --block.rows;
  // With an epilogue, the rows may be the tail of a larger tile. Their products must be added in the same order as
  // those of whole blocks, so the number of rows does not reduce the height.
  wholeHeight = epilogue ? block.rows : std::min(block.rows, rowCount.value_or(block.rows));
  if (!start.writer)
    this->start = out;
  else if (start.map)
    this->start = StridedView::create(builder, loc, start.value, start.map);
  else
    startScalar = start.value;
}

Lowering::Origin Lowering::advance(OpBuilder &b, Origin origin, unsigned loop, Value count) {
  return {scalars.advance(b, loc, origin.scalar, loop, count),
          vectors.advance(b, loc, origin.vector, loop, count),
          out.advance(b, loc, origin.out, loop, count),
          startScalar ? Value() : start.advance(b, loc, origin.start, loop, count)};
}

void Lowering::emitOuter(OpBuilder &b, ArrayRef<unsigned> loops, Origin origin) {
  if (loops.empty())
    return emitColumns(b, origin);
  createLoop(b, loc, b.getIndexAttr(0), sizes[loops.front()], 1, {},
             [&](OpBuilder &inner, Value i, ValueRange) {
               emitOuter(inner, loops.drop_front(), advance(inner, origin, loops.front(), i));
               return SmallVector<Value>();
             });
}

SmallVector<Lanes> Lowering::columnsAt(OpBuilder &b, Value offset, int64_t count, Value mask) {
  SmallVector<Lanes> columns;
  for (int64_t vector = 0; vector < count; ++vector)
    columns.push_back({lanes,
                       b.createOrFold<arith::AddIOp>(loc, offset, constant(b, vector * lanes)),
                       vector + 1 == count ? mask : Value()});
  return columns;
}

/// Emits full blocks of columns, then the tail, whose last vector may be partial. If the number of columns is known,
/// the tail is one narrower block. Otherwise the widths of the blocks in the tail are descending powers of two, down to
/// one vector. This takes more loads than one block, but no additional multiplications, and it does not need separate
/// code for each width.
void Lowering::emitColumns(OpBuilder &b, Origin origin) {
  OpFoldResult size = sizes[roles.n], whole = roundDown(b, loc, size, block.vectors * lanes);
  auto emit = [&](OpBuilder &inner, Value j, int64_t vectors, Value mask) {
    emitRows(inner, advance(inner, origin, roles.n, j), columnsAt(inner, j, vectors, mask));
    return SmallVector<Value>();
  };
  createLoop(
      b, loc, b.getIndexAttr(0), whole, block.vectors * lanes, {},
      [&](OpBuilder &inner, Value j, ValueRange) { return emit(inner, j, block.vectors, {}); });
  if (isEqualConstantIntOrValue(whole, size))
    return;

  VectorType maskType = VectorType::get(lanes, b.getI1Type());
  Value begin = getValueOrCreateConstantIndexOp(b, loc, whole);
  if (std::optional<int64_t> columns = getConstantIntValue(size)) {
    int64_t rest = *columns - *getConstantIntValue(whole);
    Value mask;
    if (rest % lanes != 0)
      mask = vector::ConstantMaskOp::create(b, loc, maskType, {rest % lanes});
    emit(b, begin, llvm::divideCeil(rest, lanes), mask);
    return;
  }
  Value end = getValueOrCreateConstantIndexOp(b, loc, size);
  for (int64_t width = llvm::bit_floor<uint64_t>(block.vectors - 1); width > 1; width /= 2) {
    AffineExpr from, to;
    bindSymbols(b.getContext(), from, to);
    OpFoldResult next = affine::makeComposedFoldedAffineApply(
        b, loc, from + (to - from).floorDiv(width * lanes) * (width * lanes), {whole, size});
    createLoop(b, loc, whole, next, width * lanes, {},
               [&](OpBuilder &inner, Value j, ValueRange) { return emit(inner, j, width, {}); });
    whole = next;
  }
  createLoop(b, loc, whole, size, lanes, {}, [&](OpBuilder &inner, Value j, ValueRange) {
    Value mask;
    if (!isMultiple(size, lanes))
      mask = vector::CreateMaskOp::create(inner, loc, maskType,
                                          arith::SubIOp::create(inner, loc, end, j).getResult());
    return emit(inner, j, 1, mask);
  });
}

/// Emits blocks of tiles, if there are any, then blocks of full height, then lower blocks for the tail: one block if
/// the number of rows is known, otherwise blocks of decreasing heights, down to single rows. If rows are in groups,
/// only single rows at the end may leave a group incomplete.
void Lowering::emitRows(OpBuilder &b, Origin origin, ArrayRef<Lanes> columns) {
  SmallVector<Value> carried;
  if (epilogue)
    carried = epilogue->begin(b, columns);
  OpFoldResult size = roles.m ? sizes[*roles.m] : b.getIndexAttr(1), begin = b.getIndexAttr(0);
  int64_t tallest = roles.m ? block.rows : 1;
  if (tileRows && !columns.back().mask) {
    for (int64_t height : {tileRows, instruction.tile->rows}) {
      OpFoldResult end = roundDown(b, loc, size, height);
      carried = createLoop(b, loc, begin, end, height, carried,
                           [&](OpBuilder &inner, Value i, ValueRange values) {
                             return emitTiles(inner, advance(inner, origin, *roles.m, i), i, height,
                                              columns, values);
                           });
      begin = end;
      if (height == instruction.tile->rows)
        break;
    }
    // Fewer rows are left than a tile has.
    tallest = std::gcd(tallest, std::max<int64_t>(1, instruction.tile->rows / 2));
  }
  SmallVector<int64_t> heights = {tallest};
  if (std::optional<int64_t> rowCount = getConstantIntValue(size))
    heights.push_back(*rowCount % heights.front());
  else
    for (int64_t height = heights.front(); height > 1; heights.push_back(height))
      height = instruction.group > 1 ? llvm::bit_floor<uint64_t>(height - 1) : height / 2;
  int64_t divisor = heights.front(); // divides the number of rows before the blocks of the next height
  for (int64_t height : heights) {
    // The block of a known tail takes all remaining rows.
    OpFoldResult end = size;
    if (height != heights.back()) {
      AffineExpr from, to;
      bindSymbols(b.getContext(), from, to);
      end = divisor % height == 0
                ? roundDown(b, loc, size, height)
                : affine::makeComposedFoldedAffineApply(
                      b, loc, from + (to - from).floorDiv(height) * height, {begin, size});
      divisor = std::gcd(divisor, height);
    }
    carried = createLoop(b, loc, begin, end, height, carried,
                         [&](OpBuilder &inner, Value i, ValueRange values) {
                           Origin block = roles.m ? advance(inner, origin, *roles.m, i) : origin;
                           return emitBlock(inner, block, i, height, columns, values);
                         });
    begin = end;
  }
  if (epilogue)
    epilogue->end(b, columns, carried);
}

SmallVector<Value> Lowering::numberRows(OpBuilder &b, Value first, int64_t count) {
  SmallVector<Value> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(b.createOrFold<arith::AddIOp>(loc, first, constant(b, i)));
  return numbers;
}

SmallVector<Value> Lowering::emitBlock(OpBuilder &b, Origin origin, Value row, int64_t rows,
                                       ArrayRef<Lanes> columns, ValueRange carried) {
  SmallVector<Value> rowNumbers = numberRows(b, row, rows),
                     sums(rows * columns.size(), initialSums(b));
  sums =
      emitReductions(b, roles.reductions, origin.scalar, origin.vector, sums, rowNumbers, columns);
  return emitResults(b, origin, rowNumbers, columns, sums, carried);
}

/// Adds the start to the sums of a block. Stores the sums or, if there is an epilogue, the results that the epilogue
/// computes from them.
SmallVector<Value> Lowering::emitResults(OpBuilder &b, Origin origin, ArrayRef<Value> rowNumbers,
                                         ArrayRef<Lanes> columns, ValueRange products,
                                         ValueRange carried) {
  // A start value from memory is added last, because a sum in parts has a smaller error than one long chain. Tiles are
  // an exception: emitTiles() may load the start values into them first.
  SmallVector<Value> sums(products);
  for (size_t i = 0; !startScalar && i < rowNumbers.size(); ++i)
    for (size_t vector = 0; vector < columns.size(); ++vector) {
      Value index = columnIndex(b, start, rowIndex(b, start, origin.start, i), vector);
      Value first = start.strides[roles.n]
                        ? columns[vector].load(b, loc, start.row, index)
                        : splat(b, memref::LoadOp::create(b, loc, start.row, index));
      Value &sum = sums[i * columns.size() + vector];
      sum = createAdd(b, loc, first, sum);
    }
  auto store = [&](OpBuilder &inner, size_t accumulator, Value value) {
    int64_t i = accumulator / columns.size(), vector = accumulator % columns.size();
    Value index = columnIndex(inner, out, rowIndex(inner, out, origin.out, i), vector);
    columns[vector].store(inner, loc, value, out.row, index);
  };
  if (epilogue)
    return epilogue->finish(b, rowNumbers, columns, sums, carried, store);
  for (auto [i, sum] : llvm::enumerate(sums))
    store(b, i, sum);
  return carried;
}

/// Whether tiles can be loaded from the operands directly: the operands have the type of the factors, and the elements
/// of a row are adjacent.
bool Lowering::canUseTiles() const {
  if (!hasTiles(instruction, block) || guarded || !roles.m || roles.reductions.empty())
    return false;
  unsigned depth = roles.reductions.back();
  Type factor = instruction.factor(builder.getContext());
  return lanes == instruction.tile->columns && scalars.getElementType() == factor &&
         vectors.getElementType() == factor && out.getElementType() == sumType &&
         vectors.strides[depth] && scalars.strides[depth] &&
         getConstantIntValue(scalars.strides[depth]) == instruction.group;
}

/// Emits a block of tiles with `rows` rows of sums. If the tiles will hold complete sums that start from zero or from a
/// buffer, the code clears the tiles, or loads the start into them, and stores the tiles to the output directly.
/// Otherwise finishTiles() completes the sums.
SmallVector<Value> Lowering::emitTiles(OpBuilder &b, Origin origin, Value row, int64_t rows,
                                       ArrayRef<Lanes> columns, ValueRange carried) {
  const TileMultiplyAdd &tile = *instruction.tile;
  unsigned depth = roles.reductions.back(), m = *roles.m;
  int64_t down = rows / tile.rows, width = columns.size();
  OpFoldResult length = sizes[depth], whole = roundDown(b, loc, length, tile.steps);
  Value zero = constant(b, 0);
  auto strideOf = [&](StridedView &view, unsigned loop) {
    return view.strides[loop] ? view.strides[loop] : zero;
  };
  auto forEachTile = [&](StridedView &view, Value index,
                         llvm::function_ref<void(size_t, Value)> visit) {
    for (int64_t i = 0; i < down; ++i)
      for (int64_t vector = 0; vector < width; ++vector)
        visit(i * width + vector,
              columnIndex(b, view, rowIndex(b, view, index, i * tile.rows), vector));
  };
  bool isWhole = isEqualConstantIntOrValue(whole, length) && !epilogue;
  bool startsFromTiles = isWhole && !startScalar && start.getElementType() == sumType &&
                         getConstantIntValue(start.strides[roles.n]) == 1;
  bool startsFromZero = startScalar && matchPattern(startScalar, m_AnyZeroFloat());
  bool isDirect = startsFromTiles || (isWhole && startsFromZero);

  SmallVector<Value> tiles;
  for (int64_t i = 0; i < down * width; ++i)
    if (!startsFromTiles)
      tiles.push_back(tile.createZero(b, loc));
  if (startsFromTiles)
    forEachTile(start, origin.start, [&](size_t, Value index) {
      tiles.push_back(tile.createLoadSums(b, loc, start.row, index, strideOf(start, m)));
    });
  sizes[depth] = whole;
  tiles = emitTileReductions(b, roles.reductions, origin.scalar, origin.vector, tiles,
                             numberRows(b, row, rows), width);
  sizes[depth] = length;
  if (isDirect) {
    forEachTile(out, origin.out, [&](size_t i, Value index) {
      tile.createStore(b, loc, tiles[i], out.row, index, strideOf(out, m));
    });
    return SmallVector<Value>(carried);
  }
  return finishTiles(b, origin, row, tiles, whole, columns, carried);
}

/// Stores `tiles`, the sums of the first `whole` steps, to a buffer. A loop then loads the sums of one block of vectors
/// at a time from this buffer, adds the remaining products, and goes on like emitBlock().
SmallVector<Value> Lowering::finishTiles(OpBuilder &b, Origin origin, Value row,
                                         ArrayRef<Value> tiles, OpFoldResult whole,
                                         ArrayRef<Lanes> columns, ValueRange carried) {
  const TileMultiplyAdd &tile = *instruction.tile;
  unsigned depth = roles.reductions.back(), m = *roles.m;
  int64_t width = columns.size(), rows = tiles.size() / width * tile.rows;
  OpFoldResult length = sizes[depth];
  bool addsStart = startScalar && !matchPattern(startScalar, m_AnyZeroFloat());
  OpBuilder entry = OpBuilder::atBlockBegin(&function.getBody().front());
  auto type = MemRefType::get({rows * width * lanes}, sumType);
  Value buffer = memref::AllocaOp::create(entry, loc, type, entry.getI64IntegerAttr(kBytesPerLine));
  for (auto [i, sums] : llvm::enumerate(tiles)) {
    int64_t index = i / width * tile.rows * width * lanes + i % width * lanes;
    tile.createStore(b, loc, sums, buffer, constant(b, index), constant(b, width * lanes));
  }
  int64_t height = std::gcd(rows, block.rows);
  return createLoop(
      b, loc, b.getIndexAttr(0), b.getIndexAttr(rows), height, carried,
      [&](OpBuilder &inner, Value first, ValueRange values) {
        Origin at = advance(inner, origin, m, first);
        SmallVector<Value> rowNumbers =
            numberRows(inner, arith::AddIOp::create(inner, loc, row, first), height);
        Value index = arith::MulIOp::create(inner, loc, first, constant(inner, width * lanes));
        SmallVector<Value> sums;
        for (int64_t i = 0; i < height * width; ++i) {
          Value sum = vector::LoadOp::create(
              inner, loc, VectorType::get(lanes, sumType), buffer,
              arith::AddIOp::create(inner, loc, index, constant(inner, i * lanes)).getResult());
          sums.push_back(addsStart ? createAdd(inner, loc, initialSums(inner), sum) : sum);
        }
        if (!isEqualConstantIntOrValue(whole, length)) {
          Value steps = getValueOrCreateConstantIndexOp(inner, loc, whole);
          AffineExpr all, done;
          bindSymbols(inner.getContext(), all, done);
          sizes[depth] =
              affine::makeComposedFoldedAffineApply(inner, loc, all - done, {length, whole});
          sums = emitReductions(
              inner, roles.reductions, scalars.advance(inner, loc, at.scalar, depth, steps),
              vectors.advance(inner, loc, at.vector, depth, steps), sums, rowNumbers, columns);
          sizes[depth] = length;
        }
        return emitResults(inner, at, rowNumbers, columns, sums, values);
      });
}

/// Adds the products of whole tiles to `sums`, which has `width` tiles in each row.
SmallVector<Value> Lowering::emitTileReductions(OpBuilder &b, ArrayRef<unsigned> loops,
                                                Value scalarIndex, Value vectorIndex,
                                                ValueRange sums, ArrayRef<Value> rows,
                                                int64_t width) {
  const TileMultiplyAdd &tile = *instruction.tile;
  unsigned loop = loops.front();
  bool isDepth = loops.size() == 1;
  return createLoop(
      b, loc, b.getIndexAttr(0), sizes[loop], isDepth ? tile.steps : 1, sums,
      [&](OpBuilder &inner, Value k, ValueRange carried) {
        Value s = scalars.advance(inner, loc, scalarIndex, loop, k);
        Value v = vectors.advance(inner, loc, vectorIndex, loop, k);
        if (!isDepth)
          return emitTileReductions(inner, loops.drop_front(), s, v, carried, rows, width);
        if (std::optional<int64_t> length = getConstantIntValue(sizes[loop]); epilogue && length)
          epilogue->overlap(inner, rows, k, tile.steps, *length);
        SmallVector<Value> row, result(carried);
        for (int64_t vector = 0; vector < width; ++vector)
          row.push_back(tile.createLoadB(inner, loc, vectors.row,
                                         columnIndex(inner, vectors, v, vector),
                                         vectors.strides[loop]));
        for (size_t first = 0; first < carried.size(); first += width) {
          Value a = tile.createLoadA(inner, loc, scalars.row,
                                     rowIndex(inner, scalars, s, first / width * tile.rows),
                                     scalars.strides[*roles.m]);
          for (int64_t vector = 0; vector < width; ++vector)
            result[first + vector] =
                tile.create(inner, loc, a, row[vector], carried[first + vector]);
        }
        return result;
      });
}

SmallVector<Value> Lowering::emitReductions(OpBuilder &b, ArrayRef<unsigned> loops,
                                            Value scalarIndex, Value vectorIndex, ValueRange sums,
                                            ArrayRef<Value> rows, ArrayRef<Lanes> columns) {
  if (loops.size() == 1)
    return emitSteps(b, loops.front(), scalarIndex, vectorIndex, sums, rows, columns);
  unsigned loop = loops.front();
  return createLoop(b, loc, b.getIndexAttr(0), sizes[loop], 1, sums,
                    [&](OpBuilder &inner, Value k, ValueRange carried) {
                      return emitReductions(inner, loops.drop_front(),
                                            scalars.advance(inner, loc, scalarIndex, loop, k),
                                            vectors.advance(inner, loc, vectorIndex, loop, k),
                                            carried, rows, columns);
                    });
}

SmallVector<Value> Lowering::emitSteps(OpBuilder &b, unsigned loop, Value scalarIndex,
                                       Value vectorIndex, ValueRange sums, ArrayRef<Value> rows,
                                       ArrayRef<Lanes> columns) {
  std::optional<int64_t> length = getConstantIntValue(sizes[loop]);
  bool isEven = isMultiple(sizes[loop], 2);
  int64_t height = rows.size(), width = columns.size();
  // If registers are left, even and odd steps have separate sums: shorter chains have smaller errors and less latency.
  // Tails follow the decision for whole blocks, so that equal rows have equal sums.
  bool alternates = isEven && instruction.isFused && length.value_or(0) >= kLongChain &&
                    fitsRegisters(cpu, instruction, {2 * wholeHeight, width}, guarded);
  // If the number of steps is even, an iteration does two steps in full blocks and in blocks with separate sums. Other
  // blocks compute only edges. Without FMA, an iteration does one step, because LLVM would hoist the separate
  // multiplications of two steps until registers spill.
  bool isFull = height == block.rows;
  bool inPairs = instruction.isFused && isEven && (isFull || alternates);
  int64_t steps = inPairs ? 2 : 1;
  SmallVector<Value> initial(sums);
  if (alternates)
    initial.append(sums.size(), zeroSums(b));
  SmallVector<Value> parts = createLoop(
      b, loc, b.getIndexAttr(0), sizes[loop], steps, initial,
      [&](OpBuilder &inner, Value k, ValueRange carried) {
        SmallVector<Value> result(carried);
        Value s = scalars.advance(inner, loc, scalarIndex, loop, k);
        Value v = vectors.advance(inner, loc, vectorIndex, loop, k);
        if (isFull && roles.m)
          prefetchNextRows(inner, loop, rows.front(), k, s, steps);
        if (inPairs && isFull && isPanel && length)
          prefetchNextPanel(inner, *length, rows.front(), k, vectorIndex);
        if (epilogue && length)
          epilogue->overlap(inner, rows, k, steps, *length);
        for (int64_t step = 0; step < steps; ++step) {
          Value count = constant(inner, step);
          if (passesOnce)
            prefetchVectors(inner, loop, vectors.advance(inner, loc, v, loop, count), width);
          auto part =
              MutableArrayRef(result).slice(step * sums.size() % result.size(), sums.size());
          llvm::copy(emitStep(inner, scalars.advance(inner, loc, s, loop, count),
                              vectors.advance(inner, loc, v, loop, count), part, height, columns),
                     part.begin());
        }
        return result;
      });
  SmallVector<Value> totals(ArrayRef(parts).take_front(sums.size()));
  for (auto [total, part] : llvm::zip(totals, ArrayRef(parts).drop_front(sums.size())))
    total = createAdd(b, loc, total, part);
  return totals;
}

/// Prefetches rows of later blocks while this block is at step `k`:
/// - Adjacent rows (stride 1): the prefetch of one element loads a whole line. If at least two blocks share a line, and
///   an iteration does two steps, each block prefetches every other element of the last row of the block after the
///   next. Two blocks together therefore prefetch every line before the first block that reads it, wherever lines
///   begin. Otherwise each block prefetches the first row of the next block.
/// - Dense rows, which follow each other in memory: the next block is one contiguous range, and each iteration
///   prefetches its part of that range.
/// - Other rows: each iteration prefetches an element of one row of the next block; the rows take turns.
/// The last two cases apply only with two steps per iteration. The last block prefetches addresses beyond the end of
/// the operand, often those of the next tile. A prefetch never faults, so this is safe.
void Lowering::prefetchNextRows(OpBuilder &b, unsigned loop, Value row, Value k, Value scalarIndex,
                                int64_t steps) {
  auto advance = [&](Value index, unsigned along, Value count) {
    return scalars.advance(b, loc, index, along, count);
  };
  unsigned m = *roles.m;
  Value rows = constant(b, block.rows);
  std::optional<int64_t> stride = getConstantIntValue(scalars.strides[m]),
                         length = getConstantIntValue(sizes[loop]);
  Value index;
  if (stride == 1 && steps == 2 && 2 * block.rows <= scalarsPerLine) {
    Value number = arith::DivUIOp::create(b, loc, row, rows);
    Value parity = arith::RemUIOp::create(b, loc, number, constant(b, 2));
    index = advance(advance(scalarIndex, m, constant(b, 3 * block.rows - 1)), loop, parity);
  } else if (stride == 1) {
    index = advance(scalarIndex, m, rows);
  } else if (steps == 2 && length && stride == length &&
             getConstantIntValue(scalars.strides[loop]) == 1) {
    // `scalarIndex` includes k, so k * (rows - 1) more elements make k * rows.
    Value part = arith::MulIOp::create(b, loc, k, constant(b, block.rows - 1));
    index = arith::AddIOp::create(b, loc, advance(scalarIndex, m, rows), part);
  } else if (steps == 2) {
    Value pair = arith::ShRUIOp::create(b, loc, k, constant(b, 1));
    Value turn = arith::RemUIOp::create(b, loc, pair, rows);
    index = advance(scalarIndex, m, arith::AddIOp::create(b, loc, turn, rows));
  }
  if (index)
    createPrefetch(b, loc, scalars.row, index);
}

/// Prefetches into L2 the data that follows the vectors of this sum in memory: the next part of the sum, or the next
/// panel. Each pair of steps prefetches one line; `k` is the first step of the pair. With four vectors of 16 lanes of
/// f32, a block of rows thus prefetches an eighth of that data. Blocks after the eighth prefetch the last lines again.
void Lowering::prefetchNextPanel(OpBuilder &b, int64_t length, Value row, Value k,
                                 Value vectorIndex) {
  int64_t elements = length * block.vectors * elementsPerVector,
          share = length / 2 * vectorElementsPerLine;
  Value blocks = arith::DivUIOp::create(b, loc, row, constant(b, block.rows));
  Value first =
      arith::MinUIOp::create(b, loc, arith::MulIOp::create(b, loc, blocks, constant(b, share)),
                             constant(b, elements - share));
  Value line = arith::AddIOp::create(
      b, loc, first, arith::MulIOp::create(b, loc, k, constant(b, vectorElementsPerLine / 2)));
  Value behind = arith::AddIOp::create(b, loc, vectorIndex, constant(b, elements));
  Value index = arith::AddIOp::create(b, loc, behind, line);
  createPrefetch(b, loc, vectors.row, index, Cache::Second);
}

/// Prefetches the vectors of a later step while those at `vectorIndex` are used.
void Lowering::prefetchVectors(OpBuilder &b, unsigned loop, Value vectorIndex, int64_t width) {
  Value ahead = vectors.advance(b, loc, vectorIndex, loop, constant(b, kVectorsAhead / width));
  int64_t vectorsPerLine = std::max<int64_t>(vectorElementsPerLine / elementsPerVector, 1);
  for (int64_t vector = 0; vector < width; vector += vectorsPerLine)
    createPrefetch(b, loc, vectors.row,
                   vectors.advance(b, loc, ahead, roles.n, constant(b, vector * lanes)));
}

Value Lowering::loadVector(OpBuilder &b, Value index, const Lanes &columns) {
  Lanes factors = columns.ofGroups(b, loc, instruction.group);
  return instruction.createFactors(b, loc, factors.load(b, loc, vectors.row, index));
}

Value Lowering::loadScalar(OpBuilder &b, Value index) {
  if (instruction.group == 1)
    return splat(
        b, instruction.createFactors(b, loc, memref::LoadOp::create(b, loc, scalars.row, index)));
  // Broadcast the group as one integer.
  Type stored = scalars.getElementType();
  Value group = vector::LoadOp::create(b, loc, VectorType::get(instruction.group, stored),
                                       scalars.row, index);
  Type bits = b.getIntegerType(8 * instruction.group * getBytes(stored));
  group = vector::BitCastOp::create(b, loc, VectorType::get(1, bits), group);
  Value all = splat(b, vector::ExtractOp::create(b, loc, group, 0));
  all = vector::BitCastOp::create(b, loc, VectorType::get(elementsPerVector, stored), all);
  return instruction.createFactors(b, loc, all);
}

/// Returns, for each element of `vector`, whether it is not 0.
static Value createIsNonzero(OpBuilder &b, Location loc, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  unsigned width = type.getElementTypeBitWidth();
  if (width >= 32)
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, vector,
                                 floatConstant(b, loc, type, 0.0));
  // Compare shorter floats as integers, without the sign bit, because there are instructions for integers of this
  // width.
  auto bits = type.clone(b.getIntegerType(width));
  auto splat = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(bits, value));
  };
  Value magnitude = arith::AndIOp::create(b, loc, vector::BitCastOp::create(b, loc, bits, vector),
                                          splat(APInt::getSignedMaxValue(width)));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, magnitude, splat(APInt(width, 0)));
}

/// Emits one step: multiplies one element, or one group, of each row by one row of vectors.
SmallVector<Value> Lowering::emitStep(OpBuilder &b, Value scalarIndex, Value vectorIndex,
                                      ValueRange sums, int64_t rows, ArrayRef<Lanes> columns) {
  // A zero of the guarded operand disables its product. If the instruction adds groups of products, the zero instead
  // replaces the matching factor of the other operand by 0.
  bool guardsFactors = guarded && instruction.group > 1;
  SmallVector<Value> row, masks;
  for (auto [vector, lanesOfVector] : llvm::enumerate(columns)) {
    Value index = vectors.advance(b, loc, vectorIndex, roles.n, constant(b, vector * lanes));
    row.push_back(loadVector(b, index, lanesOfVector));
    if (guardsVectors)
      masks.push_back(createIsNonzero(b, loc, row.back()));
  }
  SmallVector<Value> result;
  for (int64_t i = 0; i < rows; ++i) {
    Value index =
        roles.m ? scalars.advance(b, loc, scalarIndex, *roles.m, constant(b, i)) : scalarIndex;
    Value element = loadScalar(b, index);
    if (guarded && !guardsVectors)
      masks.assign(columns.size(), createIsNonzero(b, loc, element));
    for (size_t vector = 0; vector < columns.size(); ++vector) {
      Value sum = sums[i * columns.size() + vector];
      Value a = element, v = row[vector];
      if (guardsFactors) {
        Value &factor = guardsVectors ? a : v;
        factor = arith::SelectOp::create(b, loc, masks[vector], factor,
                                         zeroConstant(b, loc, factor.getType()));
      }
      Value next = instruction.create(b, loc, a, v, sum);
      if (guarded && !guardsFactors)
        next = arith::SelectOp::create(b, loc, masks[vector], next, sum);
      result.push_back(next);
    }
  }
  return result;
}

void attn::createContraction(OpBuilder &builder, const Contraction &contraction, const Start &start,
                             CpuAttr cpu, Epilogue *epilogue) {
  Lowering(builder, contraction, start, cpu, epilogue).run();
}
