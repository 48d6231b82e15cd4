//===- MaskTest.cpp - mask analysis against every pair of small problems ---===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Bounds of kept keys, and proofs about whole masks, are compared with the pairs that kept() describes. The cases are
// random. Each test prints its seed; a run with this seed in the environment variable ATTN_SEED repeats the cases.
//
//===----------------------------------------------------------------------===//

#include "dialect/KeyBounds.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace attn;

namespace {
/// A tile of queries and keys. `captured` holds the value that each row reads from each captured operand.
struct Tile {
  int64_t q, rows, keys, step;
  SmallVector<SmallVector<int64_t>> captured;

  int64_t valueOf(unsigned capture, int64_t row) const { return captured[capture][row - q]; }

  SmallVector<int64_t> operands(ArrayRef<KeptSet> kept) const {
    SmallVector<int64_t> result = {q, rows, keys};
    for (const KeptSet &set : kept)
      for (unsigned capture : set.symbols) {
        ArrayRef<int64_t> values = captured[capture];
        // A tile without rows has no least and no greatest value, so any value is allowed.
        result.push_back(values.empty() ? 0 : *llvm::min_element(values));
        result.push_back(values.empty() ? 0 : *llvm::max_element(values));
      }
    return result;
  }
};

class MaskTest : public testing::Test {
protected:
  MaskTest() {
    context.loadDialect<AttnDialect, affine::AffineDialect, arith::ArithDialect>();
    if (const char *given = getenv("ATTN_SEED"))
      seed = std::stoul(given);
    else
      seed = std::random_device()();
    random.seed(seed);
    std::cerr << "ATTN_SEED=" << seed << "\n";
  }

  int64_t between(int64_t least, int64_t greatest) {
    return std::uniform_int_distribution<int64_t>(least, greatest)(random);
  }
  bool chance(double probability) { return std::bernoulli_distribution(probability)(random); }

  /// Returns a random causal, window or lengths mask. A lengths mask reads captured operand 0.
  MaskInterface simpleMask() {
    switch (between(0, 2)) {
    case 0:
      return CausalAttr::get(&context, between(-9, 9));
    case 1: {
      int64_t left = between(-4, 20);
      return WindowAttr::get(&context, left, between(-left, 12), between(-9, 9));
    }
    default:
      return LengthsAttr::get(&context, 0);
    }
  }

  /// Returns a random simple mask, or a conjunction of simple masks.
  MaskInterface mask() {
    if (chance(0.5))
      return simpleMask();
    SmallVector<Attribute> masks(between(0, 3));
    for (Attribute &part : masks)
      part = simpleMask();
    return AndAttr::get(&context, masks);
  }

  /// Returns a set of pairs (q, k) with random constraints, which may have factors, floor divisions and remainders.
  KeptSet oddSet() {
    AffineExpr q = getAffineDimExpr(0, &context), k = getAffineDimExpr(1, &context);
    SmallVector<AffineExpr> exprs;
    SmallVector<bool> isEquality;
    for (int64_t i = between(1, 3); i > 0; --i) {
      auto part = [&](AffineExpr expr) {
        expr = expr * between(-3, 3) + between(-9, 9);
        return chance(0.25)   ? expr.floorDiv(between(1, 5))
               : chance(0.25) ? expr % between(1, 5)
                              : expr;
      };
      exprs.push_back(part(q) + part(k));
      isEquality.push_back(chance(0.15));
    }
    return {IntegerSet::get(2, 0, exprs, isEquality), {}, {}};
  }

  Tile tile() {
    constexpr int64_t kSteps[] = {1, 2, 3, 4, 7, 8, 16, 64};
    return {between(0, 40), between(0, 13), between(0, 47), kSteps[between(0, 7)], {}};
  }

