//===- OnlineToVector.cpp - the online softmax with queries in lanes -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.online_update outs(%scores, %max, %sum, %acc : memref<128x48xf32>, ...) at(%q0, %k0)
// becomes
//   scf.for %q = 0 to 48 step 16 {                   // a vector of queries
//     %m = scf.for %k = 0 to 128 step 4 ...          // maximum of the tile, from the old one
//     %alpha = exp2((old max - %m) * c)
//     %l = scf.for %k = 0 to 128 step 4 ...          // weights in place of scores, and their sum
//     vector.store %m, %max[%q]     vector.store (%alpha * sum + %l), %sum[%q]
//     scf.if (any %alpha != 1) { scf.for %e ... }    // acc *= %alpha
//   }
//
// and attn.online_init, attn.online_weights and attn.online_finish likewise; finish transposes L x
// L blocks. The last vector of queries is masked where L does not divide their number.
// Where a contraction computes %scores just before, most tiles never store a score nor look for a
// maximum: weights are relative to the maximum so far, and are made of the accumulators of each
// register block before those are stored. The sums of the tile tell whether the maximum was too
// small; then, and where there is none yet, scores are stored and the update is as above:
//
//   scf.while (%exact = any %max == -inf) {
//     %scores = product, from %exact ? 0 : -max, each block: %exact ? itself : weights, tile sums
//     %again = scf.if %exact { what is above; false }
//              else { %big = any (tile sums >= 2^16, or NaN); if not %big: sum += tile sums; %big }
//     scf.condition(%again)
//   }
//
// ScoreRegion.h says in which units scores and max are. All operands are f32 buffers whose queries
// are neighbours; the output of finish may have any strides. Test:
// test/codegen/cpu/online-to-vector.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Contraction.h"
#include "codegen/cpu/Exp2.h"
#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/ScoreRegion.h"
#include "codegen/cpu/TilePrefetch.h"
#include "codegen/cpu/Transpose.h"
#include "dialect/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_ONLINETOVECTOR
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

/// Rows of the accumulator written in one iteration.
static constexpr int64_t kRows = 4;
/// A register block of keys asks for one row.
static constexpr int64_t kKeysPerRow = 8;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// f32 buffers whose last dimension, the queries, is contiguous.
static LogicalResult verifyTiles(Operation *op, ValueRange tiles) {
  for (Value tile : tiles) {
    auto type = dyn_cast<MemRefType>(tile.getType());
    if (!type || !type.getElementType().isF32() || !isRowContiguous(type))
      return op->emitOpError() << "expected buffers of f32 with contiguous queries, got "
                               << tile.getType();
  }
  return success();
}

static Value createIsEqual(OpBuilder &builder, Location loc, Value value, double constant) {
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, value,
                               floatConstant(builder, loc, value.getType(), constant));
}

/// `replacement` in the lanes of `value` that hold `constant`.
static Value createReplace(OpBuilder &builder, Location loc, Value value, double constant,
                           double replacement) {
  Value isEqual = createIsEqual(builder, loc, value, constant);
  return arith::SelectOp::create(builder, loc, isEqual,
                                 floatConstant(builder, loc, value.getType(), replacement), value);
}

static Value createProduct(OpBuilder &builder, Location loc, Value a, Value b) {
  return arith::MulFOp::create(builder, loc, a, b);
}

static Value createSum(OpBuilder &builder, Location loc, Value a, Value b) {
  return arith::AddFOp::create(builder, loc, a, b);
}

/// exp(s - m) of each score, m and scores being in the units of the region.
static SmallVector<Value> createWeights(OpBuilder &builder, Location loc, ValueRange scores,
                                        Value m, const ScoreRegion &region) {
  auto differences = llvm::map_to_vector(
      scores, [&](Value s) -> Value { return arith::SubFOp::create(builder, loc, s, m); });
  return createExp2(builder, loc, differences, region.exponentFactor(), Underflow::Clamp);
}

/// Whether any lane of a vector of i1 is true.
static Value createAny(OpBuilder &builder, Location loc, Value lanes) {
  return vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, lanes);
}

static double valueOf(EmptyRow emptyRow) {
  return emptyRow == EmptyRow::Zero ? 0.0 : std::numeric_limits<double>::quiet_NaN();
}

//===----------------------------------------------------------------------===//
// attn.online_init
//===----------------------------------------------------------------------===//

