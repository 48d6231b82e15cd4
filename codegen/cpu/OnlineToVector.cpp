//===- OnlineToVector.cpp - the online softmax with queries in lanes -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.online_step ins(%query, %key, %value : ...) outs(%scores, %max, %sum, %acc : memref<128x48xf32>, ...) at(%q0, %k0)
// becomes
//   %scores = %key * %query                          // the product, by register blocks
//   scf.for %q = 0 to 48 step 16 {                   // a vector of queries
//     %greatest = scf.for %k = 0 to 128 step 4 ...   // the maximum of the tile and of the old maximum
//     %alpha = exp2(the exponent of the old max relative to %greatest)
//     %l = scf.for %k = 0 to 128 step 4 ...          // probabilities in place of scores, and their sum
//     vector.store %greatest, %max[%q]     vector.store (%alpha * sum + %l), %sum[%q]
//     scf.if (any %alpha != 1) { scf.for %e ... }    // acc *= %alpha
//   }
//   %acc += %value^T * %scores                       // by register blocks
//
// FusedStep.h lowers the first product and the update together, if register blocks have keys in rows and queries in
// lanes. The second product of a masked step skips pairs whose probability is 0, because 0 * NaN would be NaN. A
// probability is exactly 0 where the pair is not kept or its score is -inf, and at least about 2^-100 elsewhere. A step
// with neither mask nor region is an exception: it hides no pair, so only an infinite product gives a score of -inf,
// and the probability of this score may be 2^-100. If all scores of a row are -inf, the sum of the row stays 0. %max
// may be less than the greatest score as long as the probabilities are far from overflow, because sum, acc and all
// later probabilities are relative to the same maximum.
//
// The pass lowers attn.online_init, attn.online_probabilities, attn.online_merge and attn.online_finish in the same
// way; the lowering of finish also transposes acc. If the number of lanes does not divide the number of queries, the
// last vector of queries is masked. OnlineRows.h lowers ops with the attribute `rows`, whose operands have queries in
// rows. ScoreRegion.h defines the units of scores and max. The buffers of scores, maxima, sums and accumulators have
// elements of f32, and neighbouring queries are adjacent in them. Probabilities in groups have the element type of keys
// and values. The output of finish may have any strides.
// Test: test/codegen/cpu/online-to-vector.mlir, test/codegen/cpu/online-assembly.mlir, test/run/merge.test
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/ContractToVector.h"
#include "codegen/cpu/Exp2.h"
#include "codegen/cpu/FusedStep.h"
#include "codegen/cpu/GroupedRows.h"
#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/OnlineProducts.h"
#include "codegen/cpu/OnlineRows.h"
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/ScoreRegion.h"
#include "codegen/cpu/Transpose.h"
#include "dialect/Attn.h"
#include "passes/Product.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_ONLINETOVECTOR
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

/// The number of rows of the accumulator that an iteration writes.
static constexpr int64_t kRows = 4;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Verifies that `tiles` and `states` are f32 buffers whose last dimension is contiguous, or has one element. With
/// queries in rows, the maxima and sums in `states` are read one by one and may have any strides.
template <typename OpTy>
static LogicalResult verifyTiles(OpTy op, ValueRange tiles, ValueRange states) {
  auto isBuffer = [](Value value, bool isContiguous) {
    auto type = dyn_cast<MemRefType>(value.getType());
    return type && type.getElementType().isF32() &&
           (!isContiguous || isRowContiguous(type) || type.getShape().back() == 1);
  };
  for (auto [values, isContiguous] : {std::pair(tiles, true), std::pair(states, !op.getRows())})
    for (Value value : values)
      if (!isBuffer(value, isContiguous))
        return op.emitOpError() << "expected buffers of f32 with a contiguous last dimension, got "
                                << value.getType();
  return success();
}

/// Verifies that `buffers`, the factors of products, are strided buffers of types that an instruction multiplies.
static LogicalResult verifyFactors(Operation *op, ValueRange buffers, CpuAttr cpu) {
  for (Value buffer : buffers) {
    auto type = dyn_cast<MemRefType>(buffer.getType());
    Type sum = Float32Type::get(op->getContext());
    if (!type || !type.isStrided() ||
        !findMultiplyAdd(cpu, {type.getElementType(), type.getElementType(), sum}))
      return op->emitOpError() << "expected strided buffers of f32, f16 or bf16, got "
                               << buffer.getType();
  }
  return success();
}