  MLIRContext context;
  unsigned seed;
  std::mt19937 random;
};

bool holds(const IntegerSet &set, ArrayRef<int64_t> dims, ArrayRef<int64_t> symbols) {
  MLIRContext *context = set.getContext();
  auto constants = [&](ArrayRef<int64_t> values) {
    return llvm::map_to_vector(
        values, [&](int64_t value) { return getAffineConstantExpr(value, context); });
  };
  for (auto [expr, isEquality] : llvm::zip_equal(set.getConstraints(), set.getEqFlags())) {
    int64_t value =
        cast<AffineConstantExpr>(expr.replaceDimsAndSymbols(constants(dims), constants(symbols)))
            .getValue();
    if (isEquality ? value != 0 : value < 0)
      return false;
  }
  return true;
}

/// Returns whether one of the sets keeps a pair. Dense masks keep a fixed pattern of pairs.
bool isKept(ArrayRef<KeptSet> kept, const Tile &tile, int64_t q, int64_t k) {
  return llvm::any_of(kept, [&](const KeptSet &set) {
    SmallVector<int64_t> symbols = llvm::map_to_vector(
        set.symbols, [&](unsigned capture) { return tile.valueOf(capture, q); });
    return holds(set.pairs, {q, k}, symbols) && (set.tests.empty() || (5 * q + 3 * k) % 7 < 4);
  });
}

/// Checks the conditions that the bounds of every mask must fulfil.
void expectSound(ArrayRef<KeptSet> kept, const Tile &tile, std::array<int64_t, 4> bounds) {
  auto [lo, fullLo, fullHi, hi] = bounds;
  EXPECT_LE(0, lo);
  EXPECT_LE(lo, fullLo);
  EXPECT_LE(fullLo, fullHi);
  EXPECT_LE(fullHi, hi);
  EXPECT_LE(hi, tile.keys);
  EXPECT_EQ((fullHi - fullLo) % tile.step, 0);
  for (int64_t q = tile.q; q < tile.q + tile.rows; ++q) {
    for (int64_t k = 0; k < tile.keys; ++k) {
      bool keeps = isKept(kept, tile, q, k);
      if (keeps) {
        EXPECT_TRUE(lo <= k && k < hi) << "kept pair " << q << ", " << k << " outside";
      } else {
        EXPECT_FALSE(fullLo <= k && k < fullHi)
            << "hidden pair " << q << ", " << k << " in the full range";
      }
    }
  }
}

/// Checks that the bounds are the smallest range of all kept keys, and the longest range of whole
/// steps whose keys every row keeps.
void expectExact(ArrayRef<KeptSet> kept, const Tile &tile, std::array<int64_t, 4> bounds) {
  auto [lo, fullLo, fullHi, hi] = bounds;
  int64_t first = tile.keys, end = 0, run = 0, longestRun = 0;
  for (int64_t k = 0; k < tile.keys; ++k) {
    int64_t count = 0;
    for (int64_t q = tile.q; q < tile.q + tile.rows; ++q)
      count += isKept(kept, tile, q, k);
    if (count) {
      first = std::min(first, k);
      end = k + 1;
    }
    run = count == tile.rows ? run + 1 : 0;
    longestRun = std::max(longestRun, run);
  }
  if (first < end) {
    EXPECT_EQ(lo, first);
    EXPECT_EQ(hi, end);
  } else {
    EXPECT_EQ(lo, hi);
  }
  EXPECT_EQ(fullHi - fullLo, longestRun / tile.step * tile.step);
}

std::string describe(Attribute mask, const Tile &tile) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << mask << " rows " << tile.q << " + " << tile.rows << " keys " << tile.keys << " step "
     << tile.step;
  for (ArrayRef<int64_t> values : tile.captured)
    llvm::interleaveComma(values, os << " captured ");
  return text;
}
} // namespace

TEST_F(MaskTest, BoundsOfNamedMasks) {
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    MaskInterface mask = this->mask();
    Tile tile = this->tile();
    // Lengths vary over the rows in one case of three.
    tile.captured.push_back(SmallVector<int64_t>(tile.rows, between(0, tile.keys)));
    bool varies = chance(0.33);
    if (varies)
      for (int64_t &length : tile.captured[0])
        length = between(0, tile.keys);
    SCOPED_TRACE(describe(mask, tile));

    SmallVector<KeptSet> kept = mask.kept(0);
    KeyBounds bounds = KeyBounds::get(&context, mask, 0, tile.step);
    std::array<int64_t, 4> result = bounds.evaluate(tile.operands(kept));
    expectSound(kept, tile, result);
    if (tile.rows > 0 && !varies)
      expectExact(kept, tile, result);
  }
}

