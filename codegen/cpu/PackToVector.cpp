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
// linalg.transpose is lowered likewise: the blocks span the innermost dimensions of its input and output, not counting
// unit dimensions. Blocks at the edges are masked. Elements that are not f32, or not adjacent in both operands, are
// copied one by one. With `from_rows`, attn.pack copies rows as vectors. Columns of the last panel beyond the source
// become zero.
//
// The pass leaves alone tensors, and any linalg.transpose that keeps the innermost dimension innermost.
// Test: test/codegen/cpu/pack-to-vector.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/StridedView.h"
#include "codegen/cpu/Transpose.h"
#include "dialect/Attn.h"

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

/// A copy between two views: out[x] = scale * source[x] for every point x of the loops.
struct Copy {
  Location loc;
  StridedView source, out;
  /// Lanes of the vectors, 0 if elements are copied one by one.
  int64_t lanes;
  /// The factor for f32 elements, if any.
  std::optional<double> scale;

  Value scaled(OpBuilder &b, Value value) const;
  void elements(OpBuilder &b, Cursor from, Cursor to, ArrayRef<unsigned> loops,
                ArrayRef<OpFoldResult> begins, ArrayRef<OpFoldResult> ends) const;
  void rows(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
            OpFoldResult numRows, OpFoldResult numColumns) const;
  void transposed(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
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

/// `value`, an element or a vector of them, times the scale.
Value Copy::scaled(OpBuilder &b, Value value) const {
  if (!scale)
    return value;
  return arith::MulFOp::create(b, loc, value, floatConstant(b, loc, value.getType(), *scale));
}

void Copy::elements(OpBuilder &b, Cursor from, Cursor to, ArrayRef<unsigned> loops,
                    ArrayRef<OpFoldResult> begins, ArrayRef<OpFoldResult> ends) const {
  if (loops.empty()) {
    Value element = memref::LoadOp::create(b, loc, from.view.row, from.index);
    memref::StoreOp::create(b, loc, scaled(b, element), to.view.row, to.index);
    return;
  }
  forEach(b, loc, begins.front(), ends.front(), 1, [&](OpBuilder &inner, Value i) {
    elements(inner, from.advance(inner, loc, loops.front(), i),
             to.advance(inner, loc, loops.front(), i), loops.drop_front(), begins.drop_front(),
             ends.drop_front());
  });
}

/// Copies rows whose elements are adjacent in the source and in the output.
void Copy::rows(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
                OpFoldResult numRows, OpFoldResult numColumns) const {
  OpFoldResult zero = b.getIndexAttr(0);
  if (lanes == 0)
    return elements(b, from, to, {row, column}, {zero, zero}, {numRows, numColumns});
  forEach(b, loc, zero, numRows, 1, [&](OpBuilder &inner, Value i) {
    Cursor fromRow = from.advance(inner, loc, row, i), toRow = to.advance(inner, loc, row, i);
    forEachVector(inner, loc, numColumns, lanes, {},
                  [&](OpBuilder &vector, const Lanes &l, ValueRange) {
                    Value value = l.load(vector, loc, from.view.row,
                                         fromRow.advance(vector, loc, column, l.offset).index);
                    l.store(vector, loc, scaled(vector, value), to.view.row,
                            toRow.advance(vector, loc, column, l.offset).index);
                    return SmallVector<Value>();
                  });
  });
}

/// Copies elements that are adjacent along `column` in the source and along `row` in the output.
void Copy::transposed(OpBuilder &b, Cursor from, Cursor to, unsigned row, unsigned column,
                      OpFoldResult numRows, OpFoldResult numColumns) const {
  OpFoldResult zero = b.getIndexAttr(0);
  if (lanes == 0)
    return elements(b, from, to, {row, column}, {zero, zero}, {numRows, numColumns});
  createTransposedCopy(
      b, loc, lanes, numRows, numColumns,
      [&](OpBuilder &inner, Value i, const Lanes &l) {
        Cursor at = from.advance(inner, loc, row, i).advance(inner, loc, column, l.offset);
        return scaled(inner, l.load(inner, loc, from.view.row, at.index));
      },
      [&](OpBuilder &inner, Value j, const Lanes &l, Value vector) {
        Cursor at = to.advance(inner, loc, column, j).advance(inner, loc, row, l.offset);
        l.store(inner, loc, vector, to.view.row, at.index);
      });
}

/// Calls `body` for each point of the loops with the cursors moved there.
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

/// Whether vectors can be used for this operand: its elements are f32 and adjacent along `loop`.
static bool isAdjacent(Value memref, AffineMap map, unsigned loop) {
  auto type = cast<MemRefType>(memref.getType());
  return type.getElementType().isF32() && (*getLoopStrides(type, map))[loop] == 1;
}

//===----------------------------------------------------------------------===//
// attn.pack
//===----------------------------------------------------------------------===//

/// The loops are batch..., panel, k, n, where n is the column inside a panel.
static void lowerPack(OpBuilder &builder, PackOp op, CpuAttr cpu) {
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  Value source = op.getSource(), out = op.getOuts()[0];
  auto outType = cast<MemRefType>(out.getType());
  unsigned batch = outType.getRank() - 3, panel = batch, k = batch + 1, n = batch + 2,
           numLoops = batch + 3;
  SmallVector<unsigned> sourceLoops = llvm::to_vector(llvm::seq(batch));
  if (op.getFromRows())
    sourceLoops.append({k, n});
  else
    sourceLoops.append({n, k});
  AffineMap sourceMap = AffineMap::getMultiDimMapWithTargets(numLoops, sourceLoops, context);
  AffineMap outMap = AffineMap::getMultiDimIdentityMap(numLoops, context);

  int64_t width = outType.getShape().back();
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(builder, loc, out);
  OpFoldResult columns =
      memref::getMixedSize(builder, loc, source, op.getFromRows() ? batch + 1 : batch);
  bool isVector =
      isAdjacent(out, outMap, n) && isAdjacent(source, sourceMap, op.getFromRows() ? n : k);
  Copy copy{loc, StridedView::create(builder, loc, source, sourceMap),
            StridedView::create(builder, loc, out, outMap), isVector ? int64_t(cpu.getLanes()) : 0,
            op.getScale() ? std::optional(op.getScale()->convertToDouble()) : std::nullopt};

  auto emitPanel = [&](OpBuilder &b, Cursor from, Cursor to, OpFoldResult used) {
    if (op.getFromRows())
      copy.rows(b, from, to, k, n, sizes[k], used);
    else
      copy.transposed(b, from, to, n, k, used, sizes[k]);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(outType.getElementType()));
    forEach(b, loc, b.getIndexAttr(0), sizes[k], 1, [&](OpBuilder &row, Value i) {
      forEach(row, loc, used, row.getIndexAttr(width), 1, [&](OpBuilder &inner, Value j) {
        Cursor at = to.advance(inner, loc, k, i).advance(inner, loc, n, j);
        memref::StoreOp::create(inner, loc, zero, at.view.row, at.index);
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
  AffineMap sourceMap = AffineMap::getMultiDimIdentityMap(sourceType.getRank(), op.getContext());
  AffineMap outMap = AffineMap::getPermutationMap(op.getPermutation(), op.getContext());
  if (failed(getLoopStrides(sourceType, sourceMap)) || failed(getLoopStrides(outType, outMap)))
    return failure();

  // The innermost dimensions of input and output must differ; otherwise rows stay rows.
  auto innermost = [&](AffineMap map) -> std::optional<unsigned> {
    for (AffineExpr expr : llvm::reverse(map.getResults()))
      if (unsigned loop = cast<AffineDimExpr>(expr).getPosition(); sourceType.getDimSize(loop) != 1)
        return loop;
    return std::nullopt;
  };
  std::optional<unsigned> column = innermost(sourceMap), row = innermost(outMap);
  if (!column || row == column)
    return failure();
  SmallVector<unsigned> others;
  for (unsigned loop = 0; loop < sourceMap.getNumDims(); ++loop)
    if (loop != row && loop != column)
      others.push_back(loop);

  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(builder, loc, source);
  bool isVector = isAdjacent(source, sourceMap, *column) && isAdjacent(out, outMap, *row);
  Copy copy{loc, StridedView::create(builder, loc, source, sourceMap),
            StridedView::create(builder, loc, out, outMap), isVector ? int64_t(cpu.getLanes()) : 0,
            std::nullopt};
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