static Value createMultiply(OpBuilder &builder, Location loc, Value a, Value b) {
  return arith::MulFOp::create(builder, loc, a, b);
}

static Value createSum(OpBuilder &builder, Location loc, Value a, Value b) {
  return arith::AddFOp::create(builder, loc, a, b);
}

//===----------------------------------------------------------------------===//
// attn.online_init
//===----------------------------------------------------------------------===//

static LogicalResult lower(OnlineInitOp op, CpuAttr cpu) {
  Value max = op.getMax(), sum = op.getSum(), acc = op.getAcc();
  if (failed(verifyTiles(op, acc, {max, sum})))
    return failure();
  IRRewriter builder(op);
  if (op.getRows()) {
    lowerRows(builder, op, cpu);
    return success();
  }
  Location loc = op.getLoc();
  forEachVector(builder, loc, memref::getMixedSize(builder, loc, max, 0), cpu.getLanes(), {},
                [&](OpBuilder &b, const Lanes &q, ValueRange) {
                  auto constant = [&](Value buffer, double value) {
                    Type type = getElementTypeOrSelf(buffer.getType());
                    return floatConstant(b, loc, q.vectorOf(type), value);
                  };
                  Value zero = constant(acc, 0);
                  q.store(b, loc, constant(max, -kInfinity), max, q.offset);
                  q.store(b, loc, zero, sum, q.offset);
                  createUnrolledLoop(b, loc, memref::getMixedSize(b, loc, acc, 0), kRows, {},
                                     [&](OpBuilder &b, ArrayRef<Value> es, ValueRange) {
                                       for (Value e : es)
                                         q.store(b, loc, zero, acc, {e, q.offset});
                                       return SmallVector<Value>();
                                     });
                  return SmallVector<Value>();
                });
  return success();
}

//===----------------------------------------------------------------------===//
// attn.online_step
//===----------------------------------------------------------------------===//