TEST_F(MaskTest, BoundsOfUnions) {
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    SmallVector<KeptSet> kept;
    for (int64_t parts = between(0, 3); parts > 0; --parts)
      llvm::append_range(kept, chance(0.5) ? mask().kept(0) : SmallVector<KeptSet>{oddSet()});
    for (KeptSet &set : kept)
      if (chance(0.2))
        set.tests.push_back({0, Polarity::Nonzero});
    KeyBounds bounds = KeyBounds::get(&context, kept, 0, 4);
    for (int j = 0; j < 5; ++j) {
      Tile tile = this->tile();
      tile.step = 4;
      tile.captured.push_back(SmallVector<int64_t>(tile.rows));
      for (int64_t &length : tile.captured[0])
        length = between(0, tile.keys);
      std::string sets;
      llvm::raw_string_ostream os(sets);
      for (const KeptSet &set : kept)
        set.pairs.print(os << " or ");
      SCOPED_TRACE(sets + describe(nullptr, tile));
      expectSound(kept, tile, bounds.evaluate(tile.operands(kept)));
    }
  }
}

TEST_F(MaskTest, BoundsWithoutMask) {
  for (int i = 0; i < 500; ++i) {
    Tile tile = this->tile();
    KeyBounds bounds = KeyBounds::get(&context, MaskInterface(), 0, tile.step);
    std::array<int64_t, 4> expected = {0, 0, tile.keys / tile.step * tile.step, tile.keys};
    EXPECT_EQ(bounds.evaluate({tile.q, tile.rows, tile.keys}), expected);
  }
}

/// Compares the results of the ops that build() creates with those of evaluate(). Folding the ops one after another on
/// constants has the same results as running them.
TEST_F(MaskTest, OperationsComputeTheSame) {
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    SmallVector<KeptSet> kept = mask().kept(0);
    if (chance(0.2))
      llvm::append_range(kept, mask().kept(0));
    Tile tile = this->tile();
    tile.captured.push_back(SmallVector<int64_t>(tile.rows, between(0, tile.keys)));
    SmallVector<int64_t> operands = tile.operands(kept);
    KeyBounds bounds = KeyBounds::get(&context, kept, 0, tile.step);

    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
    // Some operands are constants; the others are results of an unknown operation.
    llvm::DenseMap<Value, Attribute> constants;
    SmallVector<OpFoldResult> mixed;
    for (int64_t operand : operands) {
      Attribute constant = builder.getIndexAttr(operand);
      if (chance(0.3)) {
        mixed.push_back(constant);
        continue;
      }
      Value unknown =
          UnrealizedConversionCastOp::create(builder, loc, builder.getIndexType(), ValueRange())
              .getResult(0);
      constants[unknown] = constant;
      mixed.push_back(unknown);
    }
    std::array<OpFoldResult, 4> built = bounds.build(builder, loc, mixed);
    for (Operation &op : *module->getBody()) {
      if (isa<UnrealizedConversionCastOp>(op))
        continue;
      SmallVector<Attribute> inputs = llvm::map_to_vector(
          op.getOperands(), [&](Value value) { return constants.lookup(value); });
      SmallVector<OpFoldResult> folded;
      ASSERT_TRUE(succeeded(op.fold(inputs, folded)) && folded.size() == 1);
      auto constant = dyn_cast<Attribute>(folded[0]);
      constants[op.getResult(0)] = constant ? constant : constants.lookup(cast<Value>(folded[0]));
    }
    std::array<int64_t, 4> expected = bounds.evaluate(operands);
    for (auto [result, value] : llvm::zip_equal(built, expected)) {
      Attribute constant =
          isa<Value>(result) ? constants.lookup(cast<Value>(result)) : cast<Attribute>(result);
      EXPECT_EQ(cast<IntegerAttr>(constant).getInt(), value);
    }
  }
}

