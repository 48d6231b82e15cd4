//===- ExtractMask.cpp - fills become the mask -----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(%q, %k, %v) captures(%padding) score {
//     ^bb0(%b, %q, %k, %s, %p):  t = select (%p == 0), -inf, %s
//                                yield (select (%k <= %q), t, -inf) }
// becomes
//   attn.attention ins(%q, %k, %v) captures(%padding) mask(#attn.and<[#attn.causal, #attn.dense<0>]>)
// and
//   yield (select (%k <= %position + %q), %s, -inf)
// becomes
//   %lengths = linalg.generic ins(%position) { max(%position + (linalg.index 0) + 1, 0) }        a number for each query
//   attn.attention ins(%q, %k, %v) captures(%position, %lengths) mask(#attn.lengths<1>)
//
//   yield (select (%document_q == %document_k), %s, -inf)
// becomes
//   %keep = linalg.generic ins(%documents, %documents) { ==, yielded for each q and k }
//   attn.attention ins(%q, %k, %v) captures(%keep) mask(#attn.dense<0>)
//
// The pass reads only fills and additions of -inf or 0 at the end of the region, because no op may change the -inf
// afterwards. It splits a condition into parts that must all hold. A part is moved to the mask if it is a comparison
// that a named mask states (causal, window, lengths) or a test of a captured element for zero. The parts that no named
// mask states are computed as a boolean tensor, and the mask tests this tensor. So the speed of a mask does not depend
// on how the graph spells it. The pass treats a mask tensor that the graph computes in the same way: captured operands that
// are formulas of positions move into the region first. A part that depends on the scores, such as a threshold, stays
// in the region and still hides its pairs; loops then visit the keys that the other parts keep.
//
// A finite fill hides nothing by itself: a row in which all scores are filled averages the values. A fill near the
// lowest float becomes a mask if every row is proved to keep a pair, and if the other scores are computed from the
// product and constants alone: beside the score of a kept pair, the filled scores then get probability 0. Any other
// finite fill of at most -1000 becomes the attribute `fill`, and its condition becomes the mask, if the attention has no
// other mask:
//   yield (select (%k <= %q), %s, -1.0e9)
// becomes
//   attn.attention ins(%q, %k, %v) mask(#attn.causal) {fill = -1.0e9 : f32}
// A finite fill may also be added to the score:
//   yield (%s + (1 - uitofp (%k <= %q)) * -1.0e4)
// becomes
//   attn.attention ins(%q, %k, %v) mask(#attn.causal) {added, fill = -1.0e4 : f32}
// if the score is computed from the product and constants alone, so that loops can bound it.
// Canonicalization drops a region that only yields its score, and captured operands that nothing reads.
// Test: test/passes/raise/extract-mask.mlir, test/passes/raise/extract-mask-formulas.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "dialect/KeyBounds.h"
#include "passes/Passes.h"
#include "passes/ScoreBound.h"
#include "passes/raise/Captures.h"
#include "passes/raise/Conditions.h"
#include "passes/raise/HiddenPairs.h"
#include "passes/raise/MaskTensor.h"
#include "passes/raise/PossibleValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

namespace attn {
#define GEN_PASS_DEF_EXTRACTMASK
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// `op` computes -inf or a finite number, `value`, where `condition` is `hides`, and `score` elsewhere.
struct Fill {
  Operation *op;
  Value score, condition;
  bool hides;
  double value;
  bool isAdded = false; // to the score

  bool isFinite() const { return std::isfinite(value); }
};
} // namespace

/// The greatest fill whose pairs are skipped: it is so far below usual scores that a row seldom needs its hidden pairs.
static constexpr double kGreatestSkippedFill = -1000;

static std::optional<double> constantFloat(Value value) {
  FloatAttr constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return std::nullopt;
  return constant.getValueAsDouble();
}

/// The other value of a scalar that is computed from booleans and constants and has two values, one of which is 0.
static std::optional<double> findValueBesideZero(Value value) {
  std::optional<SmallVector<Attribute>> values = findPossibleValues(value);
  if (!values)
    return std::nullopt;
  std::optional<double> nonzero;
  bool hasZero = false;
  for (Attribute possible : *values) {
    auto constant = dyn_cast<FloatAttr>(possible);
    if (!constant)
      return std::nullopt;
    double number = constant.getValueAsDouble();
    if (number == 0)
      hasZero = true;
    else if (nonzero.value_or(number) == number)
      nonzero = number;
    else
      return std::nullopt;
  }
  return hasZero ? nonzero : std::nullopt;
}

/// Computes before `op` whether `value` differs from 0.
static Value isNonzero(Operation *op, Value value) {
  OpBuilder builder(op);
  Value zero =
      arith::ConstantOp::create(builder, op->getLoc(), builder.getZeroAttr(value.getType()));
  return arith::CmpFOp::create(builder, op->getLoc(), arith::CmpFPredicate::UNE, value, zero);
}

