//===- Choose.cpp - the plans of attentions and products --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Choose.h"
#include "codegen/cpu/RegisterBlocks.h"
#include "passes/plan/TaskRows.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// The widths of query tiles to try, in vectors. A query tile is as wide as a register block. Blocks of more than three
/// vectors leave registers for too few rows; with three, a block is 8 x 48 with 32 registers of 16 lanes, and 4 x 24
/// with 16 registers of 8 lanes. Tiles of two vectors waste less work at the edge of a mask, and may divide the number
/// of queries where tiles of three vectors do not.
static constexpr int64_t kVectorsPerQueryTile[] = {3, 2};
/// The widths to try, in vectors, for instructions that multiply tiles. They are multiples of two, because a register
/// block of AMX has two tiles side by side, each as wide as a vector. With a wider query tile, the values are
/// transposed less often.
static constexpr int64_t kVectorsPerQueryTileOfTiles[] = {4, 2, 8};

/// The largest number of queries in a tile of the schedules whole-scores and decode. Each of these queries is a row of
/// a register block.
static constexpr int64_t kFewQueries = 8;

/// If an attention has at least this many tasks, the schedule decode does not divide its keys into parts: more tasks
/// would help only machines with more threads, and merging the parts would take a second phase.
static constexpr int64_t kTasks = 32;
/// The least number of keys in a part, and the number of keys in a part if the total number of keys is known only at
/// the call.
static constexpr int64_t kLeastPart = 512, kTypicalPart = 1024;
/// The largest number of scores in a tile of few queries: 32 KiB of f32. The code for a tile first reads all its keys,
/// then all its values. The more keys a tile has, the larger is the share of the time in which the memory is busy.
static constexpr int64_t kMostScores = 8192;

/// The sizes of key tiles to try, in order of preference. The probabilities of 96 keys and a query tile of three
/// vectors of 16 lanes take 18 KiB, and stay in L1 between the two products. With more keys, more work is wasted at the
/// edge of a mask; with fewer keys, there is too little work for each load and store of the accumulators.
static constexpr int64_t kKeyTiles[] = {96, 64, 128};

