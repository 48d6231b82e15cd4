//===- BoundFills.cpp - bounds of scores to which a fill is added ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(%q, %k, %v) mask(#attn.causal) {added, fill = -1.0e4 : f32}
// becomes
//   %g = linalg.generic ins(%k) (h,k,d) -> (h,d) { max of |%k| }
//   %b = linalg.generic ins(%q, %g) (h,q,d), (h,d) -> (h,q) { sum of |%q| * %g, times twice the scale, plus 2 }
//   attn.attention ins(%q, %k, %v) captures(%b) mask(#attn.causal) {added, bounded, fill = -1.0e4 : f32}
//
// The magnitude of a product of a query with any key is at most the sum over d of |Q[q,d]| times the greatest |K[k,d]|.
// The factor 2 is for the rounding errors of the products. If a region computes the scores, %b is multiplied by their
// bound (ScoreBound.h). A NaN or an infinity among the elements makes the bound NaN or infinite.
//
// The pass runs twice. Before attn-per-head, the bounds become tasks of their own, so that each key is read once. If the
// tasks of attn-per-head will compute the queries or the keys, the bounds are computed after that pass, in the same
// tasks, and before the loop over tiles of queries.
// Test: test/passes/schedule/bound-fills.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"
#include "passes/ScoreBound.h"
#include "passes/raise/Captures.h"
#include "support/Loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_BOUNDFILLS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
/// The loops of a reduction: for each, the dimension of the attention and the size.
struct Loops {
  SmallVector<unsigned> dims;
  SmallVector<OpFoldResult> sizes;

  void add(unsigned dim, OpFoldResult size) {
    dims.push_back(dim);
    sizes.push_back(size);
  }
};

class Bounds {
public:
  Bounds(RewriterBase &rewriter, AttentionOp op)
      : rewriter(rewriter), op(op), loc(op.getLoc()), type(op.getAccumulatorType()),
        bits(rewriter.getIntegerType(type.getIntOrFloatBitWidth())) {}

  /// `score` is the bound that boundScore() gives.
  void run(double score);

private:
  using Combine = llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

  Value greatestOfKeys();
  /// Reduces the elements of `inputs` over dimension `dim` of the attention; the result has all other loops.
  Value reduce(const Loops &loops, unsigned dim, ValueRange inputs, ArrayRef<AffineMap> maps,
               TypedAttr start, Combine combine);
  /// `map`, over the dimensions of the attention, as a map over loops. An index of 0 stays.
  AffineMap overLoops(AffineMap map, const Loops &loops);
  Value magnitude(OpBuilder &b, Location loc, Value element) {
    element = convertScalarToDtype(b, loc, element, type, /*isUnsignedCast=*/false);
    return math::AbsFOp::create(b, loc, element);
  }

  RewriterBase &rewriter;
  AttentionOp op;
  Location loc;
  FloatType type;
  // The bits of magnitudes, as integers, have the order of the magnitudes, and those of NaN are the greatest. So one
  // instruction compares them.
  Type bits;
};
} // namespace

AffineMap Bounds::overLoops(AffineMap map, const Loops &loops) {
  SmallVector<AffineExpr> exprs(map.getNumDims(), rewriter.getAffineConstantExpr(0));
  for (auto [loop, dim] : llvm::enumerate(loops.dims))
    exprs[dim] = rewriter.getAffineDimExpr(loop);
  return map.replaceDimsAndSymbols(exprs, {}, loops.dims.size(), 0);
}

Value Bounds::reduce(const Loops &loops, unsigned dim, ValueRange inputs, ArrayRef<AffineMap> maps,
                     TypedAttr start, Combine combine) {
  SmallVector<AffineMap> all(maps);
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> kept;
  SmallVector<utils::IteratorType> iterators(loops.dims.size(), utils::IteratorType::parallel);
  for (auto [loop, ofAttention] : llvm::enumerate(loops.dims)) {
    if (ofAttention == dim) {
      iterators[loop] = utils::IteratorType::reduction;
      continue;
    }
    kept.push_back(rewriter.getAffineDimExpr(loop));
    sizes.push_back(loops.sizes[loop]);
  }
  all.push_back(AffineMap::get(loops.dims.size(), 0, kept, op.getContext()));
  Value empty = tensor::EmptyOp::create(rewriter, loc, sizes, start.getType());
  Value first = arith::ConstantOp::create(rewriter, loc, start);
  Value init = linalg::FillOp::create(rewriter, loc, first, empty).getResult(0);
  return linalg::GenericOp::create(rewriter, loc, init.getType(), inputs, init, all, iterators,
                                   [&](OpBuilder &b, Location loc, ValueRange args) {
                                     linalg::YieldOp::create(b, loc, combine(b, loc, args));
                                   })
      .getResult(0);
}