/// Emits the update of a vector of queries from stored products. Returns, for each query, whether the probabilities of
/// the tile relative to the old maximum add up to kBigSum or more.
static Value createUpdate(OpBuilder &builder, OnlineStepOp op, const ScoreRegion &region,
                          CpuAttr cpu, const Lanes &q) {
  Location loc = op.getLoc();
  int64_t unroll = exponentialsInFlight(cpu);
  Value scores = op.getScores(), max = op.getMax(), sum = op.getSum(), acc = op.getAcc();
  OpFoldResult numKeys = memref::getMixedSize(builder, loc, scores, 0);
  ScoreRegion::Span queries = region.createSpan(builder, q);
  Value oldMax = q.load(builder, loc, max, q.offset);
  Type type = oldMax.getType();

  // Compute the maximum over kept keys only, because a hidden score may have any value. Several independent maxima keep
  // the chain of dependent ops short. A maximum is never NaN, so a NaN score does not hide other scores.
  SmallVector<Value> greatest =
      createUnrolledLoop(builder, loc, numKeys, unroll, SmallVector<Value>(unroll, oldMax),
                         [&](OpBuilder &b, ArrayRef<Value> keys, ValueRange carried) {
                           SmallVector<Value> tile, maxima(carried);
                           for (Value k : keys)
                             tile.push_back(q.load(b, loc, scores, {k, q.offset}));
                           if (!region.isIdentity()) {
                             for (auto [score, k] : llvm::zip_equal(tile, keys))
                               score = region.createScores(b, score, k, queries);
                             for (auto [score, k] : llvm::zip_equal(tile, keys))
                               q.store(b, loc, score, scores, {k, q.offset});
                           }
                           for (auto [i, score] : llvm::enumerate(tile))
                             maxima[i] = createMax(b, loc, score, maxima[i]);
                           return maxima;
                         });
  Value newMax =
      reduceTree(greatest, [&](Value x, Value y) { return createMax(builder, loc, x, y); });

  // As long as every score is -inf, max is -inf, and -inf - -inf would be NaN.
  auto relativeTo = [&](Value max) {
    return region.createExponents(builder, createReplace(builder, loc, max, -kInfinity, 0), cpu);
  };
  Exponents relative = relativeTo(newMax);
  Value zero = floatConstant(builder, loc, type, 0), one = floatConstant(builder, loc, type, 1);
  Value tileSum = createUnrolledLoop(
      builder, loc, numKeys, unroll, zero,
      [&](OpBuilder &b, ArrayRef<Value> keys, ValueRange carried) {
        SmallVector<Value> tile;
        for (Value k : keys)
          tile.push_back(q.load(b, loc, scores, {k, q.offset}));
        SmallVector<Value> probabilities = createProbabilities(b, loc, tile, relative, cpu);
        for (auto [probability, score, k] : llvm::zip_equal(probabilities, tile, keys)) {
          if (region.canHide())
            probability = arith::SelectOp::create(b, loc, createIsEqual(b, loc, score, -kInfinity),
                                                  zero, probability);
          q.store(b, loc, probability, scores, {k, q.offset});
        }
        Value total =
            reduceTree(probabilities, [&](Value x, Value y) { return createSum(b, loc, x, y); });
        return SmallVector<Value>{createSum(b, loc, carried[0], total)};
      })[0];
  if (!region.canHide()) {
    // If all products are -inf, the row stays empty: its sum is 0. NaN stays NaN.
    Value isEmpty = createIsEqual(builder, loc, newMax, -kInfinity);
    tileSum = createMultiply(builder, loc, tileSum,
                             arith::SelectOp::create(builder, loc, isEmpty, zero, one));
  }

  // If the old maximum is -inf, there is nothing to rescale yet.
  Value change = relativeTo(oldMax).changeTo(builder, relative);
  Value alpha = createExp2(builder, loc, change, cpu, Underflow::Live)[0];
  alpha = arith::SelectOp::create(builder, loc, createIsEqual(builder, loc, oldMax, -kInfinity),
                                  one, alpha);
  Value oldSum = q.load(builder, loc, sum, q.offset);
  q.store(builder, loc, newMax, max, q.offset);
  q.store(builder, loc, createMultiplyAdd(builder, loc, alpha, oldSum, tileSum), sum, q.offset);

  Value changes = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, alpha, one);
  scf::IfOp::create(
      builder, loc, createAny(builder, loc, changes), [&](OpBuilder &inner, Location) {
        createUnrolledLoop(inner, loc, memref::getMixedSize(inner, loc, acc, 0), kRows, {},
                           [&](OpBuilder &b, ArrayRef<Value> es, ValueRange) {
                             for (Value e : es) {
                               Value row = q.load(b, loc, acc, {e, q.offset});
                               q.store(b, loc, createMultiply(b, loc, row, alpha), acc,
                                       {e, q.offset});
                             }
                             return SmallVector<Value>();
                           });
        scf::YieldOp::create(inner, loc);
      });
  Value limit = createMultiply(builder, loc, alpha, floatConstant(builder, loc, type, kBigSum));
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGE, tileSum, limit);
}

