//===- DecomposeAttention.cpp - attention with its scores in memory --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %o = attn.attention ins(%q, %k, %v) outs(%e) mask(#attn.causal) plan(<"unfused", ...>) {...}
// becomes
//   %s = linalg.contract ins(%q, %k) outs(zero)              scores in memory
//   %t = linalg.generic ins(%s) outs(...)                    scale, score region, -inf where the mask hides
//   %p = linalg.softmax dimension(k) ins(%t) outs(...)
//   %o = linalg.generic ins(%p, %v) outs(zero)               products of hidden pairs skipped
//
// With the schedule unfused, the pass applies before there are tasks. This form is the baseline with which every other
// schedule is compared, and the form for an attention that no other schedule can compute. With the schedule
// whole-scores, the pass applies inside a task, after PerHead.cpp has created tasks of few queries. The scores of these
// queries stay in the cache, and queries are not transposed into the lanes of vectors, because there are too few
// queries to fill the lanes.
// Test: test/passes/schedule/decompose-attention.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Product.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_DECOMPOSEATTENTION
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {

/// Emits one attention as linalg ops. Every map is over the attention's iteration space (batch..., q, k, d, e) until
/// generic() drops the loops that an op lacks.
class Decomposer {
public:
  Decomposer(OpBuilder &builder, AttentionOp op)
      : builder(builder), op(op), loc(op.getLoc()), domain(op.getIterationDomain(builder)) {}

  SmallVector<Value> run() {
    SmallVector<unsigned> scoreLoops = llvm::to_vector(llvm::seq<unsigned>(0, op.getKDim() + 1));
    SmallVector<unsigned> productLoops = scoreLoops;
    productLoops.push_back(op.getDDim());
    Value scores = contract(productLoops, op.getQuery(), op.getQueryMap(), op.getKey(),
                            op.getKeyMap(), zeros(empty(scoreLoops)), over(scoreLoops), "scores");
    Value masked = applyScore(scores, scoreLoops);
    Value probabilities = softmax(masked, scoreLoops);
    AffineMap scoreMap = over(scoreLoops);
    Value out = weighValues(probabilities, scoreMap);
    SmallVector<Value> results = {out};
    if (op.returnsProbabilities())
      results.push_back(
          copyTo(probabilities, scoreMap, op.getOuts()[1], op.getOutMap(1), scoreLoops));
    return results;
  }

private:
  FloatType scoreType() { return op.getAccumulatorType(); }

  AffineMap over(ArrayRef<unsigned> loops) {
    return AffineMap::getMultiDimMapWithTargets(domain.size(), loops, op.getContext());
  }

  /// Rewrites `maps`, which are over the attention's iteration space, over `loops` alone: dimension i is loops[i].
  SmallVector<AffineMap> renumbered(ArrayRef<unsigned> loops, ArrayRef<AffineMap> maps) {
    SmallVector<AffineExpr> dims(domain.size(), getAffineConstantExpr(0, op.getContext()));
    for (auto [i, loop] : llvm::enumerate(loops))
      dims[loop] = builder.getAffineDimExpr(i);
    return llvm::map_to_vector(
        maps, [&](AffineMap map) { return map.replaceDimsAndSymbols(dims, {}, loops.size(), 0); });
  }

  /// Creates a linalg.generic over `loops`; the given maps are over the attention's iteration space.
  Value generic(ArrayRef<unsigned> loops, ValueRange inputs, ArrayRef<AffineMap> inputMaps,
                Value init, AffineMap initMap,
                function_ref<void(OpBuilder &, Location, ValueRange)> body) {
    SmallVector<AffineMap> maps = llvm::to_vector(inputMaps);
    maps.push_back(initMap);
    maps = renumbered(loops, maps);
    SmallVector<utils::IteratorType> types;
    for (unsigned loop : loops)
      types.push_back(initMap.isFunctionOfDim(loop) ? utils::IteratorType::parallel
                                                    : utils::IteratorType::reduction);
    return linalg::GenericOp::create(builder, loc, init.getType(), inputs, init, maps, types, body)
        .getResult(0);
  }

  Value empty(ArrayRef<unsigned> loops) {
    SmallVector<OpFoldResult> sizes =
        llvm::map_to_vector(loops, [&](unsigned loop) { return domain[loop].size; });
    return tensor::EmptyOp::create(builder, loc, sizes, scoreType());
  }

  /// `element` in the type of the scores.
  Value widened(OpBuilder &b, Value element) {
    return convertScalarToDtype(b, loc, element, scoreType(), /*isUnsignedCast=*/false);
  }

  Value zeros(Value init) {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(scoreType(), 0));
    return linalg::FillOp::create(builder, loc, zero, init).getResult(0);
  }

  /// Creates a product: `init` plus the sum of a * b.
  Value contract(ArrayRef<unsigned> loops, Value a, AffineMap aMap, Value b, AffineMap bMap,
                 Value init, AffineMap initMap, StringRef block) {
    Value sums = generic(loops, {a, b}, {aMap, bMap}, init, initMap,
                         [&](OpBuilder &b, Location loc, ValueRange args) {
                           Value product = arith::MulFOp::create(b, loc, widened(b, args[0]),
                                                                 widened(b, args[1]));
                           linalg::YieldOp::create(
                               b, loc, arith::AddFOp::create(b, loc, args[2], product).getResult());
                         });
    setBlock(sums, block);
    return sums;
  }

  /// Gives the product that computes `sums` the block `name` from `attn.blocks` of the attention.
  void setBlock(Value sums, StringRef name) {
    auto blocks = op->getAttrOfType<DictionaryAttr>(AttnDialect::kBlocksAttr);
    if (Attribute block = blocks ? blocks.get(name) : Attribute())
      sums.getDefiningOp()->setAttr(AttnDialect::kBlockAttr, block);
  }

  /// Applies scale, score region and mask.
  Value applyScore(Value scores, ArrayRef<unsigned> loops) {
    SmallVector<Value> inputs = {scores};
    SmallVector<AffineMap> maps = {over(loops)};
    for (auto [i, capture] : llvm::enumerate(op.getCaptures())) {
      inputs.push_back(capture);
      maps.push_back(op.getCaptureMap(i));
    }
    return generic(loops, inputs, maps, empty(loops), over(loops),
                   [&](OpBuilder &b, Location loc, ValueRange args) {
                     linalg::YieldOp::create(b, loc, scoreOf(b, loc, args, loops.size()));
                   });
  }

  Value scoreOf(OpBuilder &b, Location loc, ValueRange args, unsigned numLoops) {
    Value scale = arith::ConstantOp::create(
        b, loc, b.getFloatAttr(scoreType(), op.getScale().convertToDouble()));
    Value score = b.createOrFold<arith::MulFOp>(loc, args[0], scale);
    ValueRange captured = args.slice(1, op.getCaptures().size());
    SmallVector<Value> indices;
    for (unsigned i = 0; i < numLoops; ++i) {
      Value index = linalg::IndexOp::create(b, loc, i);
      if (!op.getOrigin().empty())
        index = arith::AddIOp::create(b, loc, index, op.getOrigin()[i]);
      indices.push_back(index);
    }
    if (!op.getScore().empty()) {
      Block &block = op.getScore().front();
      IRMapping mapping;
      mapping.map(block.getArguments().take_front(numLoops), indices);
      mapping.map(block.getArgument(numLoops), score);
      mapping.map(block.getArguments().drop_front(numLoops + 1), captured);
      for (Operation &inner : block.without_terminator())
        b.clone(inner, mapping);
      score = mapping.lookup(cast<YieldOp>(block.getTerminator()).getValue());
    }
    if (MaskInterface mask = op.getMaskAttr()) {
      Value hidden = arith::ConstantOp::create(
          b, loc, b.getFloatAttr(scoreType(), -std::numeric_limits<double>::infinity()));
      score = arith::SelectOp::create(b, loc, createKept(b, loc, mask, indices, captured), score,
                                      hidden);
    }
    return score;
  }

  /// exp(s - m) / (exp(sink - m) + sum_k exp(s - m)), where m is the maximum of the sink and the scores.
  Value softmaxWithSink(Value scores, ArrayRef<unsigned> loops) {
    ArrayRef<unsigned> rows = loops.drop_back();
    AffineMap ofRow = over(rows), ofScore = over(loops), ofSink = op.getSinkMap();
    Value max = generic(rows, op.getSink(), ofSink, empty(rows), ofRow,
                        [&](OpBuilder &b, Location loc, ValueRange args) {
                          linalg::YieldOp::create(b, loc, widened(b, args[0]));
                        });
    max = generic(loops, scores, ofScore, max, ofRow,
                  [](OpBuilder &b, Location loc, ValueRange args) {
                    Value greatest = arith::MaximumFOp::create(b, loc, args[0], args[1]);
                    linalg::YieldOp::create(b, loc, greatest);
                  });
    auto exponential = [&](OpBuilder &b, Location loc, ValueRange args) {
      Value shifted = arith::SubFOp::create(b, loc, widened(b, args[0]), args[1]);
      linalg::YieldOp::create(b, loc, math::ExpOp::create(b, loc, shifted).getResult());
    };
    Value exponentials =
        generic(loops, {scores, max}, {ofScore, ofRow}, empty(loops), ofScore, exponential);
    Value sum =
        generic(rows, {op.getSink(), max}, {ofSink, ofRow}, empty(rows), ofRow, exponential);
    sum = generic(loops, exponentials, ofScore, sum, ofRow,
                  [](OpBuilder &b, Location loc, ValueRange args) {
                    Value both = arith::AddFOp::create(b, loc, args[1], args[0]);
                    linalg::YieldOp::create(b, loc, both);
                  });
    return generic(loops, {exponentials, sum}, {ofScore, ofRow}, empty(loops), ofScore,
                   [](OpBuilder &b, Location loc, ValueRange args) {
                     Value probability = arith::DivFOp::create(b, loc, args[0], args[1]);
                     linalg::YieldOp::create(b, loc, probability);
                   });
  }

  Value softmax(Value scores, ArrayRef<unsigned> loops) {
    Value probabilities = op.getSink()
                              ? softmaxWithSink(scores, loops)
                              : linalg::SoftmaxOp::create(builder, loc, TypeRange{scores.getType()},
                                                          scores, empty(loops), loops.size() - 1)
                                    .getResult()[0];
    if (!op.getMask() && op.getEmptyRow() == EmptyRow::NaN)
      return probabilities;
    SmallVector<Value> inputs = {scores, probabilities};
    SmallVector<AffineMap> maps = {over(loops), over(loops)};
    if (op.getSink()) {
      inputs.push_back(op.getSink());
      maps.push_back(op.getSinkMap());
    }
    // The softmax gives NaN for a row of only -inf; the op below replaces these NaNs as `empty_row` says. The op also
    // raises probabilities of pairs that are not hidden to at least a small positive number, because the product with
    // the values takes a probability of 0 for a hidden pair.
    return generic(
        loops, inputs, maps, empty(loops), over(loops),
        [&](OpBuilder &b, Location loc, ValueRange args) {
          auto constant = [&](const APFloat &value) -> Value {
            return arith::ConstantOp::create(b, loc, b.getFloatAttr(scoreType(), value));
          };
          const llvm::fltSemantics &semantics = scoreType().getFloatSemantics();
          Value lowest = constant(APFloat::getInf(semantics, /*Negative=*/true));
          Value isHidden =
              arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, args[0], lowest);
          Value hidden =
              op.getEmptyRow() == EmptyRow::NaN ? args[1] : constant(APFloat::getZero(semantics));
          if (op.getSink() && op.getEmptyRow() != EmptyRow::NaN) {
            // If the sink is not -inf, the row is not empty, and its probabilities are 0 or, if the sink is NaN, NaN.
            Value isAbsent = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                                   widened(b, args[2]), lowest);
            hidden = arith::SelectOp::create(b, loc, isAbsent, hidden, args[1]);
          }
          int exponent = std::max<int>(AttnDialect::kLeastProbabilityExponent,
                                       APFloat::semanticsMinExponent(semantics));
          Value least =
              constant(scalbn(APFloat::getOne(semantics), exponent, APFloat::rmNearestTiesToEven));
          Value live = arith::MaximumFOp::create(b, loc, args[1], least);
          linalg::YieldOp::create(
              b, loc, arith::SelectOp::create(b, loc, isHidden, hidden, live).getResult());
        });
  }

  /// Computes out[..., q, e] = sum_k p * V. Skips hidden pairs, whose probability p is 0, because 0 * NaN is NaN.
  Value weighValues(Value probabilities, AffineMap scoreMap) {
    SmallVector<unsigned> loops = llvm::to_vector(llvm::seq<unsigned>(0, op.getQDim() + 1));
    loops.push_back(op.getEDim());
    // Sums have the type of the scores; an output of another type is rounded once, at the end.
    Value out = op.getOuts()[0], init = out;
    AffineMap sumMap = op.getOutMap();
    if (getElementTypeOrSelf(out.getType()) != scoreType()) {
      init = empty(loops);
      sumMap = over(loops);
    }
    SmallVector<unsigned> productLoops = loops;
    productLoops.push_back(op.getKDim());
    Value sums;
    if (op.getMask()) {
      SmallVector<AffineMap> maps = renumbered(productLoops, {scoreMap, op.getValueMap(), sumMap});
      sums = createGuardedProduct(builder, loc, probabilities, op.getValue(), zeros(init), maps)
                 ->getResult(0);
      setBlock(sums, "masked");
    } else {
      sums = contract(productLoops, probabilities, scoreMap, op.getValue(), op.getValueMap(),
                      zeros(init), sumMap, "values");
    }
    return init == out ? sums : copyTo(sums, sumMap, out, op.getOutMap(), loops);
  }

  /// Copies over `loops`, and rounds if the output has a narrower type.
  Value copyTo(Value source, AffineMap sourceMap, Value init, AffineMap initMap,
               ArrayRef<unsigned> loops) {
    Type type = getElementTypeOrSelf(init.getType());
    return generic(loops, source, sourceMap, init, initMap,
                   [&](OpBuilder &b, Location loc, ValueRange args) {
                     linalg::YieldOp::create(b, loc,
                                             convertScalarToDtype(b, loc, args[0], type,
                                                                  /*isUnsignedCast=*/false));
                   });
  }

  OpBuilder &builder;
  AttentionOp op;
  Location loc;
  SmallVector<Range> domain;
};

struct DecomposeAttention : attn::impl::DecomposeAttentionBase<DecomposeAttention> {
  void runOnOperation() override {
    WalkResult decomposed = getOperation().walk([&](AttentionOp op) -> WalkResult {
      if (!op.getPlan())
        return WalkResult::advance();
      Schedule schedule = op.getPlan()->getSchedule();
      bool isInTask = op->getParentOfType<scf::ForallOp>();
      if (schedule != Schedule::Unfused && !(schedule == Schedule::WholeScores && isInTask))
        return WalkResult::advance();
      for (unsigned i = 0; i < op.getCaptures().size(); ++i)
        if (findWordOfKey(op.getCaptureMap(i)))
          return op.emitOpError() << "expected schedule per-head or phased for a packed mask, got "
                                  << stringifySchedule(schedule);
      if (op.getFill())
        return op.emitOpError() << "expected schedule per-head or phased for a fill, got "
                                << stringifySchedule(schedule);
      OpBuilder builder(op);
      op->replaceAllUsesWith(Decomposer(builder, op).run());
      op->erase();
      return WalkResult::advance();
    });
    if (decomposed.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
