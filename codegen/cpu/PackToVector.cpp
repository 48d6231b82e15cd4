//===- PackToVector.cpp - packing and transposing by shuffles --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.pack ins(%w : memref<64x768xf32>) outs(%p : memref<1x768x64xf32>)
// becomes, with vectors of 16 lanes,
//   scf.for %j = %c0 to %c64 step %c16 {
//     scf.for %i = %c0 to %c768 step %c16 {
//       %r0 = vector.load %wrow[...] : vector<16xf32>        // 16 rows of w, 16 elements of each
//       ...
//       %t = vector.shuffle %r0, %r1 [...]                   // 64 shuffles: the block transposed
//       ...
//       vector.store %t0, %prow[...]                         // 16 rows of the panel
//     }
//   }
// The pass lowers linalg.transpose in the same way: the blocks span the innermost dimensions of its input and output,
// not counting unit dimensions. Blocks at the edges are masked. Elements are copied one by one if they are not adjacent
// in both operands, or do not have 32 or 64 bits. Transposed 16-bit elements are an exception on CPUs with mask
// registers: if their type does not change, two rows are interleaved, and then transposed as one row of 32-bit
// elements. With `from_rows`, attn.pack copies rows as vectors. Columns of the last panel beyond the source become
// zero. With `group(g)`, the g elements of a group move as one element of g times the size. With both `group(g)` and
// `from_rows`, g rows are interleaved.
//
// The pass does not change ops on tensors, nor a linalg.transpose that keeps the innermost dimension innermost.
// Test: test/codegen/cpu/pack-to-vector.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/StridedView.h"
#include "codegen/cpu/Transpose.h"
#include "dialect/Attn.h"
#include "support/Loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PACKTOVECTOR
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {

/// A position in the source or in the output of a copy.
struct Cursor {
  const StridedView &view;
  Value index;

  Cursor advance(OpBuilder &b, Location loc, unsigned loop, Value count) const {
    return {view, view.advance(b, loc, index, loop, count)};
  }
  Cursor advance(OpBuilder &b, Location loc, unsigned loop, int64_t count) const {
    return advance(b, loc, loop, arith::ConstantIndexOp::create(b, loc, count));
  }
};

/// A copy between two views: out[x] = scale * source[x], rounded to `element`, for every point x of the loops.
struct Copy {
  Location loc;
  StridedView source, out;
  Type element;
  /// The number of lanes of the vectors; 0 if elements are copied one by one.
  int64_t lanes;
  /// The number of elements of one lane, which are adjacent in the output. `inner` is the loop over these elements;
  /// there is none if a lane has one element.
  int64_t group;
  std::optional<unsigned> inner;
  /// The factor for the elements, if any.
  std::optional<double> scale;
  /// The number of lanes if two rows are interleaved before they are transposed, so that each lane holds one element of
  /// each row; otherwise 0.
  int64_t pairLanes = 0;

  Value converted(OpBuilder &b, Value value) const;
  /// toGroups() casts a vector of elements to a vector of one integer for each group, and toElements() casts it back.
  /// Without groups, both return the vector.
  Value toGroups(OpBuilder &b, Value vector) const;
  Value toElements(OpBuilder &b, Value vector) const;
  void groups(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
              OpFoldResult numRows, OpFoldResult numColumns) const;
  void elements(OpBuilder &b, Cursor from, Cursor to, ArrayRef<unsigned> loops,
                ArrayRef<OpFoldResult> begins, ArrayRef<OpFoldResult> ends) const;
  void rows(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
            OpFoldResult numRows, OpFoldResult numColumns) const;
  void transposed(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
                  OpFoldResult numRows, OpFoldResult numColumns) const;
  void transposedPairs(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
                       OpFoldResult numRows, OpFoldResult numColumns) const;
};

} // namespace

static void forEach(OpBuilder &b, Location loc, OpFoldResult begin, OpFoldResult end, int64_t step,
                    llvm::function_ref<void(OpBuilder &, Value)> body) {
  createLoop(b, loc, begin, end, step, {}, [&](OpBuilder &inner, Value i, ValueRange) {
    body(inner, i);
    return SmallVector<Value>();
  });
}

/// Multiplies `value`, an element of the source or a vector of them, by the scale, and converts it to the type of the
/// output.
Value Copy::converted(OpBuilder &b, Value value) const {
  if (scale)
    value = arith::MulFOp::create(b, loc, value, floatConstant(b, loc, value.getType(), *scale));
  return createConversion(b, loc, value, element);
}