static LogicalResult lower(OnlineInitOp op, TargetAttr target) {
  Value max = op.getOuts()[0], sum = op.getOuts()[1], acc = op.getOuts()[2];
  if (failed(verifyTiles(op, op.getOuts())))
    return failure();
  Location loc = op.getLoc();
  OpBuilder builder(op);
  forEachVector(builder, loc, memref::getMixedSize(builder, loc, max, 0), target.getLanes(), {},
                [&](OpBuilder &b, const Lanes &q, ValueRange) {
                  VectorType type = q.vectorOf(b.getF32Type());
                  Value zero = floatConstant(b, loc, type, 0);
                  q.store(b, loc, floatConstant(b, loc, type, -kInfinity), max, q.offset);
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
// attn.online_update
//===----------------------------------------------------------------------===//

static void createUpdate(OpBuilder &builder, OnlineUpdateOp op, const ScoreRegion &region,
                         int64_t unroll, const Lanes &q) {
  Location loc = op.getLoc();
  Value scores = op.getOuts()[0], max = op.getOuts()[1], sum = op.getOuts()[2],
        acc = op.getOuts()[3];
  OpFoldResult numKeys = memref::getMixedSize(builder, loc, scores, 0);
  ScoreRegion::Queries queries = region.createQueries(builder, q);
  VectorType type = q.vectorOf(builder.getF32Type());
  Value oldMax = q.load(builder, loc, max, q.offset);

  // The maximum over kept keys only: a hidden score may be anything. Several maxima keep the chain
  // short, and none is ever NaN, so that a NaN hides no other score.
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

  // Without a live key so far max stays -inf, and -inf - -inf would be NaN.
  Value reference = createReplace(builder, loc, newMax, -kInfinity, 0);
  Value zero = floatConstant(builder, loc, type, 0), one = floatConstant(builder, loc, type, 1);
  Value tileSum = createUnrolledLoop(
      builder, loc, numKeys, unroll, zero,
      [&](OpBuilder &b, ArrayRef<Value> keys, ValueRange carried) {
        SmallVector<Value> tile;
        for (Value k : keys)
          tile.push_back(q.load(b, loc, scores, {k, q.offset}));
        SmallVector<Value> weights = createWeights(b, loc, tile, reference, region);
        for (auto [weight, score, k] : llvm::zip_equal(weights, tile, keys)) {
          if (region.canHide())
            weight = arith::SelectOp::create(b, loc, createIsEqual(b, loc, score, -kInfinity), zero,
                                             weight);
          q.store(b, loc, weight, scores, {k, q.offset});
        }
        Value total =
            reduceTree(weights, [&](Value x, Value y) { return createSum(b, loc, x, y); });
        return SmallVector<Value>{createSum(b, loc, carried[0], total)};
      })[0];
  if (!region.canHide()) {
    // Products that are all -inf leave the row empty; NaN stays NaN.
    Value isEmpty = createIsEqual(builder, loc, newMax, -kInfinity);
    tileSum = createProduct(builder, loc, tileSum,
                            arith::SelectOp::create(builder, loc, isEmpty, zero, one));
  }

  // Before the first live key there is nothing to rescale, and -inf - max may overflow.
  Value alpha = createWeights(builder, loc, oldMax, reference, region)[0];
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
                               q.store(b, loc, createProduct(b, loc, row, alpha), acc,
                                       {e, q.offset});
                             }
                             return SmallVector<Value>();
                           });
        scf::YieldOp::create(inner, loc);
      });
}

namespace {
/// Makes weights of products while they are in registers, relative to the maximum so far; products
/// stay what they are where `exact` is true.
class WeightsEpilogue : public Epilogue {
public:
  WeightsEpilogue(OnlineUpdateOp op, const ScoreRegion &region, Value exact, Value tileSums,
                  int64_t inFlight)
      : loc(op.getLoc()), max(op.getOuts()[1]), region(region), exact(exact), tileSums(tileSums),
        inFlight(inFlight), prefetch(TilePrefetch::create(op)) {}

  SmallVector<Value> begin(OpBuilder &b, ArrayRef<Lanes> columns,
                           SmallVectorImpl<Value> &starts) override {
    SmallVector<Value> sums;
    maxima.clear();
    queries.clear();
    for (const Lanes &q : columns) {
      maxima.push_back(q.load(b, loc, max, q.offset));
      queries.push_back(region.createQueries(b, q));
      sums.push_back(floatConstant(b, loc, q.vectorOf(b.getF32Type()), 0));
      if (region.isIdentity()) // the difference comes with the product
        starts.push_back(arith::SelectOp::create(b, loc, exact, sums.back(),
                                                 arith::NegFOp::create(b, loc, maxima.back())));
    }
    return sums;
  }

