//===- Cost.cpp - how long a plan takes ------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The predictions count the instructions of register blocks, exponentials and copies; #attn.pipelines has their speeds.
// If data does not fit in a cache, they add the time to load it from the next level. The constants were measured on
// Zen 4, some on Granite Rapids as well; attn-bench-plans shows where the predicted order of plans is wrong.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Cost.h"
#include "codegen/cpu/RegisterBlocks.h"
#include "dialect/KeyBounds.h"
#include "passes/plan/TaskRows.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

// The costs of one vector, in multiply-adds.
// The cost of a load that issues beside multiply-adds. The measured cost is 0 on Zen 4, and up to 0.4 on Granite
// Rapids. The value is large enough that the plan with fewer loads wins if two plans are otherwise equal.
static constexpr double kLoad = 0.08;
// The additional cost of a step if an iteration does only one step, because the number of steps is odd.
static constexpr double kSingleStep = 0.6;
// The cost of converting a vector to another type, including its load and its store.
static constexpr double kConversion = 2;
static constexpr double kScaledExponential = 6; // an exponential if p * 2^n is one instruction
static constexpr double kMaximum = 8;           // load, compare, and store of the score
static constexpr double kMaskTest = 2.5;
static constexpr double kRegion = 4;
// The cost of a load of a dot product beside a fused multiply-add. Beside a multiply and an add, a load costs half.
static constexpr double kDotLoad = 0.2;
static constexpr double kPlainLoop = 25; // a loop over memory that LLVM vectorises
static constexpr double kShortLoop = 3;  // such a loop over data in L1

// The overheads of one loop around blocks, one tile of queries, one row of a tile, one task and one phase, in cycles.
static constexpr double kBlockOverhead = 12;
static constexpr double kTileOverhead = 100;
// The code for a row of a tile of few queries adds up lanes, and updates the state of the query.
static constexpr double kRowOfTile = 60;
static constexpr double kTaskOverhead = 100;
static constexpr double kPhaseOverhead = 3000;
// The bytes that arrive from beyond each cache in a cycle.
static constexpr double kBytesBeyondL1 = 32;
static constexpr double kBytesBeyondL2 = 12;
static constexpr double kBytesBeyondL3 = 2.5;
static constexpr double kL3 = 32 << 20; // not a parameter of #attn.cpu, because cores share L3
/// The fraction of L1 that prefetched lines and the SMT sibling need, and the slowdown of a tile that leaves no room
/// for them.
static constexpr double kFree = 0.45;
static constexpr double kCrowding = 0.02;
/// The fraction of the computation time that hides memory traffic.
static constexpr double kHiding = 0.5;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The time of `cycles` cycles.
static double inCycles(CpuAttr cpu, double cycles) {
  return cycles * cpu.getPipelines().getMultiplies();
}
/// The times of a load and of a store of a vector that wait for nothing.
static double load(CpuAttr cpu) { return inCycles(cpu, 1.0 / cpu.getPipelines().getLoads()); }
static double store(CpuAttr cpu) { return inCycles(cpu, 1.0 / cpu.getPipelines().getStores()); }
/// The issue slots of one vector of products and their addition.
static double multiplyAdd(const MultiplyAdd &instruction) { return instruction.isFused ? 1 : 2; }
/// The time of the shuffles of one vector in a transposition; two shuffles issue at once.
static double shuffles(CpuAttr cpu) { return llvm::Log2_64(cpu.getLanes()) / 2.0; }
static double transpose(CpuAttr cpu) { return load(cpu) + shuffles(cpu) + store(cpu); }