Value Copy::toGroups(OpBuilder &b, Value vector) const {
  if (group == 1)
    return vector;
  Type bits = b.getIntegerType(element.getIntOrFloatBitWidth() * group);
  return vector::BitCastOp::create(b, loc, VectorType::get(lanes, bits), vector);
}

Value Copy::toElements(OpBuilder &b, Value vector) const {
  if (group == 1)
    return vector;
  return vector::BitCastOp::create(b, loc, VectorType::get(lanes * group, element), vector);
}

void Copy::elements(OpBuilder &b, Cursor from, Cursor to, ArrayRef<unsigned> loops,
                    ArrayRef<OpFoldResult> begins, ArrayRef<OpFoldResult> ends) const {
  if (loops.empty()) {
    Value element = memref::LoadOp::create(b, loc, from.view.row, from.index);
    memref::StoreOp::create(b, loc, converted(b, element), to.view.row, to.index);
    return;
  }
  forEach(b, loc, begins.front(), ends.front(), 1, [&](OpBuilder &inner, Value i) {
    elements(inner, from.advance(inner, loc, loops.front(), i),
             to.advance(inner, loc, loops.front(), i), loops.drop_front(), begins.drop_front(),
             ends.drop_front());
  });
}

/// Copies groups of elements one by one.
void Copy::groups(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
                  OpFoldResult numRows, OpFoldResult numColumns) const {
  SmallVector<unsigned> loops = {row, column};
  SmallVector<OpFoldResult> begins(3, b.getIndexAttr(0));
  if (inner)
    loops.push_back(*inner);
  elements(b, from, to, loops, begins, {numRows, numColumns, b.getIndexAttr(group)});
}

/// Copies rows whose elements are adjacent in the source and in the output. With groups, a row of the output has the
/// elements of `group` rows of the source in turn.
void Copy::rows(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
                OpFoldResult numRows, OpFoldResult numColumns) const {
  if (lanes == 0)
    return groups(b, from, to, row, column, numRows, numColumns);
  forEach(b, loc, b.getIndexAttr(0), numRows, 1, [&](OpBuilder &outer, Value i) {
    Cursor fromRow = from.advance(outer, loc, row, i), toRow = to.advance(outer, loc, row, i);
    forEachVector(
        outer, loc, numColumns, lanes, {}, [&](OpBuilder &vector, const Lanes &l, ValueRange) {
          Cursor first = fromRow.advance(vector, loc, column, l.offset);
          SmallVector<Value> rows = {l.load(vector, loc, from.view.row, first.index)};
          for (int64_t r = 1; r < group; ++r)
            rows.push_back(
                l.load(vector, loc, from.view.row, first.advance(vector, loc, *inner, r).index));
          // With four rows, interleave rows 0 and 2, then rows 1 and 3, then both results.
          for (; rows.size() > 1; rows.resize(rows.size() / 2))
            for (size_t half = rows.size() / 2, r = 0; r < half; ++r)
              rows[r] = vector::InterleaveOp::create(vector, loc, rows[r], rows[r + half]);
          l.ofGroups(vector, loc, group)
              .store(vector, loc, converted(vector, rows[0]), to.view.row,
                     toRow.advance(vector, loc, column, l.offset).index);
          return SmallVector<Value>();
        });
  });
}

/// Copies elements that are adjacent along `column` in the source and along `row` in the output.
void Copy::transposed(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
                      OpFoldResult numRows, OpFoldResult numColumns) const {
  if (pairLanes > 0)
    return transposedPairs(b, from, to, row, column, numRows, numColumns);
  if (lanes == 0)
    return groups(b, from, to, row, column, numRows, numColumns);
  createTransposedCopy(
      b, loc, lanes, numRows, numColumns,
      [&](OpBuilder &block, Value i, const Lanes &l) {
        Cursor at = from.advance(block, loc, row, i).advance(block, loc, column, l.offset);
        Lanes elements = l.ofGroups(block, loc, group);
        return toGroups(block,
                        converted(block, elements.load(block, loc, from.view.row, at.index)));
      },
      [&](OpBuilder &block, Value j, const Lanes &l, Value vector) {
        Cursor at = to.advance(block, loc, column, j).advance(block, loc, row, l.offset);
        l.ofGroups(block, loc, group)
            .store(block, loc, toElements(block, vector), to.view.row, at.index);
      });
}

