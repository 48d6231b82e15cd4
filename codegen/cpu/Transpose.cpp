//===- Transpose.cpp - L vectors of L lanes, transposed --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A transposition consists of rounds. Each round pairs rows at a fixed distance, and replaces the rows of a pair by two
// shuffles of both. There are two kinds of shuffles. Each is one instruction on CPUs whose registers consist of blocks
// of 4 lanes:
//
//   interleave within blocks:  a0 b0 a1 b1 | ...   and   a2 b2 a3 b3 | ...     rows 2 apart, then 1
//   take the even-numbered blocks of both rows, and the odd-numbered blocks   rows 4 apart, then 8
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Transpose.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <functional>

using namespace mlir;
using namespace attn;

namespace {
/// Two shuffles of the concatenation of rows a and b, which are `distance` apart. Lane i of shuffle `part`, 0 or 1, is
/// lane `source(i, part)` of the concatenation.
struct Round {
  int64_t distance;
  std::function<int64_t(int64_t lane, int64_t part)> source;

  Value shuffle(OpBuilder &builder, Location loc, Value a, Value b, int64_t part) const {
    int64_t lanes = cast<VectorType>(a.getType()).getNumElements();
    auto order = llvm::map_to_vector(llvm::seq<int64_t>(0, lanes),
                                     [&](int64_t lane) { return source(lane, part); });
    return vector::ShuffleOp::create(builder, loc, a, b, order);
  }
};

} // namespace

static SmallVector<Round> getRounds(int64_t lanes) {
  int64_t block = std::min<int64_t>(lanes, 4);
  SmallVector<Round> rounds;
  for (int64_t distance = block / 2; distance > 0; distance /= 2)
    rounds.push_back({distance, [=](int64_t lane, int64_t part) {
                        int64_t base = lane / block * block, within = lane % block;
                        return base + part * block / 2 + within / 2 + within % 2 * lanes;
                      }});
  // If there are two of these rounds, the first takes half of the blocks of each row from one row of a pair and half
  // from the other, and the second puts the blocks in order.
  for (int64_t distance = block; distance < lanes; distance *= 2)
    rounds.push_back({distance, [=](int64_t lane, int64_t part) {
                        return (2 * (lane / block) + part) * block + lane % block;
                      }});
  return rounds;
}

SmallVector<Value> attn::createTranspose(OpBuilder &builder, Location loc, ArrayRef<Value> rows) {
  SmallVector<Value> result(rows);
  for (const Round &round : getRounds(rows.size()))
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i & round.distance)
        continue;
      Value a = result[i], b = result[i + round.distance];
      result[i] = round.shuffle(builder, loc, a, b, 0);
      result[i + round.distance] = round.shuffle(builder, loc, a, b, 1);
    }
  return result;
}

Value attn::createSumsOfLanes(OpBuilder &builder, Location loc, ArrayRef<Value> rows) {
  SmallVector<Value> sums(rows);
  size_t done = 0; // the distances of earlier rounds, whose pairs of rows are merged
  for (const Round &round : getRounds(rows.size())) {
    for (size_t i = 0; i < rows.size(); ++i)
      if (!(i & (done | round.distance))) {
        Value a = sums[i], b = sums[i + round.distance];
        sums[i] = createAdd(builder, loc, round.shuffle(builder, loc, a, b, 0),
                            round.shuffle(builder, loc, a, b, 1));
      }
    done |= round.distance;
  }
  return sums.front();
}

namespace {
/// L positions of a dimension, starting at `begin`, or fewer at the end of the dimension.
struct BlockEdge {
  int64_t lanes;
  Value begin;
  /// The number of positions; L for a full block.
  OpFoldResult count;

