//===- MaskTest.cpp - mask analysis against every pair of small problems ---===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Bounds and proofs are compared with what kept() says of each pair. Cases are random; a failure
// prints the seed that ATTN_SEED repeats.
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

  /// One of causal, window and lengths, which reads captured operand 0.
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

  /// A simple mask, or some of them at once.
  MaskInterface mask() {
    if (chance(0.5))
      return simpleMask();
    SmallVector<Attribute> masks(between(0, 3));
    for (Attribute &part : masks)
      part = simpleMask();
    return AndAttr::get(&context, masks);
  }

  MLIRContext context;
  unsigned seed;
  std::mt19937 random;
};

/// A tile and what its rows read: one value a captured operand and row.
struct Tile {
  int64_t q, rows, keys, step;
  SmallVector<SmallVector<int64_t>> captured;

  int64_t valueOf(unsigned capture, int64_t row) const { return captured[capture][row - q]; }

  SmallVector<int64_t> operands(ArrayRef<KeptSet> kept) const {
    SmallVector<int64_t> result = {q, rows, keys};
    for (const KeptSet &set : kept)
      for (unsigned capture : set.symbols) {
        ArrayRef<int64_t> values = captured[capture];
        // Of no rows any value will do.
        result.push_back(values.empty() ? 0 : *llvm::min_element(values));
        result.push_back(values.empty() ? 0 : *llvm::max_element(values));
      }
    return result;
  }
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

/// Whether a pair is kept; dense tests hold nowhere or everywhere.
bool isKept(ArrayRef<KeptSet> kept, const Tile &tile, int64_t q, int64_t k) {
  return llvm::any_of(kept, [&](const KeptSet &set) {
    SmallVector<int64_t> symbols = llvm::map_to_vector(
        set.symbols, [&](unsigned capture) { return tile.valueOf(capture, q); });
    return holds(set.pairs, {q, k}, symbols);
  });
}

/// What must hold of the bounds of any mask.
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

/// The least range that holds every kept key, and the longest whole steps of keys that every row
/// keeps.
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
  constexpr int64_t kSteps[] = {1, 2, 3, 4, 7, 8, 16, 64};
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    MaskInterface mask = this->mask();
    Tile tile{between(0, 40), between(0, 13), between(0, 47), kSteps[between(0, 7)], {}};
    // Lengths vary over the rows in one case of three.
    SmallVector<int64_t> lengths(tile.rows, between(0, tile.keys));
    bool varies = chance(0.33);
    if (varies)
      for (int64_t &length : lengths)
        length = between(0, tile.keys);
    tile.captured.push_back(lengths);
    SCOPED_TRACE(describe(mask, tile));

    SmallVector<KeptSet> kept = mask.kept(0);
    KeyBounds bounds = KeyBounds::get(&context, mask, 0, tile.step);
    SmallVector<int64_t> operands = tile.operands(kept);
    std::array<int64_t, 4> result = bounds.evaluate(operands);
    expectSound(kept, tile, result);
    if (tile.rows > 0 && !varies)
      expectExact(kept, tile, result);
  }
}