static std::optional<Fill> matchFill(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.hasOneUse())
    return std::nullopt;
  auto fillOf = [&](arith::SelectOp select, double greatest) -> std::optional<Fill> {
    std::optional<double> atTrue = constantFloat(select.getTrueValue()),
                          atFalse = constantFloat(select.getFalseValue());
    bool fillsTrue = atTrue && *atTrue <= greatest;
    if (fillsTrue == (atFalse && *atFalse <= greatest))
      return std::nullopt;
    return Fill{op, fillsTrue ? select.getFalseValue() : select.getTrueValue(),
                select.getCondition(), fillsTrue, fillsTrue ? *atTrue : *atFalse};
  };
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return fillOf(select, kGreatestSkippedFill);
  // The op may also add the fill or 0 to the score, or subtract its negative.
  bool isDifference = isa<arith::SubFOp>(op);
  if (isDifference || isa<arith::AddFOp>(op))
    for (unsigned i = isDifference ? 1 : 0; i < 2; ++i)
      if (std::optional<double> nonzero = findValueBesideZero(op->getOperand(i))) {
        double added = isDifference ? -*nonzero : *nonzero;
        if (added <= kGreatestSkippedFill)
          return Fill{
              op,    op->getOperand(1 - i), isNonzero(op, op->getOperand(i)), /*hides=*/true,
              added, /*isAdded=*/true};
      }
  return std::nullopt;
}

/// Moves the computation of captured operands that are formulas of positions into the region.
static void computeCaptures(AttentionOp op) {
  if (op.getScore().empty())
    return;
  Block &score = op.getScore().front();
  for (unsigned i = 0; i < op.getCaptures().size(); ++i) {
    BlockArgument argument = score.getArgument(op.getKDim() + 2 + i);
    if (argument.use_empty())
      continue;
    if (Value computed = computeCapture(op, i))
      argument.replaceAllUsesWith(computed);
  }
}

/// The masks whose conjunction is the mask of `op`.
static SmallVector<Attribute> masksOf(AttentionOp op) {
  MaskInterface mask = op.getMaskAttr();
  if (auto all = dyn_cast_or_null<AndAttr>(mask))
    return SmallVector<Attribute>(all.getMasks());
  return mask ? SmallVector<Attribute>{mask} : SmallVector<Attribute>();
}

/// Whether `score` is computed from the product and constants alone and stays within half the greatest float, so that a
/// fill near the lowest float gets probability 0 beside it.
static bool isWithinBounds(AttentionOp op, Value score) {
  std::optional<double> bound = boundScore(op, score);
  return bound && *bound < 0x1p64;
}

namespace {
/// A condition that kept pairs satisfy. `erase` removes the condition from the attention; it is called if the mask
/// states the whole condition.
struct Condition {
  Kept kept;
  Location loc;
  llvm::unique_function<void()> erase;
};
} // namespace

static Kept keptBy(ArrayRef<Condition> conditions) {
  Kept bounds;
  for (const Condition &condition : conditions)
    bounds.add(condition.kept);
  return bounds;
}

/// Whether a window can state the lower bound: no mask states k >= q - lower alone, and a window cannot be empty.
static bool canTakeLower(const Kept &bounds) {
  return bounds.upper && bounds.lower && *bounds.upper + *bounds.lower >= 0;
}

/// Returns `masks`, followed by the masks that state `kept`.
static SmallVector<Attribute> withBounds(SmallVector<Attribute> masks, const Kept &kept,
                                         MLIRContext *context) {
  if (kept.lower)
    masks.push_back(WindowAttr::get(context, *kept.lower, *kept.upper, /*offset=*/0));
  else if (kept.upper)
    masks.push_back(CausalAttr::get(context, *kept.upper));
  llvm::append_range(masks, kept.masks);
  return masks;
}

/// Whether every row keeps a pair under the present mask and the conditions.
static bool keepsEveryRow(AttentionOp op, ArrayRef<Condition> conditions) {
  Kept bounds = keptBy(conditions);
  if ((bounds.lower && !canTakeLower(bounds)) || !bounds.rest.empty())
    return false;
  SmallVector<Attribute> all = withBounds(masksOf(op), bounds, op.getContext());
  PairCounts counts = countPairs(op);
  counts.someKey = true; // without a key there is nothing to fill
  return !mayHaveEmptyRow(AndAttr::get(op.getContext(), all), op.getNumBatch(), counts);
}

static bool isNearLowest(const Fill &fill) { return fill.value <= kGreatestFiniteFill; }

/// Whether hidden pairs have the sum of the fill and the score: a score that is small beside a number near the lowest
/// float does not change it.
static bool isSum(AttentionOp op, const Fill &fill) {
  return fill.isAdded && fill.isFinite() && !(isNearLowest(fill) && isWithinBounds(op, fill.score));
}

/// Whether a mask can state all parts of `kept`.
static bool canState(AttentionOp op, const Kept &kept) {
  auto canCompute = [&](Part part) { return canComputeTensor(op, part); };
  return llvm::all_of(kept.rest, canCompute) && llvm::all_of(kept.lowerParts, canCompute);
}