/// Interleaves two rows of the source, so that a lane has the two elements of a column, and transposes these lanes.
void Copy::transposedPairs(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
                           OpFoldResult numRows, OpFoldResult numColumns) const {
  AffineExpr s0 = b.getAffineSymbolExpr(0);
  OpFoldResult pairs = affine::makeComposedFoldedAffineApply(b, loc, s0.floorDiv(2), {numRows});
  auto firstRow = [&](OpBuilder &block, Value pair) -> Value {
    return arith::MulIOp::create(block, loc, pair, arith::ConstantIndexOp::create(block, loc, 2));
  };
  createTransposedCopy(
      b, loc, pairLanes, pairs, numColumns,
      [&](OpBuilder &block, Value pair, const Lanes &l) -> Value {
        Cursor first = from.advance(block, loc, row, firstRow(block, pair))
                           .advance(block, loc, column, l.offset),
               second = first.advance(block, loc, row, 1);
        Value even = l.load(block, loc, from.view.row, first.index),
              odd = l.load(block, loc, from.view.row, second.index);
        Value both =
            vector::InterleaveOp::create(block, loc, converted(block, even), converted(block, odd));
        return vector::BitCastOp::create(block, loc, VectorType::get(pairLanes, block.getI32Type()),
                                         both);
      },
      [&](OpBuilder &block, Value j, const Lanes &l, Value vector) {
        Cursor at =
            to.advance(block, loc, column, j).advance(block, loc, row, firstRow(block, l.offset));
        Value elements =
            vector::BitCastOp::create(block, loc, VectorType::get(2 * pairLanes, element), vector);
        l.ofGroups(block, loc, 2).store(block, loc, elements, to.view.row, at.index);
      });
  OpFoldResult none = b.getIndexAttr(0);
  OpFoldResult even = affine::makeComposedFoldedAffineApply(b, loc, s0.floorDiv(2) * 2, {numRows});
  elements(b, from, to, {row, column}, {even, none}, {numRows, numColumns});
}

/// Calls `body` for each point of the loops, with both cursors at this point.
static void forEachPoint(OpBuilder &b, Location loc, ArrayRef<unsigned> loops,
                         ArrayRef<OpFoldResult> sizes, Cursor from, Cursor to,
                         llvm::function_ref<void(OpBuilder &, Cursor, Cursor)> body) {
  if (loops.empty())
    return body(b, from, to);
  forEach(b, loc, b.getIndexAttr(0), sizes[loops.front()], 1, [&](OpBuilder &inner, Value i) {
    forEachPoint(inner, loc, loops.drop_front(), sizes, from.advance(inner, loc, loops.front(), i),
                 to.advance(inner, loc, loops.front(), i), body);
  });
}

/// Whether consecutive elements of an operand along `loop` are `distance` elements apart in memory. By default, whether
/// they are adjacent.
static bool isAdjacent(Value memref, AffineMap map, unsigned loop, int64_t distance = 1) {
  return (*getLoopStrides(cast<MemRefType>(memref.getType()), map))[loop] == distance;
}

/// The number of lanes of a vector of groups of elements; 0 if a group does not have 32 or 64 bits, the sizes that
/// every level can shuffle and mask.
static int64_t getLanes(CpuAttr cpu, Type element, int64_t group) {
  int64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() * group : 0;
  return bits == 32 || bits == 64 ? cpu.getVector() / bits : 0;
}

/// The value of Copy::pairLanes for elements of type `element`. It is 0 unless they have 16 bits and the CPU has mask
/// registers.
static int64_t getPairLanes(CpuAttr cpu, Type element) {
  bool canPair = element.isIntOrFloat() && element.getIntOrFloatBitWidth() == 16 &&
                 cpu.can(CpuCapabilities::Masks);
  return canPair ? cpu.getVector() / 32 : 0;
}

//===----------------------------------------------------------------------===//
// attn.pack
//===----------------------------------------------------------------------===//

