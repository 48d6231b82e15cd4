//===- Transpose.cpp - L vectors of L lanes, transposed --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Every stage pairs rows that are some distance apart and replaces the two by two shuffles of them,
// each one instruction on machines whose registers are made of blocks of 4 lanes:
//
//   interleave within blocks:  a0 b0 a1 b1 | ...   and   a2 b2 a3 b3 | ...     rows 2 apart, then 1
//   blocks of even number of both rows, then those of odd number              rows 4 apart, then 8
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Transpose.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

/// Replaces each pair (a, b) of rows `distance` apart by shuffles whose lane i is lane `source(i, 0
/// or 1)` of a followed by b.
static void pairUp(OpBuilder &builder, Location loc, MutableArrayRef<Value> rows, int64_t distance,
                   llvm::function_ref<int64_t(int64_t lane, int64_t part)> source) {
  int64_t lanes = rows.size();
  for (int64_t i = 0; i < lanes; ++i) {
    if (i & distance)
      continue;
    Value pair[] = {rows[i], rows[i + distance]};
    for (int64_t part : {0, 1}) {
      auto order = llvm::map_to_vector(llvm::seq<int64_t>(0, lanes),
                                       [&](int64_t lane) { return source(lane, part); });
      rows[i + part * distance] = vector::ShuffleOp::create(builder, loc, pair[0], pair[1], order);
    }
  }
}

SmallVector<Value> attn::createTranspose(OpBuilder &builder, Location loc, ArrayRef<Value> rows) {
  int64_t lanes = rows.size(), block = std::min<int64_t>(lanes, 4);
  SmallVector<Value> result(rows);
  for (int64_t distance = block / 2; distance > 0; distance /= 2)
    pairUp(builder, loc, result, distance, [&](int64_t lane, int64_t part) {
      int64_t base = lane / block * block, within = lane % block;
      return base + part * block / 2 + within / 2 + within % 2 * lanes;
    });
  // After the first of two rounds of k blocks, k / 2 come from either row; the second round puts
  // them in order.
  for (int64_t distance = block; distance < lanes; distance *= 2)
    pairUp(builder, loc, result, distance, [&](int64_t lane, int64_t part) {
      return (2 * (lane / block) + part) * block + lane % block;
    });
  return result;
}
