//===- Decode.cpp - tasks of few queries and a part of the keys ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %o = attn.attention ins(%q, %k, %v) outs(%e) plan(<"decode", q = 4, k = 512, part = 1024>)
// becomes
//   %as, %ms, %ls = scf.forall (%b, %h, %i, %j) = (0, 0, 0, 0) to (2, 8, 4, %n) step (1, 1, 4, 1024) {
//     attn.attention ins(%qi, %kj, %vj) state outs(%as[part], %ms[part], %ls[part]) at(%b, %h, %i, %j) plan(...)
//   }
//   %o = scf.forall (%b, %h, %i) = (0, 0, 0) to (2, 8, 4) step (1, 1, 4) shared_outs(%e) {
//     %m, %l, %a = attn.online_init, with the sink if there is one
//     %s:3 = attn.online_merge ins(%ms, %ls, %as) outs(%m, %l, %a)
//     attn.online_finish ins(%s#1, %s#2)
//   }
//
// A decoded token has too few queries to give each thread a task, so the keys are divided into parts. The division
// depends on the number of keys and `part` only, and the parts are merged in the order of the keys, so results do not
// depend on the number of threads. If the plan has no part, if a part has all keys, or if the attention returns its
// probabilities or its state, a task computes the attention over all keys.
// Test: test/passes/schedule/decode.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/OnlineStart.h"
#include "passes/Passes.h"
#include "passes/schedule/TileAndFuse.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_DECODE
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The numbers of the outputs of an attention with a state.
static constexpr unsigned kAcc = 0, kMax = 1, kSum = 2;

namespace {

class Splitter {
public:
  Splitter(IRRewriter &rewriter, AttentionOp op)
      : rewriter(rewriter), op(op), loc(op.getLoc()), domain(op.getIterationDomain(rewriter)),
        numBatch(op.getNumBatch()), zero(rewriter.getIndexAttr(0)), one(rewriter.getIndexAttr(1)) {
    numParts = apply(dim(0).ceilDiv(part()), {domain[op.getKDim()].size});
  }

  LogicalResult run();

private:
  int64_t part() { return op.getPlan()->getPart(); }
  FloatType scoreType() { return op.getAccumulatorType(); }
  AffineExpr dim(unsigned i) { return rewriter.getAffineDimExpr(i); }
  OpFoldResult apply(AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(
        rewriter, loc, AffineMap::get(operands.size(), 0, expr), operands);
  }

  /// Returns the size along `loop` of the tile that begins at `from`: `step`, or fewer iterations at the end of the
  /// loop.
  OpFoldResult sizeFrom(unsigned loop, Value from, int64_t step) {
    std::optional<int64_t> size = getConstantIntValue(domain[loop].size);
    if (size && *size % step == 0)
      return rewriter.getIndexAttr(step);
    AffineMap least = AffineMap::get(2, 0, {rewriter.getAffineConstantExpr(step), dim(0) - dim(1)},
                                     op.getContext());
    return affine::makeComposedFoldedAffineMin(rewriter, loc, least, {domain[loop].size, from});
  }

  /// Creates a parallel loop over batch items and query tiles and, if `overParts`, over parts of the keys.
  scf::ForallOp createLoop(bool overParts, ValueRange outs);

  /// A part of a tensor of states: (part, batch..., q) for max and sum, (part, batch..., q, e) for acc.
  struct Slice {
    SmallVector<OpFoldResult> offsets, sizes, strides;
  };
  /// Returns the slice with the states of `parts` parts, from part `first` on, for the batch item and the query tile
  /// `at`.
  Slice sliceOf(unsigned state, OpFoldResult first, OpFoldResult parts, ValueRange at);
  /// Extracts a slice and drops its dimensions `[from, to)`, which have the size 1.
  Value extract(Value tensor, const Slice &slice, unsigned from, unsigned to);

  /// Creates the loop over parts. Returns the states of all parts: acc, max and sum.
  FailureOr<SmallVector<Value>> createParts();
  /// Creates an attention that computes the state of `tile`, a tile of `op`. Moves the score region of `tile` to this
  /// attention.
  AttentionOp createState(AttentionOp tile, ValueRange outs);
  /// Creates the loop that merges the states of all parts. Returns the output.
  Value createMerge(ValueRange parts);

  IRRewriter &rewriter;
  AttentionOp op;
  Location loc;
  SmallVector<Range> domain;
  unsigned numBatch;
  OpFoldResult zero, one, numParts;
};

} // namespace

scf::ForallOp Splitter::createLoop(bool overParts, ValueRange outs) {
  SmallVector<OpFoldResult> ends, steps(numBatch, one);
  for (unsigned i = 0; i <= op.getQDim(); ++i)
    ends.push_back(domain[i].size);
  steps.push_back(rewriter.getIndexAttr(op.getPlan()->getQ()));
  if (overParts) {
    ends.push_back(domain[op.getKDim()].size);
    steps.push_back(rewriter.getIndexAttr(part()));
  }
  SmallVector<OpFoldResult> starts(ends.size(), zero);
  auto tasks = scf::ForallOp::create(rewriter, loc, starts, ends, steps, outs, std::nullopt);
  mapTasks(tasks);
  return tasks;
}