  SmallVector<Value> apply(OpBuilder &b, ArrayRef<Value> rows, ArrayRef<Lanes> columns,
                           MutableArrayRef<Value> sums, ValueRange carried) override {
    prefetch.createNext(b, loc, rows.front(), kKeysPerRow);
    SmallVector<Value> products = llvm::to_vector(sums);
    products.append(carried.begin(), carried.end());
    auto choice = scf::IfOp::create(
        b, loc, exact,
        [&](OpBuilder &inner, Location) { scf::YieldOp::create(inner, loc, products); },
        [&](OpBuilder &inner, Location) {
          SmallVector<Value> weights = llvm::to_vector(sums);
          SmallVector<Value> tileSums(carried);
          replaceByWeights(inner, rows, columns, weights, tileSums);
          weights.append(tileSums);
          scf::YieldOp::create(inner, loc, weights);
        });
    llvm::copy(choice.getResults().take_front(sums.size()), sums.begin());
    return choice.getResults().drop_front(sums.size());
  }

  void end(OpBuilder &b, ArrayRef<Lanes> columns, ValueRange carried) override {
    for (auto [q, sum] : llvm::zip_equal(columns, carried))
      q.store(b, loc, sum, tileSums, q.offset);
  }

private:
  /// Replaces products by weights and adds those to the sums of their columns.
  void replaceByWeights(OpBuilder &b, ArrayRef<Value> rows, ArrayRef<Lanes> columns,
                        MutableArrayRef<Value> products, MutableArrayRef<Value> sums) {
    for (size_t first = 0; first < products.size(); first += inFlight) {
      MutableArrayRef<Value> group =
          products.slice(first, std::min<size_t>(inFlight, products.size() - first));
      SmallVector<Value> scores, differences;
      for (auto [i, value] : llvm::enumerate(group)) {
        size_t column = (first + i) % columns.size();
        if (!region.isIdentity()) {
          value =
              region.createScores(b, value, rows[(first + i) / columns.size()], queries[column]);
          scores.push_back(value);
          value = arith::SubFOp::create(b, loc, value, maxima[column]);
        }
        differences.push_back(value);
      }
      SmallVector<Value> weights = createExp2(b, loc, differences, region.exponentFactor(),
                                              Underflow::Clamp, Overflow::Clamp);
      for (auto [i, weight] : llvm::enumerate(weights)) {
        size_t column = (first + i) % columns.size();
        if (region.canHide())
          weight = arith::SelectOp::create(b, loc, createIsEqual(b, loc, scores[i], -kInfinity),
                                           floatConstant(b, loc, weight.getType(), 0), weight);
        sums[column] = createSum(b, loc, sums[column], weight);
        group[i] = weight;
      }
    }
  }

  Location loc;
  Value max;
  const ScoreRegion &region;
  Value exact, tileSums;
  size_t inFlight;
  TilePrefetch prefetch;
  SmallVector<Value> maxima;
  SmallVector<ScoreRegion::Queries> queries;
};

/// The product of an update: what computes its scores, from zero, just before.
struct Product {
  Contraction contraction;
  Start start;
};
} // namespace

static std::optional<Product> findProduct(OnlineUpdateOp op, AliasAnalysis &aliases) {
  Value scores = op.getOuts()[0];
  auto writer = dyn_cast_or_null<linalg::LinalgOp>(findLastAccess(op, scores, aliases));
  std::optional<Contraction> contraction = writer ? Contraction::match(writer) : std::nullopt;
  if (!contraction || writer.getDpsInits()[0] != scores || !contraction->roles ||
      contraction->guarded)
    return std::nullopt;
  // Rows are keys, lanes are queries.
  AffineMap map = writer.getMatchingIndexingMap(writer.getDpsInitOperand(0));
  if (!contraction->roles->m || map.getDimPosition(0) != *contraction->roles->m ||
      map.getDimPosition(1) != contraction->roles->n)
    return std::nullopt;
  Start start = findStart(*contraction, aliases);
  if (!start.writer || !matchPattern(start.value, m_AnyZeroFloat()))
    return std::nullopt;
  return Product{*contraction, start};
}

