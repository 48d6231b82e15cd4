//===- OnlineRows.cpp - the online softmax with queries in rows -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.online_step rows ins(%query, %key, %value : ...) outs(%scores, %max, %sum, %acc : memref<4x512xf32>, ...) at(%q0, %k0)
// becomes
//   %scores = %query * %key^T                        // dot products
//   scf.for %q = 0 to 4 {
//     %greatest = scf.for %k = 0 to 512 step 16 ...  // the maximum of the row and of the old maximum, across lanes
//     %alpha = exp2(the exponent of the old max relative to %greatest)
//     %l = scf.for %k = 0 to 512 step 16 ...         // probabilities in place of scores, and their sum
//     %max[%q] = %greatest    %sum[%q] = %alpha * %sum[%q] + %l    %acc[%q] *= %alpha
//   }
//   %acc += %scores * %value                         // by register blocks with the queries in rows
//
// The maximum and the sum of a query are scalars, which are broadcast to all lanes. Maxima, hidden pairs and the
// product that skips zeros are as in OnlineToVector.cpp. Lanes beyond the last key have a score of -inf and a
// probability of 0. Test: test/codegen/cpu/online-rows.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/OnlineRows.h"
#include "codegen/cpu/ContractToVector.h"
#include "codegen/cpu/OnlineProducts.h"
#include "codegen/cpu/ScoreRegion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
/// Emits the ops of one query, a vector at a time.
struct RowBuilder {
  Location loc;
  CpuAttr cpu;
  VectorType type;

  RowBuilder(Location loc, CpuAttr cpu)
      : loc(loc), cpu(cpu),
        type(VectorType::get(cpu.getLanes(), Float32Type::get(cpu.getContext()))) {}

  Value constant(OpBuilder &b, double value) const { return floatConstant(b, loc, type, value); }
  Value add(OpBuilder &b, Value x, Value y) const { return arith::AddFOp::create(b, loc, x, y); }
  Value multiply(OpBuilder &b, Value x, Value y) const {
    return arith::MulFOp::create(b, loc, x, y);
  }
  Value select(OpBuilder &b, Value condition, Value yes, Value no) const {
    return arith::SelectOp::create(b, loc, condition, yes, no);
  }
  Value toAll(OpBuilder &b, Value scalar) const {
    return vector::BroadcastOp::create(b, loc, type, scalar);
  }
  Value isEqual(OpBuilder &b, Value x, double value) const {
    return createIsEqual(b, loc, x, value);
  }

  /// The element of `state` at `indices`, in all lanes.
  Value load(OpBuilder &b, Value state, ValueRange indices) const {
    return toAll(b, memref::LoadOp::create(b, loc, state, indices));
  }
  /// Stores lane 0 of `value`, whose lanes are all equal.
  void store(OpBuilder &b, Value value, Value state, ValueRange indices) const {
    Value scalar = vector::ExtractOp::create(b, loc, value, int64_t(0));
    memref::StoreOp::create(b, loc, scalar, state, indices);
  }

  /// Calls `body` for every query of `tile`, whose dimension 0 has the queries.
  void forEachQuery(OpBuilder &builder, Value tile,
                    function_ref<void(OpBuilder &, Value)> body) const {
    createLoop(builder, loc, builder.getIndexAttr(0), memref::getMixedSize(builder, loc, tile, 0),
               1, {}, [&](OpBuilder &b, Value q, ValueRange) {
                 body(b, q);
                 return SmallVector<Value>();
               });
  }
  /// Calls `body` for every vector of the last dimension of `tile`.
  SmallVector<Value> forEachVector(OpBuilder &builder, Value tile, ValueRange inits,
                                   VectorBody body) const {
    int64_t last = cast<MemRefType>(tile.getType()).getRank() - 1;
    return attn::forEachVector(builder, loc, memref::getMixedSize(builder, loc, tile, last),
                               cpu.getLanes(), inits, body);
  }
  /// Replaces each vector in row `q` of `tile` by the result of `change`.
  void update(OpBuilder &builder, Value tile, Value q,
              function_ref<Value(OpBuilder &, const Lanes &, Value)> change) const {
    forEachVector(builder, tile, {}, [&](OpBuilder &b, const Lanes &lanes, ValueRange) {
      SmallVector<Value> at = {q, lanes.offset};
      lanes.store(b, loc, change(b, lanes, lanes.load(b, loc, tile, at)), tile, at);
      return SmallVector<Value>();
    });
  }

