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
// Canonicalization drops a region that only yields its score, and captured operands that nothing reads.
// Test: test/passes/raise/extract-mask.mlir, test/passes/raise/extract-mask-formulas.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "dialect/KeyBounds.h"
#include "passes/Passes.h"
#include "passes/raise/Captures.h"
#include "passes/raise/Conditions.h"
#include "passes/raise/HiddenPairs.h"
#include "passes/raise/MaskTensor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
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
  // The op may also add the fill or 0 to the score. The sum is the fill only if the fill is near the lowest float.
  if (isa<arith::AddFOp>(op))
    for (unsigned i : {0, 1})
      if (auto select = op->getOperand(i).getDefiningOp<arith::SelectOp>())
        if (std::optional<Fill> fill = fillOf(select, kGreatestFiniteFill);
            fill && matchPattern(fill->score, m_AnyZeroFloat())) {
          fill->score = op->getOperand(1 - i);
          fill->isAdded = true;
          return fill;
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

/// An upper bound of |score| in multiples of the product of query and key, if `score` is computed from that product and
/// constants alone, so that no captured tensor can hide the pair.
static std::optional<double> findGrowth(AttentionOp op, Value score,
                                        DenseMap<Value, std::optional<double>> &known) {
  if (std::optional<double> constant = constantFloat(score))
    return std::abs(*constant);
  if (auto argument = dyn_cast<BlockArgument>(score))
    return argument.getArgNumber() == op.getKDim() + 1 ? std::optional(1.0) : std::nullopt;
  auto [entry, isNew] = known.try_emplace(score);
  if (!isNew)
    return entry->second;
  Operation *inner = score.getDefiningOp();
  std::optional<double> growth;
  if (isa<math::TanhOp>(inner) && findGrowth(op, inner->getOperand(0), known))
    growth = 1;
  if (isa<arith::MulFOp, arith::DivFOp, arith::AddFOp, arith::SubFOp>(inner)) {
    std::optional<double> left = findGrowth(op, inner->getOperand(0), known),
                          right = findGrowth(op, inner->getOperand(1), known);
    bool byConstant = constantFloat(inner->getOperand(1)).has_value();
    if (left && right && isa<arith::AddFOp, arith::SubFOp>(inner))
      growth = *left + *right;
    else if (left && right && isa<arith::DivFOp>(inner) && byConstant)
      growth = *left / *right;
    else if (left && right && isa<arith::MulFOp>(inner) &&
             (byConstant || constantFloat(inner->getOperand(0))))
      growth = *left * *right;
  }
  return known[score] = growth;
}

/// Whether `score` stays within half the greatest float, so that a finite fill beside it gets probability 0.
static bool isWithinBounds(AttentionOp op, Value score) {
  DenseMap<Value, std::optional<double>> known;
  std::optional<double> growth = findGrowth(op, score, known);
  return growth && *growth < 0x1p64;
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

static bool isNearLowest(const Fill &fill) { return fill.value <= kGreatestFiniteFill; }

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

/// Returns how many of `fills`, counted from the outermost, become the mask, and their value if it is finite.
static std::pair<size_t, std::optional<double>> chooseFills(AttentionOp op, ArrayRef<Fill> fills,
                                                            bool hasMask) {
  double value = fills.front().value;
  bool isFinite = fills.front().isFinite();
  if (isFinite && hasMask) // the mask hides pairs before the fills count
    return {0, std::nullopt};
  // A pair that one of these fills hides has the score of this fill, if the fills have one value and are not added to
  // large scores.
  auto *end = llvm::find_if(fills, [&](const Fill &fill) {
    return fill.value != value || (isFinite && fill.isAdded && !isWithinBounds(op, fill.score));
  });
  size_t count = end - fills.begin();
  return {count, isFinite && count > 0 ? std::optional(value) : std::nullopt};
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
  if (llvm::any_of(fills, [](const Fill &fill) { return fill.isFinite(); }) &&
      !(llvm::all_of(fills, isNearLowest) && isWithinBounds(op, score) &&
        keepsEveryRow(op, conditions))) {
    auto [count, value] = chooseFills(op, fills, /*hasMask=*/!masks.empty());
    conditions.truncate(numGiven + count);
    filled = value;
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
    return;
  }
  op.setMaskAttr(masks.size() == 1 ? cast<MaskInterface>(masks[0]) : AndAttr::get(context, masks));
  if (filled)
    op.setFillAttr(Builder(context).getF32FloatAttr(*filled));
}

namespace {
struct ExtractMask : attn::impl::ExtractMaskBase<ExtractMask> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) { extractMask(op); });
  }
};
} // namespace