/// Rounds the probabilities that have replaced the scores, and stores them in groups.
static void createGroups(OpBuilder &builder, OnlineStepOp op, const MultiplyAdd &instruction,
                         CpuAttr cpu) {
  Location loc = op.getLoc();
  Value scores = op.getScores();
  GroupedRows groups(builder, loc, op.getProbabilities(), instruction);
  OpFoldResult numKeys = memref::getMixedSize(builder, loc, scores, 0);
  OpFoldResult whole = roundDown(builder, loc, numKeys, instruction.group);
  // The probabilities of key `first + i`; beyond the last key, they are 0.
  auto createRow = [&](OpBuilder &b, const Lanes &q, Value first, int64_t i, bool isFull) -> Value {
    Value k = b.createOrFold<arith::AddIOp>(loc, first,
                                            arith::ConstantIndexOp::create(b, loc, i).getResult());
    if (isFull || i == 0)
      return q.load(b, loc, scores, {k, q.offset});
    Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, k,
                                         getValueOrCreateConstantIndexOp(b, loc, numKeys));
    k = arith::SelectOp::create(b, loc, exists, k, first);
    Value row = q.load(b, loc, scores, {k, q.offset});
    return arith::SelectOp::create(b, loc, exists, row, floatConstant(b, loc, row.getType(), 0));
  };
  auto createPass = [&](OpFoldResult from, OpFoldResult to, bool isFull) {
    createLoop(builder, loc, from, to, instruction.group, {},
               [&](OpBuilder &b, Value first, ValueRange) {
                 forEachVector(b, loc, memref::getMixedSize(b, loc, scores, 1), cpu.getLanes(), {},
                               [&](OpBuilder &inner, const Lanes &q, ValueRange) {
                                 SmallVector<Value> rows;
                                 for (int64_t i = 0; i < instruction.group; ++i)
                                   rows.push_back(createRow(inner, q, first, i, isFull));
                                 groups.store(inner, loc, first, q, rows);
                                 return SmallVector<Value>();
                               });
                 return SmallVector<Value>();
               });
  };
  createPass(builder.getIndexAttr(0), whole, /*isFull=*/true);
  createPass(whole, numKeys, /*isFull=*/false);
}

static LogicalResult lower(OnlineStepOp op, CpuAttr cpu) {
  ScoreRegion region(op);
  if (failed(verifyTiles(op, {op.getScores(), op.getAcc()}, {op.getMax(), op.getSum()})) ||
      failed(verifyFactors(op, {op.getQuery(), op.getKey(), op.getValue()}, cpu)) ||
      failed(region.verify()))
    return failure();
  IRRewriter rewriter(op);
  if (op.getRows())
    return lowerRows(rewriter, op, cpu);
  const MultiplyAdd *ofGroups = nullptr;
  if (Value probabilities = op.getProbabilities()) {
    Type element = getElementTypeOrSelf(probabilities);
    for (const MultiplyAdd *row :
         findMultiplyAdds(cpu, {element, element, getElementTypeOrSelf(op.getAcc())}))
      if (row->group == op.getGroup() && row->createGroup)
        ofGroups = row;
    if (!ofGroups)
      return op.emitOpError() << "expected probabilities in groups that an instruction of "
                              << cpu.getLevel() << " adds, got " << op.getGroup() << " elements of "
                              << element;
  }
  Location loc = op.getLoc();
  ScoreProducts products = createScoreProducts(rewriter, op, op.getScores(), cpu);
  auto createUpdates = [&](OpBuilder &b) {
    Value no = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
    Value grows = forEachVector(
        b, loc, memref::getMixedSize(b, loc, op.getScores(), 1), cpu.getLanes(), no,
        [&](OpBuilder &inner, const Lanes &q, ValueRange carried) {
          Value isBig = createAny(inner, loc, createUpdate(inner, op, region, cpu, q));
          return SmallVector<Value>{arith::OrIOp::create(inner, loc, carried[0], isBig)};
        })[0];
    if (ofGroups)
      createGroups(b, op, *ofGroups, cpu);
    return grows;
  };
  // If a user edited the plan, a block may end in the middle of a group. The probabilities are then computed from
  // stored scores.
  bool endsWithGroups =
      !ofGroups || products.contraction.getBlock(cpu).getRows() % ofGroups->group == 0;
  if (areInRegisterBlocks(products.contraction) && endsWithGroups) {
    createFusedStep(rewriter, op, products.contraction, products.zero, cpu, region, ofGroups,
                    createUpdates);
    products.contraction.op->erase();
    products.zero.writer->erase();
  } else {
    if (failed(lowerContraction(rewriter, products.contraction, products.zero, cpu)))
      return failure();
    rewriter.setInsertionPoint(op);
    createUpdates(rewriter);
  }
  return weighValues(rewriter, op, cpu);
}

//===----------------------------------------------------------------------===//
// attn.online_probabilities
//===----------------------------------------------------------------------===//