  /// Replaces -inf in `maxima` by 0: a row without keys has the maximum -inf, and -inf - -inf is NaN.
  Value finite(OpBuilder &b, Value maxima) const {
    return createReplace(b, loc, maxima, -kInfinity, 0);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// attn.online_init
//===----------------------------------------------------------------------===//

void attn::lowerRows(IRRewriter &rewriter, OnlineInitOp op, CpuAttr cpu) {
  RowBuilder row(op.getLoc(), cpu);
  row.forEachQuery(rewriter, op.getAcc(), [&](OpBuilder &b, Value q) {
    row.store(b, row.constant(b, -kInfinity), op.getMax(), q);
    row.store(b, row.constant(b, 0), op.getSum(), q);
    row.forEachVector(b, op.getAcc(), {}, [&](OpBuilder &inner, const Lanes &e, ValueRange) {
      e.store(inner, row.loc, row.constant(inner, 0), op.getAcc(), {q, e.offset});
      return SmallVector<Value>();
    });
  });
}

//===----------------------------------------------------------------------===//
// attn.online_step
//===----------------------------------------------------------------------===//

/// Emits the product that writes `scores`, then calls `createRow` for each row of `scores`.
template <typename OpTy>
static LogicalResult lowerScores(IRRewriter &rewriter, OpTy op, Value scores, CpuAttr cpu,
                                 void (*createRow)(OpBuilder &, OpTy, const RowBuilder &,
                                                   const ScoreRegion &, Value q)) {
  ScoreProducts products = createScoreProducts(rewriter, op, scores, cpu);
  if (failed(lowerContraction(rewriter, products.contraction, products.zero, cpu)))
    return failure();
  rewriter.setInsertionPoint(op);
  RowBuilder row(op.getLoc(), cpu);
  ScoreRegion region(op);
  row.forEachQuery(rewriter, scores,
                   [&](OpBuilder &b, Value q) { createRow(b, op, row, region, q); });
  return success();
}

/// Turns the products of query `q` in `scores` into scores, and returns the greatest of them and of `oldMax`, in all
/// lanes.
static Value createScores(OpBuilder &builder, const RowBuilder &row, const ScoreRegion &region,
                          Value scores, Value q, Value oldMax) {
  Value greatest = row.forEachVector(
      builder, scores, oldMax, [&](OpBuilder &b, const Lanes &k, ValueRange carried) {
        SmallVector<Value> at = {q, k.offset};
        Value lowest = row.constant(b, -kInfinity);
        Value score = k.load(b, row.loc, scores, at, lowest);
        if (!region.isIdentity()) {
          score = region.createScores(b, score, q, region.createSpan(b, k));
          k.store(b, row.loc, score, scores, at);
          if (k.mask)
            score = row.select(b, k.mask, score, lowest);
        }
        return SmallVector<Value>{createMax(b, row.loc, score, carried[0])};
      })[0];
  // No lane of the maximum is NaN.
  return row.toAll(builder,
                   vector::ReductionOp::create(builder, row.loc, vector::CombiningKind::MAXNUMF,
                                               greatest, arith::FastMathFlags::nnan));
}

static void createUpdate(OpBuilder &builder, OnlineStepOp op, const RowBuilder &row,
                         const ScoreRegion &region, Value q) {
  Location loc = row.loc;
  CpuAttr cpu = row.cpu;
  Value scores = op.getScores(), zero = row.constant(builder, 0), one = row.constant(builder, 1);
  Value oldMax = row.load(builder, op.getMax(), q);
  Value newMax = createScores(builder, row, region, scores, q, oldMax);
  auto relativeTo = [&](Value max) {
    return region.createExponents(builder, row.finite(builder, max), cpu);
  };
  Exponents relative = relativeTo(newMax);
  Value sums = row.forEachVector(
      builder, scores, zero, [&](OpBuilder &b, const Lanes &k, ValueRange carried) {
        SmallVector<Value> at = {q, k.offset};
        Value score = k.load(b, loc, scores, at);
        Value probability = createProbabilities(b, loc, score, relative, cpu)[0];
        if (region.canHide())
          probability = row.select(b, row.isEqual(b, score, -kInfinity), zero, probability);
        k.store(b, loc, probability, scores, at);
        if (k.mask)
          probability = row.select(b, k.mask, probability, zero);
        return SmallVector<Value>{row.add(b, carried[0], probability)};
      })[0];
  Value tileSum =
      row.toAll(builder, vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, sums,
                                                     arith::FastMathFlags::reassoc));
  if (!region.canHide()) {
    // If all products are -inf, the row stays empty: its sum is 0. NaN stays NaN.
    Value isEmpty = row.isEqual(builder, newMax, -kInfinity);
    tileSum = row.multiply(builder, tileSum, row.select(builder, isEmpty, zero, one));
  }

  // If the old maximum is -inf, there is nothing to rescale yet.
  Value change = relativeTo(oldMax).changeTo(builder, relative);
  Value alpha = createExp2(builder, loc, change, cpu, Underflow::Live)[0];
  alpha = row.select(builder, row.isEqual(builder, oldMax, -kInfinity), one, alpha);
  row.store(builder, newMax, op.getMax(), q);
  Value oldSum = row.load(builder, op.getSum(), q);
  row.store(builder, createMultiplyAdd(builder, loc, alpha, oldSum, tileSum), op.getSum(), q);
  row.update(builder, op.getAcc(), q,
             [&](OpBuilder &b, const Lanes &, Value acc) { return row.multiply(b, acc, alpha); });
}

LogicalResult attn::lowerRows(IRRewriter &rewriter, OnlineStepOp op, CpuAttr cpu) {
  if (failed(lowerScores(rewriter, op, op.getScores(), cpu, createUpdate)))
    return failure();
  return weighValues(rewriter, op, cpu);
}

//===----------------------------------------------------------------------===//
// attn.online_probabilities
//===----------------------------------------------------------------------===//

static void createNormalised(OpBuilder &builder, OnlineProbabilitiesOp op, const RowBuilder &row,
                             const ScoreRegion &region, Value q) {
  Location loc = row.loc;
  Value zero = row.constant(builder, 0);
  Value max = row.load(builder, op.getMax(), q), sum = row.load(builder, op.getSum(), q);
  Exponents relative = region.createExponents(builder, row.finite(builder, max), row.cpu);
  Value isEmpty = row.isEqual(builder, sum, 0);
  Value emptyRow = row.constant(builder, valueOf(op.getEmptyRow()));
  Value inverse = row.select(builder, isEmpty, emptyRow,
                             arith::DivFOp::create(builder, loc, row.constant(builder, 1), sum));
  // As in OnlineToVector.cpp, the probability of a pair that the mask hides is 0. The probability of another pair with
  // a score of -inf is NaN if the sum of its row is NaN, and otherwise 0.
  Value unweighted = op.getMask() ? zero : row.multiply(builder, zero, inverse);
  Value hidden = row.select(builder, isEmpty, emptyRow, unweighted);
  row.update(builder, op.getProbabilities(), q, [&](OpBuilder &b, const Lanes &k, Value product) {
    Value score = region.createScores(b, product, q, region.createSpan(b, k));
    Value probability = createProbabilities(b, loc, score, relative, row.cpu)[0];
    probability = row.multiply(b, probability, inverse);
    if (!region.canHide())
      return probability;
    return row.select(b, row.isEqual(b, score, -kInfinity), hidden, probability);
  });
}

LogicalResult attn::lowerRows(IRRewriter &rewriter, OnlineProbabilitiesOp op, CpuAttr cpu) {
  return lowerScores(rewriter, op, op.getProbabilities(), cpu, createNormalised);
}

//===----------------------------------------------------------------------===//
// attn.online_merge
//===----------------------------------------------------------------------===//

void attn::lowerRows(IRRewriter &rewriter, OnlineMergeOp op, CpuAttr cpu) {
  Location loc = op.getLoc();
  RowBuilder row(loc, cpu);
  double factor = op.getScale().convertToDouble() * llvm::numbers::log2e;
  OpFoldResult first = rewriter.getIndexAttr(0);
  OpFoldResult numParts = memref::getMixedSize(rewriter, loc, op.getPartMax(), 0);
  row.forEachQuery(rewriter, op.getAcc(), [&](OpBuilder &builder, Value q) {
    Value oldMax = row.load(builder, op.getMax(), q);
    Value newMax = createLoop(builder, loc, first, numParts, 1, oldMax,
                              [&](OpBuilder &b, Value n, ValueRange carried) {
                                Value partMax = row.load(b, op.getPartMax(), {n, q});
                                return SmallVector<Value>{createMax(b, loc, partMax, carried[0])};
                              })[0];
    auto relativeTo = [&](OpBuilder &b, Value max) {
      return Exponents(b, loc, row.finite(b, max), factor, cpu);
    };
    Exponents relative = relativeTo(builder, newMax);
    Value ofNoKeys = row.select(builder, row.isEqual(builder, newMax, -kInfinity),
                                row.constant(builder, 1), row.constant(builder, 0));
    auto createFactor = [&](OpBuilder &b, Value max) {
      Value change = relativeTo(b, max).changeTo(b, relative);
      return row.select(b, row.isEqual(b, max, -kInfinity), ofNoKeys,
                        createExp2(b, loc, change, cpu, Underflow::Live)[0]);
    };

    Value ofState = createFactor(builder, oldMax);
    row.store(builder, newMax, op.getMax(), q);
    row.update(builder, op.getAcc(), q, [&](OpBuilder &b, const Lanes &, Value acc) {
      return row.multiply(b, acc, ofState);
    });
    Value start = row.multiply(builder, ofState, row.load(builder, op.getSum(), q));
    Value total = createLoop(
        builder, loc, first, numParts, 1, start, [&](OpBuilder &b, Value n, ValueRange carried) {
          Value ofPart = createFactor(b, row.load(b, op.getPartMax(), {n, q}));
          row.update(b, op.getAcc(), q, [&](OpBuilder &inner, const Lanes &e, Value acc) {
            Value part = e.load(inner, loc, op.getPartAcc(), {n, q, e.offset});
            return createMultiplyAdd(inner, loc, ofPart, part, acc);
          });
          Value partSum = row.load(b, op.getPartSum(), {n, q});
          return SmallVector<Value>{createMultiplyAdd(b, loc, ofPart, partSum, carried[0])};
        })[0];
    row.store(builder, total, op.getSum(), q);
  });
}

//===----------------------------------------------------------------------===//
// attn.online_finish
//===----------------------------------------------------------------------===//

void attn::lowerRows(IRRewriter &rewriter, OnlineFinishOp op, CpuAttr cpu) {
  Location loc = op.getLoc();
  RowBuilder row(loc, cpu);
  auto outType = cast<MemRefType>(op.getOut().getType());
  row.forEachQuery(rewriter, op.getAcc(), [&](OpBuilder &builder, Value q) {
    Value sum = row.load(builder, op.getSum(), q);
    Value inverse = arith::DivFOp::create(builder, loc, row.constant(builder, 1), sum);
    Value isEmpty = row.isEqual(builder, sum, 0);
    Value emptyRow = row.constant(builder, valueOf(op.getEmptyRow()));
    row.forEachVector(builder, op.getAcc(), {}, [&](OpBuilder &b, const Lanes &e, ValueRange) {
      Value acc = e.load(b, loc, op.getAcc(), {q, e.offset});
      Value quotient = row.select(b, isEmpty, emptyRow, row.multiply(b, acc, inverse));
      quotient = createConversion(b, loc, quotient, outType.getElementType());
      e.store(b, loc, quotient, op.getOut(), {q, e.offset});
      return SmallVector<Value>();
    });
  });
}
