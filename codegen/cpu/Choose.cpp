//===- Choose.cpp - which schedule and tiles an attention gets -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Choose.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// A query tile is one register block wide. Three vectors are the widest that leave registers for enough rows
/// (8 x 48 with 32 registers of 16 lanes, 4 x 24 with 16 of 8); two waste less at the edge of a mask, or divide the
/// queries.
static constexpr int64_t kVectorsPerQueryTile[] = {3, 2};

/// Queries of a whole-scores tile: each is a row of a register block.
static constexpr int64_t kFewQueries = 8;

/// Keys of a tile: the probabilities of 96 keys and a query tile take 18 KiB at 16 lanes and stay in
/// L1 between the two products. More keys waste more at the edge of a mask; fewer keys do too little
/// work for each load and store of the accumulators.
static constexpr int64_t kKeyTiles[] = {96, 64, 128};

/// Key tiles to try: those of the table. Tiles that divide the keys come first, because they leave no
/// smaller last tile to compile.
static SmallVector<int64_t> keyTiles(const AttentionShape &shape) {
  SmallVector<int64_t> tiles;
  auto add = [&](int64_t tile) {
    if (shape.knowsKeys)
      tile = std::clamp<int64_t>(shape.keys, 1, tile);
    if (!llvm::is_contained(tiles, tile))
      tiles.push_back(tile);
  };
  for (int64_t tile : kKeyTiles)
    if (shape.knowsKeys && shape.keys % tile == 0)
      add(tile);
  llvm::for_each(kKeyTiles, add);
  return tiles;
}

/// Query tiles to try: no wider than the queries.
static SmallVector<int64_t> queryTiles(CpuAttr cpu, const AttentionShape &shape) {
  SmallVector<int64_t> tiles;
  int64_t lanes = cpu.getLanes();
  int64_t most = llvm::alignTo(std::max<int64_t>(shape.queries, 1), lanes);
  for (int64_t vectors : kVectorsPerQueryTile)
    if (int64_t tile = std::min(vectors * lanes, most); !llvm::is_contained(tiles, tile))
      tiles.push_back(tile);
  return tiles;
}

SmallVector<Prediction> attn::predictPlans(CpuAttr cpu, const AttentionShape &shape,
                                           ArrayRef<Schedule> schedules) {
  static constexpr Schedule kAll[] = {Schedule::PerHead, Schedule::Phased, Schedule::WholeScores,
                                      Schedule::Unfused};
  auto isFaster = [](const Prediction &a, const Prediction &b) { return a.cost < b.cost; };
  SmallVector<Prediction> predictions;
  ArrayRef<Schedule> tried = schedules.empty() ? ArrayRef(kAll) : schedules;
  for (Schedule schedule : tried) {
    // Without projections, per-head makes the same tasks, if it is tried too.
    if (schedule == Schedule::Phased && !shape.depth && tried.size() > 1)
      continue;
    SmallVector<int64_t> qs = queryTiles(cpu, shape), ks = keyTiles(shape);
    if (schedule == Schedule::WholeScores)
      qs = {std::clamp<int64_t>(shape.queries, 1, kFewQueries)};
    if (schedule == Schedule::WholeScores || schedule == Schedule::Unfused)
      ks.truncate(1); // all keys at once
    if (schedule == Schedule::Unfused)
      qs.truncate(1);
    for (int64_t q : qs)
      for (int64_t k : ks) {
        auto plan = PlanAttr::get(cpu.getContext(), schedule, q, k);
        Prediction prediction = {plan, predictAttention(cpu, shape, plan)};
        // Of equal predictions, the earlier one stays first.
        predictions.insert(llvm::upper_bound(predictions, prediction, isFaster), prediction);
      }
  }
  return predictions;
}

int64_t attn::choosePanelWidth(CpuAttr cpu, int64_t columns) {
  // Up to this width, all columns are one panel: its rows are close enough in memory, and a head
  // keeps its columns together.
  static constexpr int64_t kWidestSinglePanel = 256;
  if (columns <= kWidestSinglePanel)
    return columns;
  // Otherwise whole register blocks: four vectors if they divide the columns, else three, two, one.
  for (int64_t vectors : {4, 3, 2, 1})
    if (int64_t width = vectors * cpu.getLanes(); columns % width == 0)
      return width;
  return columns;
}