/// Whether the mask can state all of `fill`, which is a sum and hides the pairs outside of `kept`, and loops can skip
/// these pairs: usual scores are far above the fill.
static bool canSkipSum(AttentionOp op, const Fill &fill, const Kept &kept) {
  constexpr double kUsualProduct = 128;
  std::optional<double> bound = boundScore(op, fill.score);
  return bound && *bound * kUsualProduct <= -fill.value && canState(op, kept);
}

/// Returns how many of `fills`, counted from the outermost, become the mask. `kept` are the pairs that the outermost
/// keeps.
static size_t countFillsOfMask(AttentionOp op, ArrayRef<Fill> fills, const Kept &kept,
                               bool hasMask) {
  const Fill &first = fills.front();
  if (first.isFinite() && hasMask) // the mask hides pairs before the fills count
    return 0;
  if (isSum(op, first))
    return canSkipSum(op, first, kept) ? 1 : 0;
  // A pair that one of these fills hides has the score of this fill, if the fills have one value and are not added to
  // large scores.
  auto *end = llvm::find_if(
      fills, [&](const Fill &fill) { return fill.value != first.value || isSum(op, fill); });
  return end - fills.begin();
}

/// Moves the fills at the end of the region to the mask, and splits mask tensors that the graph computes.
static void extractMask(AttentionOp op) {
  SmallVector<Attribute> masks = masksOf(op);
  SmallVector<Condition, 1> conditions;
  for (Attribute mask : masks) {
    auto dense = dyn_cast<DenseAttr>(mask);
    Value computed = dense ? computeCapture(op, dense.getCapture()) : Value();
    if (!computed)
      continue;
    conditions.push_back({readCondition(op, computed, dense.getKeeps() == Polarity::Nonzero,
                                        /*boundsLengths=*/!op.getFill()),
                          op.getCaptures()[dense.getCapture()].getLoc(),
                          [&masks, mask] { llvm::erase(masks, mask); }});
  }
  computeCaptures(op);
  size_t numGiven = conditions.size();
  SmallVector<Fill> fills;
  Value score;
  // If hidden pairs have a score already, a fill in the region would be a second one.
  if (!op.getScore().empty() && !op.getFill()) {
    score = cast<YieldOp>(op.getScore().front().getTerminator()).getValue();
    for (std::optional<Fill> fill = matchFill(score); fill; fill = matchFill(score)) {
      score = fill->score;
      fills.push_back(*fill);
      conditions.push_back(
          {readCondition(op, fill->condition, !fill->hides, /*boundsLengths=*/!fill->isFinite()),
           fill->op->getLoc(), [fill = *fill] {
             fill.op->replaceAllUsesWith(ValueRange(fill.score));
             fill.op->erase();
           }});
    }
  }

  MLIRContext *context = op.getContext();
  std::optional<double> filled;
  bool isAdded = false;
  if (llvm::any_of(fills, [](const Fill &fill) { return fill.isFinite(); }) &&
      !(llvm::all_of(fills, isNearLowest) && isWithinBounds(op, score) &&
        keepsEveryRow(op, conditions))) {
    // The mask must state the whole condition of a sum. A part that varies with the query alone is computed together
    // with the others.
    Kept &kept = conditions[numGiven].kept;
    if (isSum(op, fills.front()) && !canState(op, kept)) {
      kept = Kept();
      kept.rest.push_back({fills.front().condition, /*truth=*/false});
    }
    size_t count = countFillsOfMask(op, fills, kept, /*hasMask=*/!masks.empty());
    conditions.truncate(numGiven + count);
    if (count > 0 && fills.front().isFinite())
      filled = fills.front().value;
    isAdded = filled && isSum(op, fills.front());
  }
  if (!canTakeLower(keptBy(conditions)))
    for (Condition &condition : conditions) {
      condition.kept.lower.reset();
      llvm::append_range(condition.kept.rest, condition.kept.lowerParts);
    }
  Kept kept = keptBy(conditions);
  computeMaskTensor(op, kept);
  for (Condition &condition : conditions) {
    const Kept &parts = condition.kept;
    size_t numTensors =
        llvm::count_if(parts.rest, [&](Part part) { return canComputeTensor(op, part); });
    if (parts.upper || !parts.masks.empty() || numTensors > 0)
      addLocation(op, op.getMaskAttrName(), condition.loc);
    if (numTensors == parts.rest.size())
      condition.erase();
  }

  masks = withBounds(std::move(masks), kept, context);
  if (masks.empty()) {
    op.removeMaskAttr();
    op.removeFillAttr();
    op.setAdded(false);
    return;
  }
  op.setMaskAttr(masks.size() == 1 ? cast<MaskInterface>(masks[0]) : AndAttr::get(context, masks));
  if (filled) {
    op.setFillAttr(Builder(context).getF32FloatAttr(*filled));
    op.setAdded(isAdded);
  }
}

namespace {
struct ExtractMask : attn::impl::ExtractMaskBase<ExtractMask> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) { extractMask(op); });
  }
};
} // namespace
