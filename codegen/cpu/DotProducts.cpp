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
  // With the lanes along the sum, only instructions that add single products are supported.
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
  // A loop of one iteration can be n whatever its strides are, because they are not used.
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

/// The largest number of rows of the other input that are multiplied by the same L rows at a time.
static constexpr int64_t kOthers = 4;

namespace {
struct DotBuilder {
  Location loc;
  const DotProducts &products;
  Type sumType;
  int64_t lanes;
  SmallVector<OpFoldResult> sizes; // of each loop
  StridedView rows, row, out;
  Value start;       // a scalar, or null for the output itself
  bool isFromMemory; // the rows come from memory, and there may be more than L of them

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
            ArrayRef<unsigned> loops = products.inner;
            if (loops.empty()) {
              createVectors(b, n, first, 1);
              return SmallVector<Value>();
            }
            createLoops(b, loops.drop_back(), first, [&](OpBuilder &inner, Origin origin) {
              createOthers(inner, n, origin, loops.back());
            });
            return SmallVector<Value>();
          });
    });
  }

  /// Emits the products of L rows of one input with the rows of the other input along `loop`, of which at most kOthers
  /// are multiplied at a time.
  void createOthers(OpBuilder &builder, const Lanes &n, Origin origin, unsigned loop) const {
    OpFoldResult size = sizes[loop], begin = builder.getIndexAttr(0);
    int64_t most = std::min(kOthers, lanes);
    SmallVector<int64_t> counts = {most};
    if (std::optional<int64_t> known = getConstantIntValue(size))
      counts.push_back(*known % most);
    else
      for (int64_t count = most / 2; count > 0; count /= 2)
        counts.push_back(count);
    for (int64_t count : counts) {
      OpFoldResult end = count == counts.back() ? size : roundDown(builder, loc, size, count);
      createLoop(builder, loc, begin, end, count, {}, [&](OpBuilder &b, Value i, ValueRange) {
        createVectors(b, n, advance(b, origin, loop, i), count);
        return SmallVector<Value>();
      });
      begin = end;
    }
  }

  /// Prefetches the elements at k of the row that is L rows after `row`. The code may prefetch a line again: for other
  /// elements of the line, or when it multiplies the same rows by the next rows of the other input.
  void prefetchNextRow(OpBuilder &b, Value row, const Lanes &k) const {
    Value count = arith::ConstantIndexOp::create(b, loc, lanes);
    Value next = rows.advance(b, loc, row, products.n, count);
    createPrefetch(b, loc, rows.row, rows.advance(b, loc, next, products.reduction, k.offset));
  }

  /// Returns a vector whose lane i holds the sum of the lanes of `sums[i]`.
  Value createTotals(OpBuilder &b, ArrayRef<Value> sums) const {
    VectorType type = VectorType::get(lanes, sumType);
    // Add up the lanes of one sum after the other if this takes fewer shuffles.
    if (int64_t(sums.size()) < lanes / 2) {
      auto order = isa<FloatType>(sumType) ? arith::FastMathFlags::reassoc : arith::FastMathFlags::none;
      SmallVector<Value> totals(lanes, zeroConstant(b, loc, sumType));
      for (auto [total, sum] : llvm::zip(totals, sums))
        total = vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, sum, order);
      return vector::FromElementsOp::create(b, loc, type, totals);
    }
    SmallVector<Value> rows(sums);
    rows.resize(lanes, zeroConstant(b, loc, type));
    return createSumsOfLanes(b, loc, rows);
  }

  /// Emits the products of L rows of one input, or of fewer rows at its end, with `numOthers` rows of the other input.
  void createVectors(OpBuilder &b, const Lanes &n, Origin origin, int64_t numOthers) const {
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
    // A block has at most L accumulators: some of the L rows times all the other rows.
    auto other = [&](OpBuilder &inner, const StridedView &view, Value from, int64_t i) {
      return numOthers == 1 ? from
                            : view.advance(inner, loc, from, products.inner.back(), constant(i));
    };
    SmallVector<SmallVector<Value>> sums(numOthers);
    int64_t numRows = lanes / llvm::PowerOf2Ceil(numOthers);
    for (ArrayRef<Value> rest = starts; !rest.empty(); rest = rest.drop_front(numRows)) {
      numRows = std::min<int64_t>(numRows, rest.size());
      SmallVector<Value> block =
          createBlock(b, rest.take_front(numRows), numOthers, [&](OpBuilder &inner, int64_t i) {
            return other(inner, row, origin.row, i);
          });
      for (int64_t i = 0; i < numOthers; ++i)
        llvm::append_range(sums[i], ArrayRef(block).slice(i * numRows, numRows));
    }
    VectorType type = n.vectorOf(sumType);
    for (int64_t i = 0; i < numOthers; ++i) {
      Value total = createTotals(b, sums[i]);
      Value at = out.advance(b, loc, other(b, out, origin.out, i), products.n, n.offset);
      Value from = start ? Value(vector::BroadcastOp::create(b, loc, type, start))
                         : n.load(b, loc, out.row, at);
      n.store(b, loc, createAdd(b, loc, from, total), out.row, at);
    }
  }

  /// Returns the products of each of the rows at `starts` with `numOthers` rows of the other input, as vectors whose
  /// lanes are not added up yet. The products with the first of the other rows come first.
  SmallVector<Value> createBlock(OpBuilder &b, ArrayRef<Value> starts, int64_t numOthers,
                                 function_ref<Value(OpBuilder &, int64_t)> otherAt) const {
    const MultiplyAdd &instruction = products.instruction;
    Value zero = zeroConstant(b, loc, VectorType::get(lanes, sumType));
    SmallVector<Value> sums(starts.size() * numOthers, zero);
    return forEachVector(
        b, loc, sizes[products.reduction], lanes, sums,
        [&](OpBuilder &inner, const Lanes &k, ValueRange carried) {
          auto load = [&](const StridedView &view, Value from) {
            Value at = view.advance(inner, loc, from, products.reduction, k.offset);
            return instruction.createFactors(inner, loc, k.load(inner, loc, view.row, at));
          };
          SmallVector<Value> next(carried), factors;
          for (Value from : starts) {
            if (isFromMemory)
              prefetchNextRow(inner, from, k);
            factors.push_back(load(rows, from));
          }
          for (int64_t i = 0; i < numOthers; ++i) {
            Value other = load(row, otherAt(inner, i));
            for (auto [j, factor] : llvm::enumerate(factors)) {
              Value &sum = next[i * starts.size() + j];
              sum = instruction.create(inner, loc, factor, other, sum);
            }
          }
          return next;
        });
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