/// The greatest |K[k,d]| of each d, as bits. The result has the dimensions of the key without k.
Value Bounds::greatestOfKeys() {
  AffineMap map = op.getKeyMap();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, op.getKey()),
                            offsets(sizes.size(), rewriter.getIndexAttr(0)),
                            strides(sizes.size(), rewriter.getIndexAttr(1));
  // An iteration compares the keys of four parts, because it also reads and writes the result. The last parts may
  // overlap.
  constexpr int64_t kParts = 4;
  unsigned position = *map.getResultPosition(rewriter.getAffineDimExpr(op.getKDim()));
  AffineExpr keys, size;
  bindDims(op.getContext(), keys, size);
  OpFoldResult numKeys = sizes[position];
  OpFoldResult part =
      affine::makeComposedFoldedAffineApply(rewriter, loc, keys.ceilDiv(kParts), {numKeys});
  sizes[position] = part;
  SmallVector<Value> parts;
  for (int64_t i = 0; i < kParts; ++i) {
    AffineMap begin = AffineMap::get(2, 0, {size * i, keys - size}, op.getContext());
    offsets[position] = affine::makeComposedFoldedAffineMin(rewriter, loc, begin, {numKeys, part});
    parts.push_back(
        tensor::ExtractSliceOp::create(rewriter, loc, op.getKey(), offsets, sizes, strides));
  }
  Loops loops;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), sizes))
    if (std::optional<unsigned> dim = findLoop(expr))
      loops.add(*dim, size);
  SmallVector<AffineMap> maps(kParts, overLoops(map, loops));
  return reduce(loops, op.getKDim(), parts, maps, cast<TypedAttr>(rewriter.getZeroAttr(bits)),
                [&](OpBuilder &b, Location loc, ValueRange args) {
                  Value greatest = args.back();
                  for (Value element : args.drop_back()) {
                    Value key = arith::BitcastOp::create(b, loc, bits, magnitude(b, loc, element));
                    greatest = arith::MaxUIOp::create(b, loc, greatest, key);
                  }
                  return greatest;
                });
}

void Bounds::run(double score) {
  // The keys of a task stay the same in its loop over tiles of queries.
  Operation *first = op;
  for (auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
       loop && loop.isDefinedOutsideOfLoop(op.getKey());
       loop = dyn_cast<scf::ForOp>(loop->getParentOp()))
    first = loop;
  rewriter.setInsertionPoint(first);
  Value greatest = greatestOfKeys();

  rewriter.setInsertionPoint(op);
  AffineMap queryMap = op.getQueryMap(), keyMap = op.getKeyMap();
  SmallVector<OpFoldResult> ofQuery = tensor::getMixedSizes(rewriter, loc, op.getQuery()),
                            ofKey = tensor::getMixedSizes(rewriter, loc, op.getKey());
  Loops loops;
  for (unsigned dim = 0; dim < op.getNumBatch(); ++dim) {
    AffineExpr expr = rewriter.getAffineDimExpr(dim);
    if (auto position = queryMap.getResultPosition(expr))
      loops.add(dim, ofQuery[*position]);
    else if (auto position = keyMap.getResultPosition(expr))
      loops.add(dim, ofKey[*position]);
  }
  for (auto [expr, size] : llvm::zip_equal(queryMap.getResults(), ofQuery)) // q and d
    if (std::optional<unsigned> dim = findLoop(expr); dim && *dim >= op.getNumBatch())
      loops.add(*dim, size);
  SmallVector<AffineExpr> ofGreatest;
  for (AffineExpr expr : keyMap.getResults())
    if (std::optional<unsigned> dim = findLoop(expr); dim && *dim != op.getKDim())
      ofGreatest.push_back(expr);
  AffineMap greatestMap = AffineMap::get(keyMap.getNumDims(), 0, ofGreatest, op.getContext());

  double bound = 2 * score;
  double perProduct = bound * std::abs(op.getScale().convertToDouble());
  Value bounds =
      reduce(loops, op.getDDim(), {op.getQuery(), greatest},
             {overLoops(queryMap, loops), overLoops(greatestMap, loops)},
             rewriter.getFloatAttr(type, bound),
             [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
               Value key = arith::BitcastOp::create(b, loc, type, args[1]);
               Value factor = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, perProduct));
               Value product = arith::MulFOp::create(b, loc, magnitude(b, loc, args[0]), key);
               product = arith::MulFOp::create(b, loc, product, factor);
               return arith::AddFOp::create(b, loc, args[2], product);
             });
  SmallVector<AffineExpr> read;
  for (unsigned dim : loops.dims)
    if (dim != op.getDDim())
      read.push_back(rewriter.getAffineDimExpr(dim));
  rewriter.modifyOpInPlace(op, [&] {
    captureElement(op, {bounds, AffineMap::get(queryMap.getNumDims(), 0, read, op.getContext())});
    op.setBounded(true);
  });
}

/// Whether attn-per-head will move ops that compute the queries or the keys into the tasks of `op`.
static bool waitsForTasks(AttentionOp op) {
  auto isComputed = [](Value operand) {
    return operand.getDefiningOp<linalg::LinalgOp>() != nullptr;
  };
  return op.getPlan() && op.getPlan()->getSchedule() == Schedule::PerHead &&
         isa<func::FuncOp>(op->getParentOp()) &&
         (isComputed(op.getQuery()) || isComputed(op.getKey()));
}

namespace {
struct BoundFills : attn::impl::BoundFillsBase<BoundFills> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) {
      if (op.getAdded() && !op.getBounded() && !waitsForTasks(op))
        ops.push_back(op);
    });
    for (AttentionOp op : ops) {
      std::optional<double> score = boundScore(op);
      if (!score) {
        op.emitOpError() << "expected scores with a known bound, because the fill is added";
        return signalPassFailure();
      }
      rewriter.setInsertionPoint(op);
      Bounds(rewriter, op).run(*score);
    }
  }
};
} // namespace