/// The most queries that a tile of scores has, from the buffer it is a part of.
static int64_t boundOfQueries(Value scores) {
  while (auto part = scores.getDefiningOp<memref::SubViewOp>())
    scores = part.getSource();
  return cast<MemRefType>(scores.getType()).getShape().back();
}

/// Whether any value of a row of vectors `is`, a comparison of one of them.
static Value createAnyOf(OpBuilder &builder, Location loc, Value row, int64_t lanes,
                         llvm::function_ref<Value(OpBuilder &, Value)> is) {
  Value no = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
  return forEachVector(builder, loc, memref::getMixedSize(builder, loc, row, 0), lanes, no,
                       [&](OpBuilder &b, const Lanes &q, ValueRange carried) {
                         Value any = createAny(b, loc, is(b, q.load(b, loc, row, q.offset)));
                         return SmallVector<Value>{arith::OrIOp::create(b, loc, carried[0], any)};
                       })[0];
}

static void lowerWithProduct(OpBuilder &builder, OnlineUpdateOp op, const Product &product,
                             int64_t boundOfQueries, TargetAttr target, const ScoreRegion &region,
                             llvm::function_ref<void(OpBuilder &)> createUpdates) {
  // Sums stay far from overflow, and accumulators with them.
  static constexpr double kBig = 1 << 16;
  Location loc = op.getLoc();
  int64_t lanes = target.getLanes();
  Value max = op.getOuts()[1], sum = op.getOuts()[2];
  OpBuilder entry = OpBuilder::atBlockBegin(&op->getParentOfType<func::FuncOp>().getBody().front());
  auto type = MemRefType::get({boundOfQueries}, builder.getF32Type());
  Value tileSums = memref::AllocaOp::create(entry, loc, type, entry.getI64IntegerAttr(64));
  OpFoldResult numQueries = memref::getMixedSize(builder, loc, sum, 0);
  tileSums = memref::SubViewOp::create(builder, loc, tileSums, {builder.getIndexAttr(0)},
                                       {numQueries}, {builder.getIndexAttr(1)});

  Value isFirst = createAnyOf(builder, loc, max, lanes, [&](OpBuilder &b, Value max) {
    return createIsEqual(b, loc, max, -kInfinity);
  });
  auto computeUntilRight = [&](OpBuilder &b, Location, ValueRange exact) {
    WeightsEpilogue epilogue(op, region, exact[0], tileSums, exponentialsInFlight(target));
    createContraction(b, product.contraction, product.start, target, &epilogue);
    auto updateExactly = [&](OpBuilder &inner, Location) {
      createUpdates(inner);
      Value no = arith::ConstantOp::create(inner, loc, inner.getBoolAttr(false));
      scf::YieldOp::create(inner, loc, no);
    };
    auto addSums = [&](OpBuilder &inner, Location) {
      Value isBig = createAnyOf(inner, loc, tileSums, lanes, [&](OpBuilder &c, Value sums) {
        return arith::CmpFOp::create(c, loc, arith::CmpFPredicate::UGE, sums,
                                     floatConstant(c, loc, sums.getType(), kBig));
      });
      auto addAll = [&](OpBuilder &c, Location) {
        forEachVector(c, loc, numQueries, lanes, {}, [&](OpBuilder &d, const Lanes &q, ValueRange) {
          Value total =
              createSum(d, loc, q.load(d, loc, sum, q.offset), q.load(d, loc, tileSums, q.offset));
          q.store(d, loc, total, sum, q.offset);
          return SmallVector<Value>();
        });
        scf::YieldOp::create(c, loc);
      };
      scf::IfOp::create(
          inner, loc, isBig, [&](OpBuilder &c, Location) { scf::YieldOp::create(c, loc); }, addAll);
      scf::YieldOp::create(inner, loc, isBig);
    };
    auto again = scf::IfOp::create(b, loc, exact[0], updateExactly, addSums);
    scf::ConditionOp::create(b, loc, again.getResult(0), again.getResults());
  };
  scf::WhileOp::create(
      builder, loc, TypeRange{isFirst.getType()}, isFirst, computeUntilRight,
      [&](OpBuilder &b, Location, ValueRange again) { scf::YieldOp::create(b, loc, again); });
  product.contraction.op->erase();
  product.start.writer->erase();
}

