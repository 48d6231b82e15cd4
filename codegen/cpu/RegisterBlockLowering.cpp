//===- RegisterBlockLowering.cpp - contractions in register blocks ---------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Contraction.h"
#include "codegen/cpu/Prefetch.h"
#include "codegen/cpu/StridedView.h"
#include "passes/plan/RegisterBlocks.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace attn;

/// The shortest sum that gets a second accumulator, if there are registers for it.
static constexpr int64_t kLongChain = 64;
/// How far ahead vectors that are used once are asked for: what a core reads from memory in the time
/// that memory takes to answer.
static constexpr int64_t kVectorsAhead = 64;

namespace {

/// Emits one contraction. Loop nest: outer loops, n, m, then the reductions of one register block.
class Lowering {
public:
  Lowering(OpBuilder &builder, const Contraction &contraction, const Start &start,
           TargetAttr target, Epilogue *epilogue);

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
  /// Where a block begins: an index into the row of each operand.
  struct Origin {
    Value scalar, vector, out, start;
  };
  Value constant(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Origin advance(OpBuilder &b, Origin origin, unsigned loop, Value count);

  void emitOuter(OpBuilder &b, ArrayRef<unsigned> loops, Origin origin);
  void emitColumns(OpBuilder &b, Origin origin);
  /// Vectors side by side, the first at column `offset`; `mask` of the last, or null.
  SmallVector<Lanes> columnsAt(OpBuilder &b, Value offset, int64_t count, Value mask);
  void emitRows(OpBuilder &b, Origin origin, ArrayRef<Lanes> columns);
  SmallVector<Value> emitBlock(OpBuilder &b, Origin origin, Value row, int64_t rows,
                               ArrayRef<Lanes> columns, ValueRange carried);
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

  Value splat(OpBuilder &b, Value scalar) {
    return vector::BroadcastOp::create(b, loc, VectorType::get(lanes, b.getF32Type()), scalar);
  }

  OpBuilder &builder;
  Location loc;
  std::optional<unsigned> guarded;
  const Contraction::Roles &roles;
  TargetAttr target;
  Epilogue *epilogue;
  int64_t lanes;
  RegisterBlock block;
  int64_t wholeHeight;               // rows of the tallest block of the whole product
  std::optional<int64_t> depthBlock; // of the sum, if it is split
  SmallVector<OpFoldResult> sizes;   // of each loop
  StridedView scalars, vectors, out, start;
  Value startScalar; // instead of a start view
  // The vectors come from memory, and
  bool passesOnce; // one block has all the rows that they meet, or
  bool isPanel;    // many do, and those of a step lie behind those of the step before.
};

} // namespace

/// The number of columns as far as known: the size of a tile that is ragged at the edge only is its
/// bound.
static int64_t boundOf(OpFoldResult size) {
  FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, ValueBoundsConstraintSet::Variable(size),
      /*stopCondition=*/nullptr,
      /*closedUB=*/true);
  return succeeded(bound) ? *bound : ShapedType::kDynamic;
}

