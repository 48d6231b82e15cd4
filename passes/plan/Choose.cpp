//===- Choose.cpp - which schedule and tiles an attention gets -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/Choose.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// A query tile is one register block wide: three vectors, the widest block that leaves registers
/// for eight rows (8 x 48 with 32 registers of 16 lanes, 4 x 24 with 16 of 8).
static constexpr int64_t kVectorsPerQueryTile = 3;

/// Keys of a tile: its weights, 96 rows of a query tile, take 18 KiB at 16 lanes and stay in the
/// first-level cache between the two products. Few enough that the last tile under a causal mask is
/// little waste, many enough that accumulators are loaded and stored for something.
static constexpr int64_t kKeyTile = 96;

PlanAttr attn::choosePlan(TargetAttr target, AttentionShape shape, Schedule schedule) {
  int64_t q = kVectorsPerQueryTile * target.getLanes(), k = kKeyTile;
  if (!ShapedType::isDynamic(shape.queries))
    q = std::min<int64_t>(q, llvm::alignTo(std::max<int64_t>(shape.queries, 1), target.getLanes()));
  if (!ShapedType::isDynamic(shape.keys))
    k = std::clamp<int64_t>(shape.keys, 1, k);
  return PlanAttr::get(target.getContext(), schedule, q, k);
}

int64_t attn::choosePanelWidth(TargetAttr target, int64_t columns) {
  // Up to here one panel of all columns: its rows lie close enough, and a head keeps its columns
  // together.
  static constexpr int64_t kWidestSinglePanel = 256;
  if (columns <= kWidestSinglePanel)
    return columns;
  // Otherwise whole register blocks: four vectors if they divide the columns, else three, two, one.
  for (int64_t vectors : {4, 3, 2, 1})
    if (int64_t width = vectors * target.getLanes(); columns % width == 0)
      return width;
  return columns;
}