static LogicalResult lower(OnlineUpdateOp op, TargetAttr target, AliasAnalysis &aliases) {
  ScoreRegion region(op);
  if (failed(verifyTiles(op, op.getOuts())) || failed(region.verify()))
    return failure();
  Location loc = op.getLoc();
  OpBuilder builder(op);
  auto createUpdates = [&](OpBuilder &b) {
    forEachVector(b, loc, memref::getMixedSize(b, loc, op.getOuts()[0], 1), target.getLanes(), {},
                  [&](OpBuilder &inner, const Lanes &q, ValueRange) {
                    createUpdate(inner, op, region, exponentialsInFlight(target), q);
                    return SmallVector<Value>();
                  });
  };
  std::optional<Product> product = findProduct(op, aliases);
  int64_t bound = boundOfQueries(op.getOuts()[0]);
  if (product && !ShapedType::isDynamic(bound))
    lowerWithProduct(builder, op, *product, bound, target, region, createUpdates);
  else
    createUpdates(builder);
  return success();
}

//===----------------------------------------------------------------------===//
// attn.online_weights
//===----------------------------------------------------------------------===//

static void createNormalised(OpBuilder &builder, OnlineWeightsOp op, const ScoreRegion &region,
                             int64_t unroll, const Lanes &q) {
  Location loc = op.getLoc();
  Value scores = op.getOuts()[0];
  ScoreRegion::Queries queries = region.createQueries(builder, q);
  VectorType type = q.vectorOf(builder.getF32Type());
  Value zero = floatConstant(builder, loc, type, 0), one = floatConstant(builder, loc, type, 1);
  Value max =
      createReplace(builder, loc, q.load(builder, loc, op.getMax(), q.offset), -kInfinity, 0);
  Value sum = q.load(builder, loc, op.getSum(), q.offset);
  Value isEmpty = createIsEqual(builder, loc, sum, 0);
  Value emptyRow = floatConstant(builder, loc, type, valueOf(op.getEmptyRow()));
  Value inverse = arith::SelectOp::create(builder, loc, isEmpty, emptyRow,
                                          arith::DivFOp::create(builder, loc, one, sum));
  // A hidden pair of a row that is not empty has weight 0 even if the row is NaN elsewhere.
  Value hidden = arith::SelectOp::create(builder, loc, isEmpty, emptyRow, zero);
  createUnrolledLoop(
      builder, loc, memref::getMixedSize(builder, loc, scores, 0), unroll, {},
      [&](OpBuilder &b, ArrayRef<Value> keys, ValueRange) {
        SmallVector<Value> tile;
        for (Value k : keys)
          tile.push_back(region.createScores(b, q.load(b, loc, scores, {k, q.offset}), k, queries));
        SmallVector<Value> weights = createWeights(b, loc, tile, max, region);
        for (auto [weight, score, k] : llvm::zip_equal(weights, tile, keys)) {
          weight = createProduct(b, loc, weight, inverse);
          if (region.canHide())
            weight = arith::SelectOp::create(b, loc, createIsEqual(b, loc, score, -kInfinity),
                                             hidden, weight);
          q.store(b, loc, weight, scores, {k, q.offset});
        }
        return SmallVector<Value>();
      });
}

static LogicalResult lower(OnlineWeightsOp op, TargetAttr target) {
  ScoreRegion region(op);
  Value scores = op.getOuts()[0];
  if (failed(verifyTiles(op, {op.getMax(), op.getSum(), scores})) || failed(region.verify()))
    return failure();
  OpBuilder builder(op);
  forEachVector(builder, op.getLoc(), memref::getMixedSize(builder, op.getLoc(), scores, 1),
                target.getLanes(), {}, [&](OpBuilder &b, const Lanes &q, ValueRange) {
                  createNormalised(b, op, region, exponentialsInFlight(target), q);
                  return SmallVector<Value>();
                });
  return success();
}

//===----------------------------------------------------------------------===//
// attn.online_finish
//===----------------------------------------------------------------------===//

/// acc / sum, scalars or vectors.
static Value createQuotient(OpBuilder &builder, Location loc, Value acc, Value inverse,
                            Value isEmpty, Value emptyRow) {
  return arith::SelectOp::create(builder, loc, isEmpty, emptyRow,
                                 createProduct(builder, loc, acc, inverse));
}