static double predictVectors(CpuAttr cpu, const MultiplyAdd &instruction, int64_t bytesPerFactor,
                             int64_t rows, int64_t columns, int64_t depth, bool isGuarded,
                             bool hasEpilogue) {
  int64_t lanes = cpu.getLanes(instruction.getSumType(cpu.getContext()));
  int64_t vectors = llvm::divideCeil(columns, lanes);
  RegisterBlock block = chooseRegisterBlock(cpu, instruction, columns, isGuarded);
  if (hasEpilogue && chooseDepthBlock(cpu, instruction, block, /*isOfTiles=*/false, depth,
                                      bytesPerFactor, /*kernel=*/0) != depth)
    block = fitTwoSums(cpu, instruction, block);
  auto blocks = [&](int64_t height, int64_t width, int64_t count) {
    double products = height * width * multiplyAdd(instruction);
    if (isGuarded) // a comparison for each vector; with groups or without masks, a selection for each product
      products +=
          cpu.can(CpuCapabilities::Masks) && instruction.group == 1 ? width : height * width;
    // With few accumulators, each multiply-add waits for the previous result of its accumulator.
    double latency = inCycles(cpu, cpu.getPipelines().getLatency());
    double step =
        std::max({products, (height + width) * load(cpu), latency}) + kLoad * (height + width);
    int64_t steps = llvm::divideCeil(depth, instruction.group);
    if (instruction.isFused && steps % 2 != 0)
      step += kSingleStep;
    return count * (steps * step + height * width * (load(cpu) + store(cpu)) +
                    inCycles(cpu, kBlockOverhead));
  };
  auto panel = [&](int64_t width) {
    double cost = blocks(block.rows, width, rows / block.rows);
    if (int64_t rest = rows % block.rows)
      cost += blocks(rest, width, 1);
    return cost;
  };
  double cost = panel(block.vectors) * (vectors / block.vectors);
  if (int64_t rest = vectors % block.vectors)
    cost += panel(rest);
  return cost;
}

double attn::predictProduct(CpuAttr cpu, const MultiplyAdd &instruction, int64_t bytesPerFactor,
                            int64_t rows, int64_t columns, int64_t depth, bool isGuarded,
                            bool hasEpilogue) {
  auto ofVectors = [&](int64_t rows, int64_t columns, int64_t depth) {
    bool isEmpty = rows == 0 || columns == 0 || depth == 0;
    return isEmpty ? 0
                   : predictVectors(cpu, instruction, bytesPerFactor, rows, columns, depth,
                                    isGuarded, hasEpilogue);
  };
  if (!instruction.tile || isGuarded)
    return ofVectors(rows, columns, depth);
  // Add the times of three parts: the whole tiles; the last products of each sum, if they are too few for another tile
  // instruction; and the columns and rows at the edges.
  const TileMultiplyAdd &tile = *instruction.tile;
  RegisterBlock block = chooseTileBlock(tile, columns);
  int64_t inStep = tile.steps * instruction.group, steps = depth / inStep, down = rows / tile.rows,
          across = columns / tile.columns, inRows = down * tile.rows,
          inColumns = across * tile.columns;
  double high = double(block.rows) / tile.rows, wide = block.vectors;
  double perStep = std::max(tile.multiplyCost, tile.loadCost * (high + wide) / (high * wide));
  double perTile = steps * perStep + 2 * tile.loadCost + (hasEpilogue ? tile.rows * store(cpu) : 0);
  return down * across * perTile + ofVectors(inRows, inColumns, depth % inStep) +
         ofVectors(inRows, columns - inColumns, depth) + ofVectors(rows - inRows, columns, depth);
}

/// The time to load `bytes` from L2 if the working set exceeds L1, from L3 if it exceeds L2, and so on.
static double predictTraffic(CpuAttr cpu, double bytes, double workingSet) {
  if (workingSet <= cpu.getL1())
    return 0;
  if (workingSet <= cpu.getL2())
    return inCycles(cpu, bytes / kBytesBeyondL1);
  return inCycles(cpu, bytes / (workingSet <= kL3 ? kBytesBeyondL2 : kBytesBeyondL3));
}