Splitter::Slice Splitter::sliceOf(unsigned state, OpFoldResult first, OpFoldResult parts,
                                  ValueRange at) {
  Slice slice = {{first}, {parts}, {}};
  for (unsigned i = 0; i <= numBatch; ++i) {
    slice.offsets.push_back(at[i]);
    slice.sizes.push_back(i < numBatch ? one : sizeFrom(op.getQDim(), at[i], op.getPlan()->getQ()));
  }
  if (state == kAcc) {
    slice.offsets.push_back(zero);
    slice.sizes.push_back(domain[op.getEDim()].size);
  }
  slice.strides.assign(slice.offsets.size(), one);
  return slice;
}

Value Splitter::extract(Value tensor, const Slice &slice, unsigned from, unsigned to) {
  SmallVector<int64_t> shape;
  for (auto [i, size] : llvm::enumerate(slice.sizes))
    if (i < from || i >= to)
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto type = RankedTensorType::get(shape, scoreType());
  return tensor::ExtractSliceOp::create(rewriter, loc, type, tensor, slice.offsets, slice.sizes,
                                        slice.strides);
}

AttentionOp Splitter::createState(AttentionOp tile, ValueRange outs) {
  SmallVector<unsigned> loops = llvm::to_vector(llvm::seq<unsigned>(0, op.getQDim() + 1));
  AffineMap ofRow = AffineMap::getMultiDimMapWithTargets(domain.size(), loops, op.getContext());
  loops.push_back(op.getEDim());
  AffineMap ofAcc = AffineMap::getMultiDimMapWithTargets(domain.size(), loops, op.getContext());
  SmallVector<AffineMap> maps;
  for (unsigned i = 0; i < 3 + op.getCaptures().size(); ++i)
    maps.push_back(op.getMap(i));
  maps.append({ofAcc, ofRow, ofRow});
  auto state = AttentionOp::create(
      rewriter, loc, outs.getTypes(), tile.getQuery(), tile.getKey(), tile.getValue(),
      tile.getCaptures(), /*sink=*/Value(), outs, tile.getOrigin(), op.getMaskAttr(),
      op.getPlanAttr(), rewriter.getAffineMapArrayAttr(maps), op.getScaleAttr(),
      /*empty_row=*/EmptyRowAttr(), op.getAccTypeAttr(), rewriter.getUnitAttr(),
      /*fill=*/nullptr, /*added=*/nullptr,
      /*bounded=*/nullptr);
  state->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rewriter.inlineRegionBefore(tile.getScore(), state.getScore(), state.getScore().end());
  return state;
}

FailureOr<SmallVector<Value>> Splitter::createParts() {
  SmallVector<OpFoldResult> sizes = {numParts};
  for (unsigned i = 0; i <= op.getQDim(); ++i)
    sizes.push_back(domain[i].size);
  SmallVector<OpFoldResult> ofAcc = sizes;
  ofAcc.push_back(domain[op.getEDim()].size);
  SmallVector<Value> outs;
  for (unsigned state : {kAcc, kMax, kSum})
    outs.push_back(
        tensor::EmptyOp::create(rewriter, loc, state == kAcc ? ofAcc : sizes, scoreType()));

  scf::ForallOp loop = createLoop(/*overParts=*/true, outs);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> at = loop.getInductionVars();
  Value firstKey = at.back();
  SmallVector<OpFoldResult> offsets = getAsOpFoldResult(at), sizesOfTile(numBatch, one);
  sizesOfTile.push_back(sizeFrom(op.getQDim(), at[numBatch], op.getPlan()->getQ()));
  sizesOfTile.push_back(sizeFrom(op.getKDim(), firstKey, part()));
  for (unsigned loop : {op.getDDim(), op.getEDim()}) {
    offsets.push_back(zero);
    sizesOfTile.push_back(domain[loop].size);
  }
  FailureOr<TilingResult> tiled = op.getTiledImplementation(rewriter, offsets, sizesOfTile);
  if (failed(tiled))
    return failure();
  OpFoldResult index = apply(dim(0).floorDiv(part()), {firstKey});
  SmallVector<Slice> slices;
  SmallVector<Value> outsOfPart;
  for (auto [i, out] : llvm::enumerate(loop.getRegionIterArgs())) {
    slices.push_back(sliceOf(i, index, one, at));
    outsOfPart.push_back(extract(out, slices.back(), 0, 1));
  }
  auto tile = cast<AttentionOp>(tiled->tiledOps.front());
  AttentionOp state = createState(tile, outsOfPart);
  rewriter.eraseOp(tile);
  rewriter.setInsertionPointToStart(loop.getTerminator().getBody());
  for (auto [result, out, slice] :
       llvm::zip_equal(state.getResults(), loop.getRegionIterArgs(), slices))
    tensor::ParallelInsertSliceOp::create(rewriter, loc, result, out, slice.offsets, slice.sizes,
                                          slice.strides);
  return SmallVector<Value>(loop.getResults());
}