static void createNormalised(OpBuilder &builder, OnlineProbabilitiesOp op,
                             const ScoreRegion &region, CpuAttr cpu, const Lanes &q) {
  Location loc = op.getLoc();
  int64_t unroll = exponentialsInFlight(cpu);
  Value scores = op.getProbabilities();
  ScoreRegion::Span queries = region.createSpan(builder, q);
  Value max = q.load(builder, loc, op.getMax(), q.offset);
  Type type = max.getType();
  Value zero = floatConstant(builder, loc, type, 0), one = floatConstant(builder, loc, type, 1);
  Exponents relative =
      region.createExponents(builder, createReplace(builder, loc, max, -kInfinity, 0), cpu);
  Value sum = q.load(builder, loc, op.getSum(), q.offset);
  Value isEmpty = createIsEqual(builder, loc, sum, 0);
  Value emptyRow = floatConstant(builder, loc, type, valueOf(op.getEmptyRow()));
  Value inverse = arith::SelectOp::create(builder, loc, isEmpty, emptyRow,
                                          arith::DivFOp::create(builder, loc, one, sum));
  // A pair that the mask hides has probability 0 even if other pairs of its row are NaN. Without a mask, every pair is
  // kept, so a NaN score makes all probabilities of its row NaN, including those of scores of -inf.
  Value unweighted = op.getMask() ? zero : createMultiply(builder, loc, zero, inverse);
  Value hidden = arith::SelectOp::create(builder, loc, isEmpty, emptyRow, unweighted);
  createUnrolledLoop(
      builder, loc, memref::getMixedSize(builder, loc, scores, 0), unroll, {},
      [&](OpBuilder &b, ArrayRef<Value> keys, ValueRange) {
        SmallVector<Value> tile;
        for (Value k : keys)
          tile.push_back(region.createScores(b, q.load(b, loc, scores, {k, q.offset}), k, queries));
        SmallVector<Value> probabilities = createProbabilities(b, loc, tile, relative, cpu);
        for (auto [probability, score, k] : llvm::zip_equal(probabilities, tile, keys)) {
          probability = createMultiply(b, loc, probability, inverse);
          if (region.canHide())
            probability = arith::SelectOp::create(b, loc, createIsEqual(b, loc, score, -kInfinity),
                                                  hidden, probability);
          q.store(b, loc, probability, scores, {k, q.offset});
        }
        return SmallVector<Value>();
      });
}

static LogicalResult lower(OnlineProbabilitiesOp op, CpuAttr cpu) {
  ScoreRegion region(op);
  Value scores = op.getProbabilities();
  if (failed(verifyTiles(op, scores, {op.getMax(), op.getSum()})) ||
      failed(verifyFactors(op, {op.getQuery(), op.getKey()}, cpu)) || failed(region.verify()))
    return failure();
  IRRewriter rewriter(op);
  if (op.getRows())
    return lowerRows(rewriter, op, cpu);
  ScoreProducts products = createScoreProducts(rewriter, op, scores, cpu);
  if (areInRegisterBlocks(products.contraction)) {
    createStoredProducts(rewriter, products.contraction, products.zero, cpu);
    products.contraction.op->erase();
    products.zero.writer->erase();
  } else if (failed(lowerContraction(rewriter, products.contraction, products.zero, cpu))) {
    return failure();
  }
  rewriter.setInsertionPoint(op);
  forEachVector(rewriter, op.getLoc(), memref::getMixedSize(rewriter, op.getLoc(), scores, 1),
                cpu.getLanes(), {}, [&](OpBuilder &b, const Lanes &q, ValueRange) {
                  createNormalised(b, op, region, cpu, q);
                  return SmallVector<Value>();
                });
  return success();
}

//===----------------------------------------------------------------------===//
// attn.online_merge
//===----------------------------------------------------------------------===//