static LogicalResult lower(OnlineFinishOp op, TargetAttr target) {
  int64_t lanes = target.getLanes();
  Value sum = op.getSum(), acc = op.getAcc(), out = op.getOuts()[0];
  if (failed(verifyTiles(op, {sum, acc})))
    return failure();
  auto outType = cast<MemRefType>(out.getType());
  if (!outType.getElementType().isF32())
    return op.emitOpError() << "expected an output of f32, got " << outType;

  Location loc = op.getLoc();
  OpBuilder builder(op);
  OpFoldResult numQueries = memref::getMixedSize(builder, loc, sum, 0);
  OpFoldResult numElements = memref::getMixedSize(builder, loc, acc, 0);
  // Blocks of L x L are transposed; the edges, and outputs whose rows are not contiguous, go one by
  // one.
  OpFoldResult first = builder.getIndexAttr(0), blockedQueries = first, blockedElements = first;
  if (isRowContiguous(outType)) {
    blockedQueries = roundDown(builder, loc, numQueries, lanes);
    blockedElements = roundDown(builder, loc, numElements, lanes);
  }
  double empty = valueOf(op.getEmptyRow());
  auto inverseOf = [&](OpBuilder &b, Value total) -> Value {
    return arith::DivFOp::create(b, loc, floatConstant(b, loc, total.getType(), 1), total);
  };

  createLoop(
      builder, loc, first, blockedQueries, lanes, {}, [&](OpBuilder &b, Value q, ValueRange) {
        Lanes vector{lanes, q, {}};
        Value total = vector.load(b, loc, sum, q);
        Value inverse = inverseOf(b, total), isEmpty = createIsEqual(b, loc, total, 0);
        Value emptyRow = floatConstant(b, loc, total.getType(), empty);
        createLoop(
            b, loc, first, blockedElements, lanes, {}, [&](OpBuilder &b, Value e, ValueRange) {
              auto plus = [&](Value base, int64_t offset) {
                return b.createOrFold<arith::AddIOp>(
                    loc, base, arith::ConstantIndexOp::create(b, loc, offset).getResult());
              };
              SmallVector<Value> rows;
              for (int64_t i = 0; i < lanes; ++i)
                rows.push_back(createQuotient(b, loc, vector.load(b, loc, acc, {plus(e, i), q}),
                                              inverse, isEmpty, emptyRow));
              for (auto [i, row] : llvm::enumerate(createTranspose(b, loc, rows)))
                vector.store(b, loc, row, out, {plus(q, i), e});
              return SmallVector<Value>();
            });
        return SmallVector<Value>();
      });

  auto finishOneByOne = [&](OpFoldResult queriesFrom, OpFoldResult queriesTo,
                            OpFoldResult elementsFrom) {
    if (elementsFrom == numElements)
      return;
    createLoop(builder, loc, queriesFrom, queriesTo, 1, {}, [&](OpBuilder &b, Value q, ValueRange) {
      Value total = memref::LoadOp::create(b, loc, sum, q);
      Value inverse = inverseOf(b, total), isEmpty = createIsEqual(b, loc, total, 0);
      Value emptyRow = floatConstant(b, loc, total.getType(), empty);
      createLoop(b, loc, elementsFrom, numElements, 1, {}, [&](OpBuilder &b, Value e, ValueRange) {
        Value element = memref::LoadOp::create(b, loc, acc, ValueRange{e, q});
        memref::StoreOp::create(b, loc, createQuotient(b, loc, element, inverse, isEmpty, emptyRow),
                                out, ValueRange{q, e});
        return SmallVector<Value>();
      });
      return SmallVector<Value>();
    });
  };
  finishOneByOne(first, blockedQueries, blockedElements);
  finishOneByOne(blockedQueries, numQueries, first);
  return success();
}

namespace {
struct OnlineToVector : attn::impl::OnlineToVectorBase<OnlineToVector> {
  void runOnOperation() override {
    TargetAttr target = getTarget(getOperation());
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<OnlineInitOp, OnlineUpdateOp, OnlineWeightsOp, OnlineFinishOp>(op))
        ops.push_back(op);
    });
    if (ops.empty())
      return;
    if (!target) {
      getOperation()->emitOpError()
          << "expected a module with " << AttnDialect::kTargetAttr << ", got none";
      return signalPassFailure();
    }
    for (Operation *op : ops) {
      LogicalResult result = llvm::TypeSwitch<Operation *, LogicalResult>(op)
                                 .Case([&](OnlineUpdateOp update) {
                                   return lower(update, target, getAnalysis<AliasAnalysis>());
                                 })
                                 .Case<OnlineInitOp, OnlineWeightsOp, OnlineFinishOp>(
                                     [&](auto online) { return lower(online, target); });
      if (failed(result))
        return signalPassFailure();
      op->erase();
    }
  }
};
} // namespace