/// The loops are batch..., panel, k, n and, if elements form groups, a loop over the elements of a group. n is the
/// column inside a panel. With groups, k counts groups.
static void lowerPack(OpBuilder &builder, PackOp op, CpuAttr cpu) {
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  Value source = op.getSource(), out = op.getOuts()[0];
  auto outType = cast<MemRefType>(out.getType());
  int64_t group = op.getGroup();
  unsigned numLoops = outType.getRank(), batch = numLoops - (group == 1 ? 3 : 4), panel = batch,
           k = batch + 1, n = batch + 2;
  std::optional<unsigned> inner = group == 1 ? std::nullopt : std::optional(batch + 3);
  SmallVector<unsigned> sourceLoops = llvm::to_vector(llvm::seq(batch));
  if (op.getFromRows())
    sourceLoops.append({k, n});
  else
    sourceLoops.append({n, k});
  AffineMap sourceMap = AffineMap::getMultiDimMapWithTargets(numLoops, sourceLoops, context);
  AffineMap outMap = AffineMap::getMultiDimIdentityMap(numLoops, context);

  int64_t width = outType.getDimSize(n);
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(builder, loc, out);
  OpFoldResult columns =
      memref::getMixedSize(builder, loc, source, op.getFromRows() ? batch + 1 : batch);
  bool isVector = isAdjacent(source, sourceMap, op.getFromRows() ? n : k) &&
                  isAdjacent(out, outMap, n, group) && (!inner || isAdjacent(out, outMap, *inner));
  Type element = outType.getElementType();
  Copy copy{loc,
            StridedView::create(builder, loc, source, sourceMap),
            StridedView::create(builder, loc, out, outMap),
            element,
            isVector ? getLanes(cpu, element, group) : 0,
            group,
            inner,
            op.getScale() ? std::optional(op.getScale()->convertToDouble()) : std::nullopt,
            isVector && group == 1 && getElementTypeOrSelf(source.getType()) == element
                ? getPairLanes(cpu, element)
                : 0};
  // The number of whole groups along k, and the number of elements of the last group if it is not whole.
  OpFoldResult wholeGroups = sizes[k], rest = builder.getIndexAttr(0);
  if (inner) {
    Value &stride = copy.source.strides[k];
    copy.source.strides[*inner] = stride;
    stride = builder.createOrFold<arith::MulIOp>(
        loc, stride, arith::ConstantIndexOp::create(builder, loc, group).getResult());
    OpFoldResult depth =
        memref::getMixedSize(builder, loc, source, op.getFromRows() ? batch : batch + 1);
    AffineExpr s0 = builder.getAffineSymbolExpr(0);
    wholeGroups = affine::makeComposedFoldedAffineApply(builder, loc, s0.floorDiv(group), {depth});
    rest = affine::makeComposedFoldedAffineApply(builder, loc, s0 % group, {depth});
  }

  auto emitPanel = [&](OpBuilder &b, Cursor from, Cursor to, OpFoldResult used) {
    OpFoldResult none = b.getIndexAttr(0), all = b.getIndexAttr(group);
    if (op.getFromRows())
      copy.rows(b, from, to, k, n, wholeGroups, used);
    else
      copy.transposed(b, from, to, n, k, used, wholeGroups);
    // If the last group is incomplete, zeros fill it. Columns beyond the source consist of zeros.
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    auto fill = [&](OpBuilder &at, Cursor to, OpFoldResult begin) {
      forEach(at, loc, begin, all, 1, [&](OpBuilder &last, Value l) {
        Value index = inner ? to.advance(last, loc, *inner, l).index : to.index;
        memref::StoreOp::create(last, loc, zero, to.view.row, index);
      });
    };
    if (inner)
      forEach(b, loc, wholeGroups, sizes[k], 1, [&](OpBuilder &row, Value i) {
        Cursor fromRow = from.advance(row, loc, k, i), toRow = to.advance(row, loc, k, i);
        copy.elements(row, fromRow, toRow, {n, *inner}, {none, none}, {used, rest});
        forEach(row, loc, none, used, 1, [&](OpBuilder &column, Value j) {
          fill(column, toRow.advance(column, loc, n, j), rest);
        });
      });
    forEach(b, loc, none, sizes[k], 1, [&](OpBuilder &row, Value i) {
      forEach(row, loc, used, row.getIndexAttr(width), 1, [&](OpBuilder &column, Value j) {
        fill(column, to.advance(column, loc, k, i).advance(column, loc, n, j), none);
      });
    });
  };

  Value first = arith::ConstantIndexOp::create(builder, loc, 0);
  auto batchLoops = llvm::to_vector(llvm::seq(batch));
  forEachPoint(builder, loc, batchLoops, sizes, {copy.source, first}, {copy.out, first},
               [&](OpBuilder &b, Cursor from, Cursor to) {
                 AffineExpr s0 = b.getAffineSymbolExpr(0);
                 OpFoldResult whole =
                     affine::makeComposedFoldedAffineApply(b, loc, s0.floorDiv(width), {columns});
                 auto at = [&](OpBuilder &inner, Value p) {
                   Value column = inner.createOrFold<arith::MulIOp>(
                       loc, p, arith::ConstantIndexOp::create(inner, loc, width).getResult());
                   return std::pair(from.advance(inner, loc, n, column),
                                    to.advance(inner, loc, panel, p));
                 };
                 forEach(b, loc, b.getIndexAttr(0), whole, 1, [&](OpBuilder &inner, Value p) {
                   auto [fromPanel, toPanel] = at(inner, p);
                   emitPanel(inner, fromPanel, toPanel, inner.getIndexAttr(width));
                 });
                 // At most one panel is left, with fewer columns.
                 forEach(b, loc, whole, sizes[panel], 1, [&](OpBuilder &inner, Value p) {
                   auto [fromPanel, toPanel] = at(inner, p);
                   OpFoldResult used =
                       affine::makeComposedFoldedAffineApply(inner, loc, s0 % width, {columns});
                   emitPanel(inner, fromPanel, toPanel, used);
                 });
               });
}