double attn::addTraffic(CpuAttr cpu, double cost, double bytes) {
  return cost + std::max(0.0, predictTraffic(cpu, bytes, bytes) - kHiding * cost);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// The bounds of the keys for the queries `[q, q + queries)`.
static std::array<int64_t, 4> evaluate(const KeyBounds &bounds, const AttentionShape &shape,
                                       int64_t q, int64_t queries) {
  SmallVector<int64_t> operands(shape.numBatch, 0);
  operands.append({q, queries, shape.keys});
  // The values of the mask's symbols, such as lengths, are not known here, so they are assumed to hide no pair.
  if (shape.mask)
    for (const KeptSet &set : shape.mask.kept(shape.numBatch))
      operands.append(2 * set.symbols.size(), shape.keys);
  return bounds.evaluate(operands);
}

int64_t attn::countKeys(MLIRContext *context, const AttentionShape &shape, int64_t queries) {
  KeyBounds bounds = KeyBounds::get(context, shape.mask, shape.numBatch, /*step=*/1);
  auto [lo, fullLo, fullHi, hi] = evaluate(bounds, shape, /*q=*/0, queries);
  return hi - lo;
}

double attn::predictRounding(CpuAttr cpu, const AttentionShape &shape) {
  double queries = double(shape.heads) * shape.groups * shape.queries * shape.d;
  double elements = queries + double(shape.heads) * shape.keys * (shape.d + shape.e);
  double bytes = elements * getBytes(shape.element);
  return elements / cpu.getLanes() * kConversion + predictTraffic(cpu, bytes, bytes) +
         inCycles(cpu, kPhaseOverhead);
}

namespace {
/// Predicts the times of the parts of an attention. The time of a schedule is the sum of the times of its parts.
struct Model {
  Model(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan, int64_t workers)
      : cpu(cpu), shape(shape), plan(plan), workers(workers) {
    ProductTypes types = {shape.element, shape.element, shape.sum};
    single = grouped = findMultiplyAdd(cpu, types);
    if (plan.getGroup() > 1)
      grouped = findMultiplyAdds(cpu, types).front();
  }

  CpuAttr cpu;
  const AttentionShape &shape;
  PlanAttr plan;
  int64_t workers;
  const MultiplyAdd *single,
      *grouped; // the instructions for single elements and for groups of the plan

  double product(int64_t rows, int64_t columns, int64_t depth, bool isGuarded = false,
                 bool hasEpilogue = false, bool isGrouped = false) const {
    return predictProduct(cpu, isGrouped ? *grouped : *single, bytesOfElement(), rows, columns,
                          depth, isGuarded, hasEpilogue);
  }

  int64_t bytesOfElement() const { return getBytes(shape.element); }

  int64_t vectorsOf(int64_t queries) const {
    return llvm::divideCeil(queries, int64_t(cpu.getLanes()));
  }

  /// The time to compute the probabilities of one vector of scores from its products. If `isExact`, this includes a
  /// separate pass that finds the maximum.
  double probabilities(bool isMasked, bool isExact) const {
    double cost =
        cpu.can(CpuCapabilities::Scale) ? kScaledExponential : cpu.getPipelines().getExponential();
    if (isMasked)
      cost += kMaskTest;
    if (shape.hasRegion)
      cost += kRegion;
    if (isExact)
      cost += kMaximum;
    return cost;
  }

  /// The time of a step over one tile of keys.
  double step(int64_t queries, int64_t keys, bool isMasked, bool isExact = false) const {
    bool hasGroups = grouped->group > 1;
    double conversions = 0;
    if (hasGroups) // values are packed, and probabilities are rounded
      conversions =
          double(keys) / 2 *
          (vectorsOf(shape.e) * (plan.getTransposes() ? 1 + transpose(cpu) / kConversion : 1) +
           vectorsOf(queries));
    else if (shape.element != shape.sum)
      conversions = double(keys) * (vectorsOf(shape.e) + vectorsOf(shape.d));
    return product(keys, queries, shape.d, /*isGuarded=*/false, /*hasEpilogue=*/true, hasGroups) +
           product(shape.e, queries, keys, /*isGuarded=*/isMasked, /*hasEpilogue=*/false,
                   hasGroups) +
           conversions * kConversion +
           vectorsOf(queries) * keys * probabilities(isMasked, isExact) +
           inCycles(cpu, kTileOverhead);
  }

  /// The time of the tile of `queries` queries that begins at query `q`.
  double queryTile(int64_t q, int64_t queries, const KeyBounds &bounds) const {
    auto [lo, fullLo, fullHi, hi] = evaluate(bounds, shape, q, queries);

    int64_t vectors = vectorsOf(queries);
    // The queries are transposed before the steps, and the output after them.
    double cost = (shape.d + shape.e) * vectors * transpose(cpu) + inCycles(cpu, kTileOverhead);
    cost += shape.e * vectors * store(cpu);
    // Add the times of three parts: the first tile of keys, which needs an exact maximum; the whole tiles, which all
    // cost the same; and the tail.
    bool isExact = true;
    auto range = [&](int64_t from, int64_t to, bool isMasked) {
      if (isExact && from < to) {
        int64_t keys = std::min(plan.getK(), to - from);
        cost += step(queries, keys, isMasked, /*isExact=*/true);
        from += keys;
        isExact = false;
      }
      int64_t keys = std::max<int64_t>(to - from, 0), tail = keys % plan.getK();
      if (int64_t whole = keys / plan.getK())
        cost += whole * step(queries, plan.getK(), isMasked);
      if (tail)
        cost += step(queries, tail, isMasked);
    };
    range(lo, fullLo, bool(shape.mask));
    range(fullLo, fullHi, false);
    range(fullHi, hi, bool(shape.mask));
    return cost;
  }

  /// The time of one head of queries with the keys and values of one head.
  double attend() const {
    KeyBounds bounds = KeyBounds::get(plan.getContext(), shape.mask, shape.numBatch, plan.getK());
    int64_t tile = plan.getQ(), whole = shape.queries / tile;
    double cost = 0;
    if (int64_t rest = shape.queries % tile)
      cost += queryTile(whole * tile, rest, bounds);
    // If there are very many tiles, the time is estimated from a sample of them.
    static constexpr int64_t kSamples = 64;
    int64_t stride = llvm::divideCeil(std::max<int64_t>(whole, 1), kSamples), samples = 0;
    double sampled = 0;
    for (int64_t i = stride / 2; i < whole; i += stride, ++samples)
      sampled += queryTile(i * tile, tile, bounds);
    if (samples)
      cost += sampled * whole / samples;
    // The queries or the outputs of a tile, and its probabilities, share L1.
    double bytes = double(tile) * (std::max(shape.d, shape.e) + plan.getK()) * bytesOfElement();
    double left = 1 - bytes / cpu.getL1();
    cost *= 1 + kCrowding * std::clamp(1 - left / kFree, 0.0, 1.0);
    // If no other tile of queries reads the keys, each tile of keys except the first is prefetched while the previous
    // one is computed. Otherwise the first tile of queries waits for all tiles of keys but one, unless the query tiles
    // of the previous head have prefetched the keys. They have if the keys and values of two heads fit in L2.
    bool readsOnce = shape.queries <= tile,
         comeBefore = !readsOnce && 2 * bytesOfKeys() / shape.heads <= cpu.getL2();
    if (plan.getK() < shape.keys && shape.groups == 1 && !shape.depth && !comeBefore) {
      int64_t waitedFor = readsOnce ? plan.getK() : shape.keys - plan.getK();
      cost += predictTraffic(cpu, double(waitedFor) * (shape.d + shape.e) * bytesOfElement(),
                             bytesOfKeys());
    }
    return cost;
  }

  /// The time of the dot products of one query with `keys` keys, including the sums of their lanes.
  double dotProducts(int64_t keys) const {
    return double(keys) * vectorsOf(shape.d) *
               (multiplyAdd(*single) + (kDotLoad + kLoad) / multiplyAdd(*single)) +
           vectorsOf(keys) * cpu.getLanes() * shuffles(cpu);
  }

  /// The time of one head with the schedule whole-scores, which computes few queries at a time. Lanes hold keys.
  double wholeScores() const {
    double scores = double(shape.queries) * vectorsOf(shape.keys);
    double loops = (1 + (shape.mask ? 2 : 1)) * kShortLoop;
    double bytes = double(shape.keys) * std::min(shape.queries, plan.getQ()) * bytesOfElement();
    return shape.queries * dotProducts(shape.keys) + scores * (loops + probabilities(false, true)) +
           llvm::divideCeil(shape.queries, plan.getQ()) *
               (product(std::min(shape.queries, plan.getQ()), shape.e, shape.keys,
                        bool(shape.mask)) +
                inCycles(cpu, kTileOverhead)) +
           predictTraffic(cpu, 8 * bytes, bytes);
  }

  /// The time of one head of few queries with the schedule decode, which computes `keys` keys tile by tile. Lanes hold
  /// keys.
  double fewQueries(int64_t keys) const {
    int64_t rows = std::min(shape.queries, plan.getQ());
    double tiles = double(llvm::divideCeil(keys, plan.getK()));
    return shape.queries *
               (dotProducts(keys) + vectorsOf(keys) * probabilities(bool(shape.mask), true)) +
           llvm::divideCeil(shape.queries, plan.getQ()) *
               (product(rows, shape.e, keys, bool(shape.mask)) +
                inCycles(cpu, tiles * (kTileOverhead + rows * kRowOfTile)));
  }

  double unfused() const {
    double scores = double(shape.queries) * vectorsOf(shape.keys);
    double cost = shape.d * vectorsOf(shape.keys) * transpose(cpu) +
                  product(shape.queries, shape.keys, shape.d) +
                  product(shape.queries, shape.e, shape.keys, bool(shape.mask));
    double bytes = double(shape.queries) * shape.keys * bytesOfElement();
    // Add the time of the scale, the maximum, the exponentials and the division.
    cost += scores * (3 * kPlainLoop + probabilities(bool(shape.mask), true));
    return cost + predictTraffic(cpu, 8 * bytes, bytes);
  }

  /// The time to multiply `rows` rows by the weights of one head.
  double project(int64_t rows, int64_t columns) const {
    return shape.depth ? product(rows, columns, shape.depth) : 0;
  }

  /// The bytes of the keys and values of all heads.
  double bytesOfKeys() const {
    return double(shape.heads) * shape.keys * (shape.d + shape.e) * bytesOfElement();
  }

  /// `cost` plus the part of the time to load the operands from memory that the computation does not hide. The time to
  /// load is the same for every plan; it is added because the report prints predicted times.
  double withTraffic(double cost) const {
    double heads = double(shape.heads) * shape.groups;
    double bytes = bytesOfKeys() + heads * shape.queries * (shape.d + shape.e) * bytesOfElement();
    return addTraffic(cpu, cost, bytes);
  }

  double complete(double cost) const { return shape.depth ? cost : withTraffic(cost); }

  double heads() const { return double(shape.heads) * shape.groups; }
  double tiles() const { return llvm::divideCeil(shape.queries, plan.getQ()); }

  /// The time in which the workers complete `tasks` equal tasks, which take `cost` together: at least that of one task.
  double inTasks(double cost, double tasks) const {
    return cost / std::clamp<double>(tasks, 1, workers);
  }
  /// The number of tasks of a product with `rows` rows, for each of its panels.
  static double tasksOfRows(int64_t rows) { return llvm::divideCeil(rows, kRowsOfProduct); }

  /// The time of a schedule in which each task projects the keys and values of one head and then, for each tile of
  /// queries, projects the queries and computes their attention. The attention of one head takes `attention`.
  double inTasksOfHeads(double attention) const {
    double cost = heads() * attention +
                  shape.heads * (project(shape.keys, shape.d) + project(shape.keys, shape.e));
    int64_t whole = shape.queries / plan.getQ(), rest = shape.queries % plan.getQ();
    cost += heads() * (whole * project(plan.getQ(), shape.d) + project(rest, shape.d));
    double tasks = shape.depth ? shape.heads : heads() * tiles();
    return inTasks(complete(cost + inCycles(cpu, tasks * kTaskOverhead)), tasks);
  }

  /// The time of a schedule that computes all projections first, and then the attention. The attention of one head
  /// takes `attention`, in `tasks` tasks. Each projection computes the keys or the values of `joined` heads, or the
  /// queries that belong to these heads.
  double inPhases(double attention, double tasks, int64_t joined) const {
    double cost = heads() * attention;
    if (!shape.depth)
      return inTasks(complete(cost), heads() * tasks);
    cost = inTasks(cost, heads() * tasks);
    int64_t ofQueries = joined > 1 ? joined * shape.groups : 1;
    double products = double(shape.heads) / joined, productsOfQueries = heads() / ofQueries;
    cost += inTasks(
        products * (project(shape.keys, joined * shape.d) + project(shape.keys, joined * shape.e)),
        2 * products * tasksOfRows(shape.keys));
    cost += inTasks(productsOfQueries * project(shape.queries, ofQueries * shape.d),
                    productsOfQueries * tasksOfRows(shape.queries)) +
            inCycles(cpu, 3 * kPhaseOverhead);
    // The bytes that one phase writes and the next one reads.
    double bytes =
        (heads() * shape.queries * shape.d + shape.heads * shape.keys * double(shape.d + shape.e)) *
        bytesOfElement();
    return complete(cost + predictTraffic(cpu, 2 * bytes, bytes) / workers);
  }
};
} // namespace

double attn::predictPerHead(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan,
                            int64_t workers) {
  Model model(cpu, shape, plan, workers);
  return model.inTasksOfHeads(model.attend());
}

double attn::predictPhased(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan,
                           int64_t workers) {
  Model model(cpu, shape, plan, workers);
  int64_t joined = shape.joinsHeads(cpu.getLanes()) ? shape.joined : 1;
  return model.inPhases(model.attend() + inCycles(cpu, model.tiles() * kTaskOverhead),
                        model.tiles(), joined);
}

double attn::predictWholeScores(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan,
                                int64_t workers) {
  Model model(cpu, shape, plan, workers);
  return model.inTasksOfHeads(model.wholeScores());
}

double attn::predictDecode(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan,
                           int64_t workers) {
  Model model(cpu, shape, plan, workers);
  int64_t keys = countKeys(cpu.getContext(), shape, std::min(shape.queries, plan.getQ()));
  double cost = model.fewQueries(keys) + inCycles(cpu, model.tiles() * kTaskOverhead);
  if (plan.getPart() == 0)
    return model.inPhases(cost, model.tiles(), /*joined=*/1);
  double parts = double(llvm::divideCeil(shape.keys, plan.getPart()));
  cost += parts * (inCycles(cpu, model.tiles() * kTaskOverhead) +
                   shape.queries * model.vectorsOf(shape.e) * store(cpu));
  return model.inPhases(cost, parts * model.tiles(), /*joined=*/1) + inCycles(cpu, kPhaseOverhead);
}

double attn::predictUnfused(CpuAttr cpu, const AttentionShape &shape, PlanAttr plan,
                            int64_t workers) {
  Model model(cpu, shape, plan, workers);
  return model.inPhases(model.unfused(), model.tiles(), /*joined=*/1);
}