TEST_F(MaskTest, ProofsOfNamedMasks) {
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    MaskInterface mask = this->mask();
    PairCounts counts{between(0, 12), between(0, 12)};
    SmallVector<KeptSet> kept = mask.kept(0);
    // A length may be any integer: -1 hides every key, and a length above the number of keys hides no key.
    bool hasEmptyRow = false, hidesPair = false;
    for (int64_t length = -1; length <= counts.keys + 1; ++length) {
      Tile tile{0, counts.queries, counts.keys, 1, {SmallVector<int64_t>(counts.queries, length)}};
      for (int64_t q = 0; q < counts.queries; ++q) {
        int64_t count = 0;
        for (int64_t k = 0; k < counts.keys; ++k)
          count += isKept(kept, tile, q, k);
        hasEmptyRow |= count == 0;
        hidesPair |= count < counts.keys;
      }
    }
    SCOPED_TRACE(describe(mask, {0, counts.queries, counts.keys, 1, {}}));
    EXPECT_EQ(mayHaveEmptyRow(mask, 0, counts), hasEmptyRow);
    EXPECT_EQ(keepsAll(mask, 0, counts), !hidesPair);
    // A proof for an unknown count must hold for this count too.
    for (PairCounts unknown : {PairCounts{ShapedType::kDynamic, counts.keys},
                               PairCounts{counts.queries, ShapedType::kDynamic},
                               PairCounts{ShapedType::kDynamic, ShapedType::kDynamic}}) {
      EXPECT_TRUE(!hasEmptyRow || mayHaveEmptyRow(mask, 0, unknown));
      EXPECT_TRUE(!hidesPair || !keepsAll(mask, 0, unknown));
    }
    PairCounts equal{ShapedType::kDynamic, ShapedType::kDynamic, true};
    if (counts.queries == counts.keys) {
      EXPECT_TRUE(!hasEmptyRow || mayHaveEmptyRow(mask, 0, equal));
      EXPECT_TRUE(!hidesPair || !keepsAll(mask, 0, equal));
    }
  }
}

TEST_F(MaskTest, ProofsOfUnknownCounts) {
  constexpr int64_t kUnknown = ShapedType::kDynamic;
  MaskInterface causal = CausalAttr::get(&context, 0), late = CausalAttr::get(&context, -1);
  MaskInterface window = WindowAttr::get(&context, 3, 0, 0);
  PairCounts selfAttention{kUnknown, kUnknown, true};
  EXPECT_FALSE(mayHaveEmptyRow(causal, 2, selfAttention));
  EXPECT_FALSE(mayHaveEmptyRow(window, 2, selfAttention));
  EXPECT_TRUE(mayHaveEmptyRow(late, 2, selfAttention));
  // An unknown number of keys may be 0; then every row is empty. If there are many more queries than keys, the
  // window of the last query lies beyond the last key.
  EXPECT_TRUE(mayHaveEmptyRow(causal, 2, {kUnknown, kUnknown}));
  EXPECT_FALSE(mayHaveEmptyRow(causal, 2, {kUnknown, kUnknown, false, /*someKey=*/true}));
  EXPECT_TRUE(mayHaveEmptyRow(late, 2, {kUnknown, kUnknown, false, /*someKey=*/true}));
  EXPECT_FALSE(mayHaveEmptyRow(causal, 2, {kUnknown, 5}));
  EXPECT_TRUE(mayHaveEmptyRow(window, 2, {kUnknown, 5}));
  EXPECT_TRUE(mayHaveEmptyRow(DenseAttr::get(&context, 0, Polarity::Nonzero), 2, {4, 4}));
  EXPECT_TRUE(keepsAll(AndAttr::get(&context, {}), 2, {kUnknown, kUnknown}));
  EXPECT_TRUE(keepsAll(CausalAttr::get(&context, 7), 2, {kUnknown, 8}));
  EXPECT_FALSE(keepsAll(DenseAttr::get(&context, 0, Polarity::Nonzero), 2, {4, 4}));
}