Value Splitter::createMerge(ValueRange parts) {
  scf::ForallOp loop = createLoop(/*overParts=*/false, op.getOuts());
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> at = loop.getInductionVars(), states;
  for (unsigned state : {kAcc, kMax, kSum})
    states.push_back(extract(parts[state], sliceOf(state, zero, numParts, at), 1, 1 + numBatch));
  int64_t qTile = op.getPlan()->getQ();
  OpFoldResult numQueries = sizeFrom(op.getQDim(), at[numBatch], qTile);
  OpFoldResult numElements = domain[op.getEDim()].size;
  auto temporary = [&](ArrayRef<OpFoldResult> sizes) -> Value {
    SmallVector<OpFoldResult> full(sizes), offsets(sizes.size(), zero), strides(sizes.size(), one);
    full[0] = rewriter.getIndexAttr(qTile);
    Value whole = tensor::EmptyOp::create(rewriter, loc, full, scoreType());
    return tensor::ExtractSliceOp::create(rewriter, loc, whole, offsets, sizes, strides);
  };

  // Extracts the tile of an operand, without the batch dimensions, and appends the loops of its dimensions to `loops`.
  auto tileOf = [&](Value operand, AffineMap map, SmallVector<unsigned> &loops) {
    Slice slice;
    SmallVector<int64_t> shape;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      unsigned loop = dim ? dim.getPosition() : numBatch;
      bool isQuery = dim && loop == op.getQDim(), isElement = dim && loop == op.getEDim();
      slice.offsets.push_back(dim && !isElement ? OpFoldResult(at[loop]) : zero);
      slice.sizes.push_back(isQuery ? numQueries : isElement ? numElements : one);
      if (!isQuery && !isElement)
        continue;
      loops.push_back(loop);
      shape.push_back(getConstantIntValue(slice.sizes.back()).value_or(ShapedType::kDynamic));
    }
    slice.strides.assign(slice.offsets.size(), one);
    auto type = RankedTensorType::get(shape, getElementTypeOrSelf(operand.getType()));
    return tensor::ExtractSliceOp::create(rewriter, loc, type, operand, slice.offsets, slice.sizes,
                                          slice.strides);
  };
  SmallVector<unsigned> sinkLoops, outLoops;
  Value sink = op.getSink() ? tileOf(op.getSink(), op.getSinkMap(), sinkLoops) : Value();
  OnlineState start = createOnlineStart(
      rewriter, loc, op,
      {temporary({numQueries}), temporary({numQueries}), temporary({numQueries, numElements})},
      sink, domain[op.getKDim()].size, /*rows=*/true);
  auto merge = OnlineMergeOp::create(
      rewriter, loc, TypeRange{start.max.getType(), start.sum.getType(), start.acc.getType()},
      states[kMax], states[kSum], states[kAcc], start.max, start.sum, start.acc,
      rewriter.getF32FloatAttr(1), rewriter.getUnitAttr());

  tensor::ExtractSliceOp out = tileOf(loop.getRegionIterArgs()[0], op.getOutMap(), outLoops);
  bool isTransposed = outLoops.front() != op.getQDim();
  Value rows = out;
  if (isTransposed) {
    Value whole = tensor::EmptyOp::create(rewriter, loc, {numQueries, numElements},
                                          out.getType().getElementType());
    rows = whole;
  }
  Value tile =
      OnlineFinishOp::create(rewriter, loc, TypeRange{rows.getType()}, merge.getResult(1),
                             merge.getResult(2), rows, op.getEmptyRowAttr(), rewriter.getUnitAttr())
          .getResult(0);
  if (isTransposed)
    tile = linalg::TransposeOp::create(rewriter, loc, tile, out, ArrayRef<int64_t>{1, 0})
               ->getResult(0);
  rewriter.setInsertionPointToStart(loop.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(rewriter, loc, tile, loop.getRegionIterArgs()[0],
                                        out.getMixedOffsets(), out.getMixedSizes(),
                                        out.getMixedStrides());
  return loop.getResult(0);
}

LogicalResult Splitter::run() {
  FailureOr<SmallVector<Value>> parts = createParts();
  if (failed(parts))
    return failure();
  rewriter.replaceOp(op, createMerge(*parts));
  return success();
}

/// Whether the keys of `op` are divided into parts. An attention that returns probabilities is not divided, because it
/// would need a second pass over the keys.
static bool isSplit(AttentionOp op) {
  int64_t part = op.getPlan()->getPart(), keys = op.getStaticSize(op.getKDim());
  return part != 0 && !op.returnsProbabilities() && !op.getState() &&
         (ShapedType::isDynamic(keys) || keys > part);
}

namespace {
struct Decode : attn::impl::DecodeBase<Decode> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (AttentionOp op : findUnscheduled(getOperation(), Schedule::Decode)) {
      rewriter.setInsertionPoint(op);
      if (op.hasPureTensorSemantics() && (isSplit(op) ? succeeded(Splitter(rewriter, op).run())
                                                      : succeeded(tileByQuery(rewriter, op))))
        continue;
      op.emitError() << "expected an attention that tiles by query, got one that does not";
      return signalPassFailure();
    }
  }
};
} // namespace