//===----------------------------------------------------------------------===//
// linalg.transpose
//===----------------------------------------------------------------------===//

/// The loops are the dimensions of the source. Fails if input and output have the same innermost dimension.
static LogicalResult lowerTranspose(OpBuilder &builder, linalg::TransposeOp op, CpuAttr cpu) {
  Location loc = op.getLoc();
  Value source = op.getInput(), out = op.getInit();
  auto sourceType = dyn_cast<MemRefType>(source.getType()),
       outType = dyn_cast<MemRefType>(out.getType());
  if (!sourceType || !outType)
    return failure();
  SmallVector<int64_t> ofSource = llvm::to_vector(llvm::seq(sourceType.getRank()));
  ArrayRef<int64_t> ofOut = op.getPermutation();
  AffineMap sourceMap = AffineMap::getPermutationMap(ofSource, op.getContext());
  AffineMap outMap = AffineMap::getPermutationMap(ofOut, op.getContext());
  if (failed(getLoopStrides(sourceType, sourceMap)) || failed(getLoopStrides(outType, outMap)))
    return failure();

  // The innermost dimensions of input and output must differ. Otherwise the op only reorders whole rows.
  auto innermost = [&](ArrayRef<int64_t> loops) -> std::optional<unsigned> {
    for (int64_t loop : llvm::reverse(loops))
      if (sourceType.getDimSize(loop) != 1)
        return loop;
    return std::nullopt;
  };
  std::optional<unsigned> column = innermost(ofSource), row = innermost(ofOut);
  if (!column || row == column)
    return failure();
  SmallVector<unsigned> others;
  for (unsigned loop = 0; loop < sourceMap.getNumDims(); ++loop)
    if (loop != row && loop != column)
      others.push_back(loop);

  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(builder, loc, source);
  bool isVector = isAdjacent(source, sourceMap, *column) && isAdjacent(out, outMap, *row);
  Copy copy{loc,
            StridedView::create(builder, loc, source, sourceMap),
            StridedView::create(builder, loc, out, outMap),
            sourceType.getElementType(),
            isVector ? getLanes(cpu, sourceType.getElementType(), /*group=*/1) : 0,
            /*group=*/1,
            /*inner=*/std::nullopt,
            /*scale=*/std::nullopt,
            isVector ? getPairLanes(cpu, sourceType.getElementType()) : 0};
  Value first = arith::ConstantIndexOp::create(builder, loc, 0);
  forEachPoint(builder, loc, others, sizes, {copy.source, first}, {copy.out, first},
               [&](OpBuilder &b, Cursor from, Cursor to) {
                 copy.transposed(b, from, to, *row, *column, sizes[*row], sizes[*column]);
               });
  return success();
}

namespace {
struct PackToVector : attn::impl::PackToVectorBase<PackToVector> {
  void runOnOperation() override {
    SmallVector<Operation *> copies;
    getOperation().walk([&](Operation *op) {
      if (auto pack = dyn_cast<PackOp>(op); pack && isa<MemRefType>(pack.getSource().getType()))
        copies.push_back(op);
      if (isa<linalg::TransposeOp>(op))
        copies.push_back(op);
    });
    if (copies.empty())
      return;
    CpuAttr cpu = getCpu(getOperation());
    if (!cpu) {
      getOperation().emitError() << "expected '" << AttnDialect::kTargetAttr
                                 << "' on an enclosing module";
      return signalPassFailure();
    }
    for (Operation *op : copies) {
      OpBuilder builder(op);
      if (auto pack = dyn_cast<PackOp>(op))
        lowerPack(builder, pack, cpu);
      else if (failed(lowerTranspose(builder, cast<linalg::TransposeOp>(op), cpu)))
        continue;
      op->erase();
    }
  }
};
} // namespace