/// Emits the merge of the parts of a vector of queries. Exponents are computed as in the steps that computed the parts,
/// so that the rounding errors of max * factor cancel.
static void createMerge(OpBuilder &builder, OnlineMergeOp op, CpuAttr cpu, const Lanes &q) {
  Location loc = op.getLoc();
  Value max = op.getMax(), sum = op.getSum(), acc = op.getAcc();
  OpFoldResult first = builder.getIndexAttr(0);
  OpFoldResult numParts = memref::getMixedSize(builder, loc, op.getPartMax(), 0);
  OpFoldResult numElements = memref::getMixedSize(builder, loc, acc, 0);
  Value oldMax = q.load(builder, loc, max, q.offset);
  Value newMax = createLoop(builder, loc, first, numParts, 1, oldMax,
                            [&](OpBuilder &b, Value n, ValueRange carried) {
                              Value partMax = q.load(b, loc, op.getPartMax(), {n, q.offset});
                              return SmallVector<Value>{createMax(b, loc, partMax, carried[0])};
                            })[0];

  double factor = op.getScale().convertToDouble() * llvm::numbers::log2e;
  auto relativeTo = [&](OpBuilder &b, Value max) {
    return Exponents(b, loc, createReplace(b, loc, max, -kInfinity, 0), factor, cpu);
  };
  Exponents relative = relativeTo(builder, newMax);
  Type type = newMax.getType();
  Value ofNoKeys = arith::SelectOp::create(
      builder, loc, createIsEqual(builder, loc, newMax, -kInfinity),
      floatConstant(builder, loc, type, 1), floatConstant(builder, loc, type, 0));
  auto createFactor = [&](OpBuilder &b, Value max) -> Value {
    Value change = relativeTo(b, max).changeTo(b, relative);
    return arith::SelectOp::create(b, loc, createIsEqual(b, loc, max, -kInfinity), ofNoKeys,
                                   createExp2(b, loc, change, cpu, Underflow::Live)[0]);
  };
  auto updateAcc = [&](OpBuilder &b, function_ref<Value(OpBuilder &, Value, Value)> update) {
    createUnrolledLoop(b, loc, numElements, kRows, {},
                       [&](OpBuilder &inner, ArrayRef<Value> es, ValueRange) {
                         for (Value e : es) {
                           Value row = q.load(inner, loc, acc, {e, q.offset});
                           q.store(inner, loc, update(inner, e, row), acc, {e, q.offset});
                         }
                         return SmallVector<Value>();
                       });
  };

  Value ofState = createFactor(builder, oldMax);
  q.store(builder, loc, newMax, max, q.offset);
  updateAcc(builder,
            [&](OpBuilder &b, Value, Value row) { return createMultiply(b, loc, row, ofState); });
  Value start = createMultiply(builder, loc, ofState, q.load(builder, loc, sum, q.offset));
  Value total = createLoop(
      builder, loc, first, numParts, 1, start, [&](OpBuilder &b, Value n, ValueRange carried) {
        Value ofPart = createFactor(b, q.load(b, loc, op.getPartMax(), {n, q.offset}));
        updateAcc(b, [&](OpBuilder &inner, Value e, Value row) {
          Value partRow = q.load(inner, loc, op.getPartAcc(), {n, e, q.offset});
          return createMultiplyAdd(inner, loc, ofPart, partRow, row);
        });
        Value partSum = q.load(b, loc, op.getPartSum(), {n, q.offset});
        return SmallVector<Value>{createMultiplyAdd(b, loc, ofPart, partSum, carried[0])};
      })[0];
  q.store(builder, loc, total, sum, q.offset);
}

static LogicalResult lower(OnlineMergeOp op, CpuAttr cpu) {
  if (failed(verifyTiles(op, {op.getPartAcc(), op.getAcc()},
                         {op.getPartMax(), op.getPartSum(), op.getMax(), op.getSum()})))
    return failure();
  IRRewriter builder(op);
  if (op.getRows()) {
    lowerRows(builder, op, cpu);
    return success();
  }
  forEachVector(builder, op.getLoc(), memref::getMixedSize(builder, op.getLoc(), op.getMax(), 0),
                cpu.getLanes(), {}, [&](OpBuilder &b, const Lanes &q, ValueRange) {
                  createMerge(b, op, cpu, q);
                  return SmallVector<Value>();
                });
  return success();
}

//===----------------------------------------------------------------------===//
// attn.online_finish
//===----------------------------------------------------------------------===//

