//===- DotProducts.cpp - contractions with lanes along the sum -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/DotProducts.h"
#include "codegen/cpu/Prefetch.h"
#include "codegen/cpu/StridedView.h"
#include "codegen/cpu/Transpose.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

std::optional<DotProducts> DotProducts::match(const Contraction &contraction) {
  linalg::LinalgOp op = contraction.op;
  if (contraction.skipsZeros || op.getNumReductionLoops() != 1)
    return std::nullopt;
  auto stride = [&](OpOperand *operand, unsigned loop) {
    return (*getLoopStrides(cast<MemRefType>(operand->get().getType()),
                            op.getMatchingIndexingMap(operand)))[loop];
  };
  // Lanes along the sum need no grouping.
  const MultiplyAdd *instruction = contraction.instruction;
  if (instruction->group != 1)
    return std::nullopt;
  SmallVector<unsigned> reductions, parallel;
  op.getReductionDims(reductions);
  op.getParallelDims(parallel);
  for (OpOperand *input : op.getDpsInputOperands())
    if (stride(input, reductions.front()) != 1)
      return std::nullopt;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto isForRows = [&](unsigned loop, unsigned input) {
    return stride(op.getDpsInitOperand(0), loop) == 1 &&
           stride(op.getDpsInputOperand(1 - input), loop) == 0;
  };
  // A loop of one step is possible too, whatever its strides, because they are not used.
  for (bool isSingle : {false, true})
    for (unsigned input : {1, 0})
      for (unsigned loop : parallel)
        if ((sizes[loop] == 1) == isSingle && (isSingle || isForRows(loop, input))) {
          DotProducts products = {op, *instruction, input, loop, reductions.front(), {}, {}};
          AffineMap rows = op.getMatchingIndexingMap(op.getDpsInputOperand(input));
          for (unsigned other : parallel)
            if (other != loop)
              (rows.isFunctionOfDim(other) ? products.outer : products.inner).push_back(other);
          return products;
        }
  return std::nullopt;
}

namespace {
struct DotBuilder {
  Location loc;
  const DotProducts &products;
  Type sumType;
  int64_t lanes;
  SmallVector<OpFoldResult> sizes; // of each loop
  StridedView rows, row, out;
  Value start;       // a scalar, or null for the output itself
  bool isFromMemory; // the rows come from memory, and more of them follow

  struct Origin {
    Value rows, row, out;
  };
  Origin advance(OpBuilder &b, Origin origin, unsigned loop, Value count) const {
    return {rows.advance(b, loc, origin.rows, loop, count),
            row.advance(b, loc, origin.row, loop, count),
            out.advance(b, loc, origin.out, loop, count)};
  }

  /// Runs `body` at every point of `loops`.
  void createLoops(OpBuilder &b, ArrayRef<unsigned> loops, Origin origin,
                   function_ref<void(OpBuilder &, Origin)> body) const {
    if (loops.empty())
      return body(b, origin);
    createLoop(b, loc, b.getIndexAttr(0), sizes[loops.front()], 1, {},
               [&](OpBuilder &inner, Value i, ValueRange) {
                 createLoops(inner, loops.drop_front(), advance(inner, origin, loops.front(), i),
                             body);
                 return SmallVector<Value>();
               });
  }

  void create(OpBuilder &builder, Origin origin) const {
    createLoops(builder, products.outer, origin, [&](OpBuilder &outer, Origin first) {
      forEachVector(
          outer, loc, sizes[products.n], lanes, {}, [&](OpBuilder &b, const Lanes &n, ValueRange) {
            createLoops(b, products.inner, first,
                        [&](OpBuilder &inner, Origin origin) { createVector(inner, n, origin); });
            return SmallVector<Value>();
          });
    });
  }

  /// Prefetches the row that is used L products later, while the row at `row` is used. Prefetching a line
  /// again, in the next pass or for its other elements, only costs an instruction slot.
  void prefetchNextRow(OpBuilder &b, Value row, const Lanes &k) const {
    Value count = arith::ConstantIndexOp::create(b, loc, lanes);
    Value next = rows.advance(b, loc, row, products.n, count);
    createPrefetch(b, loc, rows.row, rows.advance(b, loc, next, products.reduction, k.offset));
  }