/// Returns the sizes of key tiles to try, from the table above. Sizes that divide the number of keys come first,
/// because they need no code for a smaller last tile.
static SmallVector<int64_t> keyTiles(CpuAttr, const AttentionShape &shape) {
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

/// Returns the fastest instruction that adds groups of products (MultiplyAdd.h), takes the element type of the
/// attention, and has a group size that divides the head size. Null if there is none, or if the head size is unknown.
static const MultiplyAdd *chooseInstruction(CpuAttr cpu, const AttentionShape &shape) {
  if (shape.knowsHeads)
    for (const MultiplyAdd *row : findMultiplyAdds(cpu, {shape.element, shape.element, shape.sum}))
      if (row->group > 1 && shape.d % row->group == 0)
        return row;
  return nullptr;
}

/// Returns the sizes of query tiles to try. None is larger than the number of queries, rounded up to whole vectors.
static SmallVector<int64_t> queryTiles(CpuAttr cpu, const AttentionShape &shape) {
  SmallVector<int64_t> tiles;
  int64_t lanes = cpu.getLanes();
  int64_t most = llvm::alignTo(std::max<int64_t>(shape.queries, 1), lanes);
  const MultiplyAdd *instruction = chooseInstruction(cpu, shape);
  ArrayRef<int64_t> widths = kVectorsPerQueryTile;
  if (instruction && instruction->tile)
    widths = kVectorsPerQueryTileOfTiles;
  for (int64_t vectors : widths)
    if (int64_t tile = std::min(vectors * lanes, most); !llvm::is_contained(tiles, tile))
      tiles.push_back(tile);
  return tiles;
}

/// Returns the only size of query tiles for schedules in which queries are rows of a register block.
static SmallVector<int64_t> fewQueries(CpuAttr, const AttentionShape &shape) {
  return {std::clamp<int64_t>(shape.queries, 1, kFewQueries)};
}

/// Returns the number of keys in a part for the schedule decode; 0 if each task attends to all keys.
static int64_t choosePart(CpuAttr cpu, const AttentionShape &shape) {
  int64_t tasks = shape.heads * shape.groups * llvm::divideCeil(shape.queries, kFewQueries);
  if (tasks >= kTasks || shape.returnsProbabilities)
    return 0;
  if (!shape.knowsKeys)
    return kTypicalPart;
  // Only keys that the mask does not hide need tasks.
  int64_t keys = countKeys(cpu.getContext(), shape, std::min(shape.queries, kFewQueries));
  int64_t parts = std::min<int64_t>(llvm::divideCeil(kTasks, tasks), keys / kLeastPart);
  return parts <= 1 ? 0 : llvm::alignTo(llvm::divideCeil(keys, parts), cpu.getLanes());
}

static SmallVector<int64_t> keysOfFewQueries(CpuAttr cpu, const AttentionShape &shape) {
  int64_t part = choosePart(cpu, shape), keys = part ? part : std::max<int64_t>(shape.keys, 1);
  return {std::min(keys, kMostScores / std::clamp<int64_t>(shape.queries, 1, kFewQueries))};
}

/// The first candidate only, for schedules that do not use the tile because they compute all queries or all keys at
/// once.
static SmallVector<int64_t> firstQueryTile(CpuAttr cpu, const AttentionShape &shape) {
  return {queryTiles(cpu, shape).front()};
}
static SmallVector<int64_t> firstKeyTile(CpuAttr cpu, const AttentionShape &shape) {
  return {keyTiles(cpu, shape).front()};
}

namespace {
/// How to plan a schedule: the tiles to try, and the function that predicts the time. A pass in passes/schedule/
/// applies the plan.
struct ScheduleRow {
  Schedule schedule;
  SmallVector<int64_t> (*queryTiles)(CpuAttr, const AttentionShape &);
  SmallVector<int64_t> (*keyTiles)(CpuAttr, const AttentionShape &);
  double (*predict)(CpuAttr, const AttentionShape &, PlanAttr, int64_t workers);
  /// Whether the schedule, if there are no projections, makes the same tasks as the schedule of an earlier row.
  bool isForProjections;
  /// Whether the products of the schedule can multiply elements in groups.
  bool hasGroups;
  /// Whether the schedule is for at most kFewQueries queries.
  bool isForFewQueries;
};
} // namespace

/// If predictions are equal, the schedule of the earlier row is chosen.
static constexpr ScheduleRow kSchedules[] = {
    {Schedule::PerHead, queryTiles, keyTiles, predictPerHead, false, true, false},
    {Schedule::Phased, queryTiles, keyTiles, predictPhased, true, true, false},
    {Schedule::WholeScores, fewQueries, firstKeyTile, predictWholeScores, false, false, false},
    {Schedule::Decode, fewQueries, keysOfFewQueries, predictDecode, false, false, true},
    {Schedule::Unfused, firstQueryTile, firstKeyTile, predictUnfused, false, false, false},
};

SmallVector<Prediction> attn::predictPlans(CpuAttr cpu, const AttentionShape &shape,
                                           std::optional<Schedule> only) {
  auto isFaster = [](const Prediction &a, const Prediction &b) { return a.cost < b.cost; };
  SmallVector<Prediction> predictions;
  const MultiplyAdd *instruction = chooseInstruction(cpu, shape);
  for (const ScheduleRow &row : kSchedules) {
    if (only ? row.schedule != *only
             : (row.isForProjections && !shape.depth) ||
                   (row.isForFewQueries && shape.queries > kFewQueries))
      continue;
    for (int64_t q : row.queryTiles(cpu, shape))
      for (int64_t k : row.keyTiles(cpu, shape)) {
        int64_t part = row.schedule == Schedule::Decode ? choosePart(cpu, shape) : 0;
        bool hasGroups = row.hasGroups && instruction;
        auto plan =
            PlanAttr::get(cpu.getContext(), row.schedule, q, k, hasGroups ? instruction->group : 1,
                          part, /*transposes=*/hasGroups && instruction->tile);
        Prediction prediction = {plan, row.predict(cpu, shape, plan, /*workers=*/1)};
        predictions.insert(llvm::upper_bound(predictions, prediction, isFaster), prediction);
      }
  }
  return predictions;
}

double attn::predictPlan(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan, int64_t workers) {
  const auto *row = llvm::find_if(
      kSchedules, [&](const ScheduleRow &row) { return row.schedule == plan.getSchedule(); });
  return row->predict(cpu, shape, plan, workers);
}

/// Returns the number of columns in a panel of the packed operand.
static int64_t choosePanelWidth(CpuAttr cpu, const MultiplyAdd &instruction, int64_t columns) {
  // Up to this many columns, all columns form one panel: its rows are still close together in memory, and the columns
  // of a head stay in one panel.
  static constexpr int64_t kWidestSinglePanel = 256;
  if (columns <= kWidestSinglePanel)
    return columns;
  // Otherwise a panel is as wide as the best register block for many columns, so that a block reads contiguous memory.
  // If that width does not divide the number of columns, the panel is one or more vectors narrower; if no number of
  // vectors does, all columns form one panel.
  int64_t lanes = cpu.getLanes(instruction.getSumType(cpu.getContext()));
  RegisterBlock block =
      chooseRegisterBlock(cpu, instruction, ShapedType::kDynamic, /*guarded=*/false);
  for (int64_t vectors = block.vectors; vectors > 0; --vectors)
    if (columns % (vectors * lanes) == 0)
      return vectors * lanes;
  return columns;
}

Panel attn::choosePanel(CpuAttr cpu, const ProductShape &shape) {
  for (const MultiplyAdd *instruction : findMultiplyAdds(cpu, shape.types))
    if (instruction->group == 1 || (shape.depth && *shape.depth % instruction->group == 0))
      return {choosePanelWidth(cpu, *instruction, shape.columns), instruction->group};
  return {shape.columns, 1};
}

/// Returns the tasks of a product whose right operand is larger than half of L2, and has each row on another page. The
/// hardware does not prefetch across pages, so a task has many rows, and reads the right operand once for all of them.
/// The elements that the task reads from its own rows, for one depth of the block, take at most half of L2. A task has
/// few columns, so that there are many tasks, and the output of a task stays in L2.
static TaskSize planFarColumns(CpuAttr cpu, const ProductShape &shape, BlockAttr block,
                               int64_t least) {
  static constexpr int64_t kMostRows = 384, kColumns = 128, kLeastTasks = 8;
  int64_t depth = block && block.getDepth() ? block.getDepth() : *shape.depth;
  int64_t height = block ? block.getRows() : 1,
          width = (block ? block.getVectors() : 1) * cpu.getLanes();
  int64_t inHalf = cpu.getL2() / 2 / getBytes(shape.types.a) / depth;
  int64_t rows = std::clamp<int64_t>(inHalf, least, kMostRows) / height * height;
  int64_t columns = llvm::alignTo(
      llvm::divideCeil(shape.columns, std::max<int64_t>(1, shape.columns / kColumns)), width);
  if (ShapedType::isDynamic(shape.rows))
    return {std::min(rows, kRowsOfProduct), columns};
  int64_t parts = llvm::divideCeil(std::max<int64_t>(1, shape.rows), rows);
  auto rowsOf = [&](int64_t parts) {
    return int64_t(
        llvm::alignTo(std::max<int64_t>(1, llvm::divideCeil(shape.rows, parts)), height));
  };
  while (parts * llvm::divideCeil(shape.columns, columns) < kLeastTasks &&
         rowsOf(parts) > kRowsOfProduct)
    ++parts;
  return {rowsOf(parts), columns};
}

/// Returns the number of rows of a task: `rows`, or fewer if kManyWorkers threads then complete the product clearly
/// sooner. With 16 threads, 6 tasks of 128 rows take twice as long as 12 tasks of 64 rows.
static int64_t withManyWorkers(const ProductShape &shape, int64_t rows, int64_t height) {
  // With fewer rows, apart from rounding to whole blocks, one thread would be slower: each task reads its panel again.
  static constexpr int64_t kLeastRows = 64;
  static constexpr double kClearly = 0.9;
  static constexpr int64_t kEnoughTasks = 4 * kManyWorkers;
  if (ShapedType::isDynamic(shape.rows) || shape.panels == 0 ||
      llvm::divideCeil(shape.rows, rows) * shape.panels >= kEnoughTasks)
    return rows;
  auto timeOf = [&](int64_t rows) {
    return llvm::divideCeil(llvm::divideCeil(shape.rows, rows) * shape.panels, kManyWorkers) * rows;
  };
  int64_t best = rows;
  for (int64_t parts = llvm::divideCeil(shape.rows, rows) + 1; parts * kLeastRows <= shape.rows;
       ++parts)
    if (int64_t fewer = llvm::alignTo(llvm::divideCeil(shape.rows, parts), height);
        timeOf(fewer) < kClearly * timeOf(best))
      best = fewer;
  return best;
}

TaskSize attn::planTask(CpuAttr cpu, const ProductShape &shape, BlockAttr block) {
  if (!shape.kernel || shape.hasChannelsLast) {
    int64_t rows = kRowsOfProduct, height = block ? block.getRows() : 1;
    if (shape.kernel || shape.depth.value_or(0) <= 0)
      return {divideRows(shape.rows, rows, height), 0};
    // The tasks of all panels read the same rows one after the other, so the elements of these rows should take at most
    // half of L2. But each task also reads a panel from L3. For each step of the sum, it loads 4 * lanes bytes for each
    // vector of columns, and multiplies this vector once for each row. If a core multiplies two vectors in a cycle, and a
    // task has at least three rows for each lane, it reads at most 2.7 bytes of the panel in a cycle.
    int64_t least = std::min<int64_t>(3 * cpu.getLanes(), kRowsOfProduct), half = cpu.getL2() / 2;
    static constexpr int64_t kPageBytes = 4096;
    if (int64_t near = std::max(kPageBytes, half / *shape.depth) / getBytes(shape.types.b);
        shape.columns > near)
      return planFarColumns(cpu, shape, block, std::max(least, height));
    rows =
        std::clamp<int64_t>(half / (*shape.depth * getBytes(shape.types.a)), least, kRowsOfProduct);
    rows = std::max(height, rows / height * height);
    return {withManyWorkers(shape, divideRows(shape.rows, rows, height), height), 0};
  }
  // The factors of one register block of output channels stay in L1 while the task computes its part of the image. The
  // task has about as many products as one of 96 rows, 64 columns and a depth of 768. The columns are a multiple of the
  // widths of register blocks, which are two to four vectors of 4, 8 or 16 lanes.
  static constexpr int64_t kProductsPerTask = 1 << 22, kColumns = 192, kTypicalDepth = 512;
  int64_t height = block ? block.getRows() : kRowsOfProduct;
  int64_t rows =
      ShapedType::isDynamic(shape.rows) ? height : std::clamp<int64_t>(shape.rows, 1, height);
  int64_t products = rows * std::max<int64_t>(1, shape.depth.value_or(kTypicalDepth));
  int64_t columns = llvm::alignTo(std::max<int64_t>(1, kProductsPerTask / products), kColumns);
  return {rows, columns};
}

bool attn::multipliesFaster(CpuAttr cpu, Type type, int64_t depth) {
  if (ShapedType::isDynamic(depth))
    return false;
  ProductTypes types = {type, type, Float32Type::get(cpu.getContext())};
  return llvm::any_of(findMultiplyAdds(cpu, types), [&](const MultiplyAdd *row) {
    return row->factor(cpu.getContext()) == type && row->group > 1 && depth % row->group == 0;
  });
}

bool attn::isFasterRounded(CpuAttr cpu, const AttentionShape &shape, Type type,
                           std::optional<Schedule> only) {
  AttentionShape plain = shape;
  plain.depth = 0; // rounding of projections is decided separately
  AttentionShape rounded = plain;
  rounded.element = type;
  auto predict = [&](const AttentionShape &shape) {
    return predictPlans(cpu, shape, only).front().cost;
  };
  return chooseInstruction(cpu, rounded) &&
         predictRounding(cpu, plain) + predict(rounded) < predict(plain);
}

bool attn::makesSameCode(CpuAttr cpu, CpuAttr other, ModuleOp graph) {
  auto withHas =
      CpuAttr::get(cpu.getContext(), other.getLevel(), cpu.getVector(), cpu.getRegisters(),
                   cpu.getSpare(), cpu.getL1(), cpu.getL2(), other.getHas(), cpu.getPipelines());
  CpuCapabilities differing = cpu.getHas() ^ other.getHas();
  // Even levels with equal fields differ in the instructions that LLVM may select.
  if (withHas != other || differing == CpuCapabilities::None || !isForProducts(differing))
    return false;
  auto compute = graph->getAttrOfType<TypeAttr>(AttnDialect::kComputeAttr);
  if (compute && isForFactors(compute.getValue(), differing))
    return false;
  auto isConcerned = [&](Type type) { return isForFactors(getElementTypeOrSelf(type), differing); };
  WalkResult uses = graph.walk([&](Operation *op) {
    bool any = llvm::any_of(op->getOperandTypes(), isConcerned) ||
               llvm::any_of(op->getResultTypes(), isConcerned);
    return any ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !uses.wasInterrupted();
}