static LogicalResult lower(OnlineFinishOp op, CpuAttr cpu) {
  int64_t lanes = cpu.getLanes();
  Value sum = op.getSum(), acc = op.getAcc(), out = op.getOut();
  if (failed(verifyTiles(op, acc, sum)))
    return failure();
  auto outType = cast<MemRefType>(out.getType());

  Location loc = op.getLoc();
  IRRewriter builder(op);
  if (op.getRows() && isRowContiguous(outType)) {
    lowerRows(builder, op, cpu);
    return success();
  }
  OpFoldResult numQueries = memref::getMixedSize(builder, loc, sum, 0);
  OpFoldResult numElements = memref::getMixedSize(builder, loc, acc, op.getRows() ? 1 : 0);
  double empty = valueOf(op.getEmptyRow());
  // The factors for the accumulators of a vector of queries, and the value of their empty rows.
  struct Divisor {
    Value inverse, isEmpty, emptyRow;
  };
  auto divisorOf = [&](OpBuilder &b, Value total) {
    Value one = floatConstant(b, loc, total.getType(), 1);
    return Divisor{arith::DivFOp::create(b, loc, one, total), createIsEqual(b, loc, total, 0),
                   floatConstant(b, loc, total.getType(), empty)};
  };
  auto createQuotient = [&](OpBuilder &b, Value value, const Divisor &divisor) -> Value {
    return arith::SelectOp::create(b, loc, divisor.isEmpty, divisor.emptyRow,
                                   createMultiply(b, loc, value, divisor.inverse));
  };

  if (isRowContiguous(outType)) {
    // One divisor serves all rows of a block.
    std::optional<std::pair<Value, Divisor>> last;
    createTransposedCopy(
        builder, loc, lanes, numElements, numQueries,
        [&](OpBuilder &b, Value e, const Lanes &q) {
          if (!last || last->first != q.offset)
            last = {q.offset, divisorOf(b, q.load(b, loc, sum, q.offset))};
          return createQuotient(b, q.load(b, loc, acc, {e, q.offset}), last->second);
        },
        [&](OpBuilder &b, Value q, const Lanes &e, Value row) {
          e.store(b, loc, createConversion(b, loc, row, outType.getElementType()), out,
                  {q, e.offset});
        });
    return success();
  }
  OpFoldResult first = builder.getIndexAttr(0);
  createLoop(builder, loc, first, numQueries, 1, {}, [&](OpBuilder &b, Value q, ValueRange) {
    Divisor divisor = divisorOf(b, memref::LoadOp::create(b, loc, sum, q));
    createLoop(b, loc, first, numElements, 1, {}, [&](OpBuilder &inner, Value e, ValueRange) {
      SmallVector<Value> at = {e, q};
      if (op.getRows())
        std::swap(at[0], at[1]);
      Value element = memref::LoadOp::create(inner, loc, acc, at);
      Value quotient = createConversion(inner, loc, createQuotient(inner, element, divisor),
                                        outType.getElementType());
      memref::StoreOp::create(inner, loc, quotient, out, ValueRange{q, e});
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
  return success();
}

namespace {
struct OnlineToVector : attn::impl::OnlineToVectorBase<OnlineToVector> {
  void runOnOperation() override {
    CpuAttr cpu = getCpu(getOperation());
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<OnlineInitOp, OnlineStepOp, OnlineProbabilitiesOp, OnlineMergeOp, OnlineFinishOp>(op))
        ops.push_back(op);
    });
    if (ops.empty())
      return;
    if (!cpu) {
      getOperation()->emitOpError()
          << "expected a module with " << AttnDialect::kTargetAttr << ", got none";
      return signalPassFailure();
    }
    for (Operation *op : ops) {
      LogicalResult result =
          llvm::TypeSwitch<Operation *, LogicalResult>(op)
              .Case<OnlineInitOp, OnlineStepOp, OnlineProbabilitiesOp, OnlineMergeOp,
                    OnlineFinishOp>([&](auto online) { return lower(online, cpu); });
      if (failed(result))
        return signalPassFailure();
      op->erase();
    }
  }
};
} // namespace