  static BlockEdge whole(OpBuilder &b, int64_t lanes, Value begin) {
    return {lanes, begin, b.getIndexAttr(lanes)};
  }
  static BlockEdge rest(OpBuilder &b, Location loc, int64_t lanes, Value begin, OpFoldResult size) {
    if (std::optional<int64_t> known = getConstantIntValue(size))
      return {lanes, begin, b.getIndexAttr(*known % lanes)};
    Value end = getValueOrCreateConstantIndexOp(b, loc, size);
    return {lanes, begin, arith::SubIOp::create(b, loc, end, begin).getResult()};
  }

  std::optional<int64_t> known() const { return getConstantIntValue(count); }
  Lanes toLanes(OpBuilder &b, Location loc) const {
    VectorType type = VectorType::get(lanes, b.getI1Type());
    if (known() == lanes)
      return {lanes, begin, {}};
    if (known())
      return {lanes, begin, vector::ConstantMaskOp::create(b, loc, type, {*known()})};
    Value value = getValueOrCreateConstantIndexOp(b, loc, count);
    return {lanes, begin, vector::CreateMaskOp::create(b, loc, type, value)};
  }
  Value at(OpBuilder &b, Location loc, Value offset) const {
    return b.createOrFold<arith::AddIOp>(loc, begin, offset);
  }
};
} // namespace

void attn::createTransposedCopy(
    OpBuilder &builder, Location loc, int64_t lanes, OpFoldResult numRows, OpFoldResult numColumns,
    llvm::function_ref<Value(OpBuilder &, Value row, const Lanes &)> load,
    llvm::function_ref<void(OpBuilder &, Value column, const Lanes &, Value)> store) {
  auto constant = [&](OpBuilder &b, int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto copyBlock = [&](OpBuilder &b, const BlockEdge &rows, const BlockEdge &columns) {
    Lanes across = columns.toLanes(b, loc), down = rows.toLanes(b, loc);
    SmallVector<Value> block;
    for (int64_t i = 0; i < lanes; ++i) {
      if (rows.known() && i >= *rows.known()) {
        block.push_back(block.back());
        continue;
      }
      Value offset = constant(b, i);
      if (!rows.known()) {
        Value last = arith::SubIOp::create(b, loc, cast<Value>(rows.count), constant(b, 1));
        offset = arith::MinUIOp::create(b, loc, offset, last);
      }
      block.push_back(load(b, rows.at(b, loc, offset), across));
    }
    for (auto [j, vector] : llvm::enumerate(createTranspose(b, loc, block))) {
      Value offset = constant(b, j);
      Lanes kept = down;
      if (columns.known() && int64_t(j) >= *columns.known())
        break;
      if (!columns.known()) {
        Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, offset,
                                             cast<Value>(columns.count));
        VectorType type = VectorType::get(lanes, b.getI1Type());
        kept.mask = vector::BroadcastOp::create(b, loc, type, exists);
        if (down.mask)
          kept.mask = arith::AndIOp::create(b, loc, kept.mask, down.mask);
      }
      store(b, columns.at(b, loc, offset), kept, vector);
    }
  };

  auto forEachBlock = [&](OpBuilder &b, OpFoldResult size,
                          llvm::function_ref<void(OpBuilder &, const BlockEdge &)> body) {
    OpFoldResult whole = roundDown(b, loc, size, lanes);
    createLoop(b, loc, b.getIndexAttr(0), whole, lanes, {},
               [&](OpBuilder &inner, Value begin, ValueRange) {
                 body(inner, BlockEdge::whole(inner, lanes, begin));
                 return SmallVector<Value>();
               });
    createLoop(b, loc, whole, size, lanes, {}, [&](OpBuilder &inner, Value begin, ValueRange) {
      body(inner, BlockEdge::rest(inner, loc, lanes, begin, size));
      return SmallVector<Value>();
    });
  };
  forEachBlock(builder, numRows, [&](OpBuilder &rowBuilder, const BlockEdge &rows) {
    forEachBlock(rowBuilder, numColumns, [&](OpBuilder &inner, const BlockEdge &columns) {
      copyBlock(inner, rows, columns);
    });
  });
}