Lowering::Lowering(OpBuilder &builder, const Contraction &contraction, const Start &start,
                   TargetAttr target, Epilogue *epilogue)
    : builder(builder), loc(contraction.op->getLoc()), guarded(contraction.guarded),
      roles(*contraction.roles), target(target), epilogue(epilogue), lanes(target.getLanes()),
      sizes(getLoopSizes(builder, contraction.op)) {
  linalg::LinalgOp op = contraction.op;
  block = chooseRegisterBlock(target, boundOf(sizes[roles.n]), guarded.has_value());
  auto view = [&](OpOperand *operand) {
    return StridedView::create(builder, loc, operand->get(), op.getMatchingIndexingMap(operand));
  };
  scalars = view(op.getDpsInputOperand(1 - roles.vectorInput));
  vectors = view(op.getDpsInputOperand(roles.vectorInput));
  out = view(op.getDpsInitOperand(0));
  std::optional<int64_t> rowCount =
      roles.m ? getConstantIntValue(sizes[*roles.m]) : std::optional<int64_t>(1);
  bool isFromMemory = isOfArgument(op.getDpsInputOperand(roles.vectorInput)->get()) &&
                      vectors.strides[roles.reductions.back()];
  passesOnce = rowCount && *rowCount <= block.rows && isFromMemory;
  isPanel = isFromMemory && !passesOnce && !epilogue && roles.reductions.size() == 1 &&
            block.vectors * lanes >= kElementsPerLine &&
            getConstantIntValue(vectors.strides[roles.reductions.front()]) == block.vectors * lanes;
  std::optional<int64_t> split = contraction.getSplit(target);
  if (!start.writer && !epilogue)
    depthBlock = split;
  // An epilogue waits for the whole sum: its parts stay in registers, of fewer rows.
  if (epilogue && split)
    block = fitTwoSums(target, block);
  // With an epilogue, the rows may be the tail of a larger tile, whose sums have the order of whole blocks.
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

/// Full blocks of columns, then the rest, whose last vector may be partial: one narrower block where
/// their number is known, otherwise halves down to a vector: more loads, but no multiplication more, and
/// not a piece of code for each number.
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

/// Blocks of the full height, then lower ones: the known remainder, or halves down to single rows.
void Lowering::emitRows(OpBuilder &b, Origin origin, ArrayRef<Lanes> columns) {
  SmallVector<Value> carried;
  if (epilogue)
    carried = epilogue->begin(b, columns);
  SmallVector<int64_t> heights = {roles.m ? block.rows : 1};
  OpFoldResult size = roles.m ? sizes[*roles.m] : b.getIndexAttr(1), begin = b.getIndexAttr(0);
  if (std::optional<int64_t> rowCount = getConstantIntValue(size))
    heights.push_back(*rowCount % heights.front());
  else
    for (int64_t height = block.rows / 2; height > 0; height /= 2)
      heights.push_back(height);
  for (int64_t height : heights) {
    // Each height divides those before it; a known remainder takes what is left.
    OpFoldResult end = height == heights.back() ? size : roundDown(b, loc, size, height);
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

SmallVector<Value> Lowering::emitBlock(OpBuilder &b, Origin origin, Value row, int64_t rows,
                                       ArrayRef<Lanes> columns, ValueRange carried) {
  auto rowIndex = [&](OpBuilder &inner, StridedView &view, Value index, int64_t i) {
    return roles.m ? view.advance(inner, loc, index, *roles.m, constant(inner, i)) : index;
  };
  auto columnIndex = [&](OpBuilder &inner, StridedView &view, Value index, int64_t vector) {
    return view.advance(inner, loc, index, roles.n, constant(inner, vector * lanes));
  };
  // What was summed up before is added last: a sum in parts errs less than one long chain.
  Value initial = startScalar ? splat(b, startScalar)
                              : floatConstant(b, loc, VectorType::get(lanes, b.getF32Type()), 0);
  SmallVector<Value> sums, rowNumbers;
  for (int64_t i = 0; i < rows; ++i) {
    rowNumbers.push_back(b.createOrFold<arith::AddIOp>(loc, row, constant(b, i)));
    for (size_t vector = 0; vector < columns.size(); ++vector)
      sums.push_back(initial);
  }
  sums =
      emitReductions(b, roles.reductions, origin.scalar, origin.vector, sums, rowNumbers, columns);
  for (int64_t i = 0; !startScalar && i < rows; ++i)
    for (size_t vector = 0; vector < columns.size(); ++vector) {
      Value index = columnIndex(b, start, rowIndex(b, start, origin.start, i), vector);
      Value first = start.strides[roles.n]
                        ? columns[vector].load(b, loc, start.row, index)
                        : splat(b, memref::LoadOp::create(b, loc, start.row, index));
      Value &sum = sums[i * columns.size() + vector];
      sum = arith::AddFOp::create(b, loc, first, sum);
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
  // Every other step adds to sums of its own where registers are left for them: shorter chains err less, and wait
  // less. The height of whole blocks decides for their tails too, so that equal rows have equal sums.
  bool alternates = isEven && target.getFma() && length.value_or(0) >= kLongChain &&
                    fitsRegisters(target, {2 * wholeHeight, width}, guarded.has_value());
  // Two steps an iteration where they always come in pairs and it pays: blocks that are not full are for
  // edges. Not where products are separate instructions: LLVM moves them up until they spill.
  bool isFull = height == block.rows;
  bool inPairs = target.getFma() && isEven && (isFull || alternates);
  int64_t steps = inPairs ? 2 : 1;
  SmallVector<Value> initial(sums);
  if (alternates)
    initial.append(sums.size(), floatConstant(b, loc, VectorType::get(lanes, b.getF32Type()), 0));
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
    total = arith::AddFOp::create(b, loc, total, part);
  return totals;
}

/// The rows of later blocks come from memory while this one is computed, at `k`:
/// - rows that are neighbours: an element stands for all of a line, which at least two blocks share. In pairs of
///   steps each block asks for every other element of the last row of the block after the next, and so two blocks
///   for all of a line before the first that reads it, wherever lines begin;
/// - rows behind each other: a part of the stretch that the next block is;
/// - others: an element of the row whose turn it is.
/// The last two not in single steps. At the last block that is what lies behind the operand, often the next
/// tile; an address is never wrong.
void Lowering::prefetchNextRows(OpBuilder &b, unsigned loop, Value row, Value k, Value scalarIndex,
                                int64_t steps) {
  assert(2 * block.rows <= kElementsPerLine && "two steps ask for more than a line");
  auto advance = [&](Value index, unsigned along, Value count) {
    return scalars.advance(b, loc, index, along, count);
  };
  unsigned m = *roles.m;
  Value rows = constant(b, block.rows);
  std::optional<int64_t> stride = getConstantIntValue(scalars.strides[m]),
                         length = getConstantIntValue(sizes[loop]);
  Value index;
  if (stride == 1 && steps == 2) {
    Value number = arith::DivUIOp::create(b, loc, row, rows);
    Value parity = arith::RemUIOp::create(b, loc, number, constant(b, 2));
    index = advance(advance(scalarIndex, m, constant(b, 3 * block.rows - 1)), loop, parity);
  } else if (stride == 1) {
    index = advance(scalarIndex, m, rows);
  } else if (steps == 2 && length && stride == length &&
             getConstantIntValue(scalars.strides[loop]) == 1) {
    // The index is at step `k` of this block already.
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

/// What lies behind the vectors of this sum, those of its next part or of the next panel, comes to the
/// second cache while the rows pass: of a pair of steps, at `k`, a line, so that a block of rows asks for
/// an eighth of it, of four vectors of 16. More blocks ask for the last lines again.
void Lowering::prefetchNextPanel(OpBuilder &b, int64_t length, Value row, Value k,
                                 Value vectorIndex) {
  int64_t elements = length * block.vectors * lanes, share = length / 2 * kElementsPerLine;
  Value blocks = arith::DivUIOp::create(b, loc, row, constant(b, block.rows));
  Value first =
      arith::MinUIOp::create(b, loc, arith::MulIOp::create(b, loc, blocks, constant(b, share)),
                             constant(b, elements - share));
  Value line = arith::AddIOp::create(
      b, loc, first, arith::MulIOp::create(b, loc, k, constant(b, kElementsPerLine / 2)));
  Value behind = arith::AddIOp::create(b, loc, vectorIndex, constant(b, elements));
  Value index = arith::AddIOp::create(b, loc, behind, line);
  createPrefetch(b, loc, vectors.row, index, Cache::Second);
}

/// The vectors of a later step come from memory while those at `vectorIndex` are used.
void Lowering::prefetchVectors(OpBuilder &b, unsigned loop, Value vectorIndex, int64_t width) {
  Value ahead = vectors.advance(b, loc, vectorIndex, loop, constant(b, kVectorsAhead / width));
  int64_t vectorsPerLine = std::max<int64_t>(kElementsPerLine / lanes, 1);
  for (int64_t vector = 0; vector < width; vector += vectorsPerLine)
    createPrefetch(b, loc, vectors.row,
                   vectors.advance(b, loc, ahead, roles.n, constant(b, vector * lanes)));
}

/// One element of each row times one row of vectors.
SmallVector<Value> Lowering::emitStep(OpBuilder &b, Value scalarIndex, Value vectorIndex,
                                      ValueRange sums, int64_t rows, ArrayRef<Lanes> columns) {
  VectorType type = VectorType::get(lanes, b.getF32Type());
  auto isNonzero = [&](Value vector) -> Value {
    Value zero = floatConstant(b, loc, type, 0.0);
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, vector, zero);
  };
  SmallVector<Value> row, masks;
  for (auto [vector, lanesOfVector] : llvm::enumerate(columns)) {
    Value index = vectors.advance(b, loc, vectorIndex, roles.n, constant(b, vector * lanes));
    row.push_back(lanesOfVector.load(b, loc, vectors.row, index));
    if (guarded == roles.vectorInput)
      masks.push_back(isNonzero(row.back()));
  }
  SmallVector<Value> result;
  for (int64_t i = 0; i < rows; ++i) {
    Value index =
        roles.m ? scalars.advance(b, loc, scalarIndex, *roles.m, constant(b, i)) : scalarIndex;
    Value element = splat(b, memref::LoadOp::create(b, loc, scalars.row, index));
    if (guarded && *guarded != roles.vectorInput)
      masks.assign(columns.size(), isNonzero(element));
    for (size_t vector = 0; vector < columns.size(); ++vector) {
      Value sum = sums[i * columns.size() + vector];
      Value next = vector::FMAOp::create(b, loc, element, row[vector], sum);
      if (guarded)
        next = arith::SelectOp::create(b, loc, masks[vector], next, sum);
      result.push_back(next);
    }
  }
  return result;
}

void attn::createContraction(OpBuilder &builder, const Contraction &contraction, const Start &start,
                             TargetAttr target, Epilogue *epilogue) {
  Lowering(builder, contraction, start, target, epilogue).run();
}