  /// A vector that holds the sum of each of `sums` in its own lane.
  Value createTotals(OpBuilder &b, ArrayRef<Value> sums) const {
    VectorType type = VectorType::get(lanes, sumType);
    // Add them up one by one as long as this takes fewer shuffles than a transposition.
    if (int64_t(sums.size()) < lanes / 2) {
      SmallVector<Value> totals(lanes, floatConstant(b, loc, sumType, 0));
      for (auto [total, sum] : llvm::zip(totals, sums))
        total = vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, sum,
                                            arith::FastMathFlags::reassoc);
      return vector::FromElementsOp::create(b, loc, type, totals);
    }
    SmallVector<Value> parts(sums);
    parts.resize(lanes, floatConstant(b, loc, type, 0));
    parts = createTranspose(b, loc, parts);
    return reduceTree(
        parts, [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, loc, x, y); });
  }

  /// Emits L products, or fewer at the end.
  void createVector(OpBuilder &b, const Lanes &n, Origin origin) const {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    // Use only the existing rows if their number is known. Otherwise the last row replaces the rows beyond it.
    std::optional<int64_t> size = getConstantIntValue(sizes[products.n]);
    int64_t count = n.mask && size ? *size % lanes : lanes;
    Value last;
    if (n.mask && !size)
      last = arith::SubIOp::create(
          b, loc, getValueOrCreateConstantIndexOp(b, loc, sizes[products.n]), constant(1));
    SmallVector<Value> starts;
    for (int64_t i = 0; i < count; ++i) {
      Value index = b.createOrFold<arith::AddIOp>(loc, n.offset, constant(i));
      if (last)
        index = arith::MinUIOp::create(b, loc, index, last);
      starts.push_back(rows.advance(b, loc, origin.rows, products.n, index));
    }
    VectorType type = n.vectorOf(sumType);
    SmallVector<Value> sums(count, floatConstant(b, loc, type, 0));
    const MultiplyAdd &instruction = products.instruction;
    sums = forEachVector(
        b, loc, sizes[products.reduction], lanes, sums,
        [&](OpBuilder &inner, const Lanes &k, ValueRange carried) {
          auto load = [&](const StridedView &view, Value from) {
            Value at = view.advance(inner, loc, from, products.reduction, k.offset);
            return instruction.createFactors(inner, loc, k.load(inner, loc, view.row, at));
          };
          Value other = load(row, origin.row);
          SmallVector<Value> next;
          for (auto [from, sum] : llvm::zip_equal(starts, carried)) {
            if (isFromMemory)
              prefetchNextRow(inner, from, k);
            next.push_back(instruction.create(inner, loc, load(rows, from), other, sum));
          }
          return next;
        });
    Value total = createTotals(b, sums);
    Value at = out.advance(b, loc, origin.out, products.n, n.offset);
    Value from = start ? Value(vector::BroadcastOp::create(b, loc, type, start))
                       : n.load(b, loc, out.row, at);
    n.store(b, loc, arith::AddFOp::create(b, loc, from, total), out.row, at);
  }
};
} // namespace

void attn::createDotProducts(OpBuilder &builder, const DotProducts &products, const Start &start,
                             CpuAttr cpu) {
  linalg::LinalgOp op = products.op;
  Location loc = op.getLoc();
  auto view = [&](OpOperand *operand) {
    return StridedView::create(builder, loc, operand->get(), op.getMatchingIndexingMap(operand));
  };
  Type sumType = products.instruction.getSumType(builder.getContext());
  DotBuilder dot{loc,
                 products,
                 sumType,
                 cpu.getLanes(sumType),
                 getLoopSizes(builder, op),
                 view(op.getDpsInputOperand(products.rows)),
                 view(op.getDpsInputOperand(1 - products.rows)),
                 view(op.getDpsInitOperand(0)),
                 start.map ? Value() : start.value,
                 false};
  std::optional<int64_t> numRows = getConstantIntValue(dot.sizes[products.n]);
  dot.isFromMemory = isOfArgument(op.getDpsInputOperand(products.rows)->get()) &&
                     (!numRows || *numRows > dot.lanes);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  dot.create(builder, {zero, zero, zero});
}
