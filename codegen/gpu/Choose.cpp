//===- Choose.cpp - choose the tiles of attentions on GPUs -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Predictions count cycles of one multiprocessor, from the published rates of an A100 or, for levels with wgmma, of an
// H100 (struct Rates). Those for wgmma are fitted to measurements of kernels without a mask on an H100: heads of 64 with
// tiles of 128 x 96, 128, 160 and 192 and of 192 x 96 and 128, and heads of 128 with tiles of 128 x 112 to 176, within
// 4 %. No other prediction has been compared with a measurement yet.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Choose.h"
#include "codegen/gpu/MatrixMultiply.h"
#include "codegen/gpu/TilePipeline.h"
#include "codegen/gpu/WarpgroupMultiply.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// The numbers of queries and of keys of the tiles to try. If warpgroups multiply (wgmma), the numbers of keys differ,
/// and there may be more queries than kMostQueriesOfWarps.
static constexpr int64_t kQueryTiles[] = {192, 128, 64, 32}, kMostQueriesOfWarps = 128;
static constexpr int64_t kKeyTiles[] = {64, 32, 16, 128};
static constexpr int64_t kKeyTilesOfWarpgroups[] = {128, 112, 96, 80, 64, 48, 32, 16};

/// The 16-bit elements of 16 bytes.
static constexpr int64_t kRowUnit = 8;

/// The largest number of queries of a warp, and the number of warps of a block of threads if there are enough queries.
static constexpr int64_t kRowsOfWarp = 32, kWarpsOfBlock = 4;

/// The largest number of registers of a thread, and the number of registers that addresses, maxima, sums and factors
/// take. Factors of f32 take more registers, because each is split into two numbers of tf32.
static constexpr int64_t kMostRegisters = 255, kOtherRegisters = 100, kOtherRegistersOfF32 = 124;

/// The number of registers that masks and score regions need.
static constexpr int64_t kMaskRegisters = 56;

/// For products by warpgroups: the number of registers for everything besides accumulators, scores and probabilities. With
/// 192 queries and heads of 64, a few more are spilled, but no smaller tile is as fast.
static constexpr int64_t kOtherRegistersOfWarpgroups = 32;
/// Additional registers if there is a mask, and further ones if a region computes scores, or if masks read operands.
static constexpr int64_t kMaskRegistersOfWarpgroups = 12, kCaptureRegistersOfWarpgroups = 60;
/// Additional registers if a mask bounds keys on both sides, because two loops then compute the tiles that the mask
/// hides in part.
static constexpr int64_t kTwoSidesRegistersOfWarpgroups = 36;

/// For the schedule decode: the number of keys of a part if the number of all keys is known only at the call, the least
/// number of tiles of a part, and the cycles that a second launch takes.
static constexpr int64_t kTypicalPart = 512, kLeastTilesOfPart = 2;
static constexpr double kCyclesOfLaunch = 4000;

/// The cycles of a step of warpgroups, fitted to measurements, are kCyclesOfStep and the larger of two numbers. The
/// first is kOfProducts times the cycles of the products at the full rate, and kOfExponentials times those of the
/// exponentials. The second is the time of one warpgroup, which computes its rows while the others compute theirs:
/// kOfRows times the cycles of its products and its softmax, and kCyclesOfWarpgroup for each other warpgroup. A task
/// takes kCyclesOfTask before and after its steps.
static constexpr double kOfProducts = 1.4, kOfExponentials = 0.5, kOfRows = 1.25,
                        kCyclesOfWarpgroup = 415, kCyclesOfStep = 95, kCyclesOfTask = 5300;

/// The latency in cycles of a copy from global memory.
static constexpr double kLatencyOfCopy = 600;

/// The largest number of columns of a projection that a warpgroup computes at a time.
static constexpr int64_t kColumnsOfWarpgroup = 128;

namespace {
/// The number of multiprocessors of a GPU, and the limits of one multiprocessor. In one cycle, a multiprocessor
/// computes `multiplies` multiply-adds of 16-bit factors, `exponentials` exponentials and `operations` other operations
/// on f32, and reads `sharedBytes` bytes from shared memory and `copiedBytes` bytes from the L2 cache. It runs at
/// most `threads` threads and `blocks` blocks of threads at a time. The blocks share `shared` bytes of memory.
struct Rates {
  double multiprocessors, multiplies, exponentials, operations, sharedBytes, copiedBytes;
  int64_t threads, blocks, shared;

  static const Rates &of(GpuAttr gpu) {
    static constexpr Rates a100 = {108, 1024, 16, 64, 128, 48, 2048, 32, 164 * 1024},
                           h100 = {132, 2048, 16, 128, 128, 40, 2048, 32, 228 * 1024};
    return gpu.can(GpuCapabilities::Warpgroups) ? h100 : a100;
  }
};
} // namespace

/// Whether whole warpgroups compute a tile of `rows` x `columns` sums.
static bool isByWarpgroups(GpuAttr gpu, Type element, int64_t rows, int64_t columns) {
  return rows % kWarpgroupRows == 0 &&
         multipliesByWarpgroups(gpu, element, kWarpgroupWarps, kMatrixRows, columns);
}

/// The number of rows that one warp computes of a tile with `rows` rows.
static int64_t rowsOfWarp(bool byWarpgroups, int64_t rows) {
  if (byWarpgroups)
    return kMatrixRows;
  return std::clamp<int64_t>(rows / kWarpsOfBlock, kMatrixRows, kRowsOfWarp);
}

/// Returns the number of bytes that `stages` tiles take in shared memory.
static int64_t bytesOf(const SharedTile &tile, int64_t stages) {
  return stages * tile.rows * tile.pitch() * tile.element.getIntOrFloatBitWidth() / 8;
}

/// The bytes of shared memory of a task with blocks of `rows` rows and `vectors` vectors: two stages of tiles of the
/// factors (ProductToFragments.cpp), and the sums of all products of the task, which elementwise ops then read.
static int64_t countShared(GpuAttr gpu, const ProductShape &shape, int64_t rows, int64_t vectors) {
  Type element = shape.types.a;
  int64_t columns = vectors * kMatrixColumns;
  bool byWarpgroups = multipliesByWarpgroups(gpu, element, kWarpsOfProduct, rows, columns);
  int64_t above = rowsOfWarps(byWarpgroups);
  rows *= above;
  columns *= kWarpsOfProduct / above;
  int64_t depth = 8 * MatrixMultiply::get(element)->chunk();
  // The layout of the right factor is not known here, so take the larger of its two possible tiles.
  int64_t right = std::max(bytesOf({columns, depth, element, byWarpgroups}, 2),
                           bytesOf({depth, columns, element, byWarpgroups}, 2));
  int64_t sums = shape.combined * rows * columns * shape.types.sum.getIntOrFloatBitWidth() / 8;
  return bytesOf({rows, depth, element, byWarpgroups}, 2) + right + sums;
}

BlockAttr attn::planBlock(GpuAttr gpu, const ProductShape &shape) {
  if (shape.kernel) // becomes loops over single elements
    return {};
  int64_t rows = ShapedType::isDynamic(shape.rows) ? kRowsOfWarp * kWarpsOfBlock : shape.rows;
  int64_t columns = ShapedType::isDynamic(shape.columns) ? kMatrixColumns : shape.columns;
  Type element = shape.types.a;
  // If there are more rows than a warpgroup multiplies at a time, round them up to a multiple of that number.
  if (rows > kWarpgroupRows)
    rows = llvm::alignTo(rows, kWarpgroupRows);
  bool byWarpgroups = isByWarpgroups(gpu, element, rows, kColumnsOfWarpgroup);
  int64_t most = byWarpgroups ? kColumnsOfWarpgroup / kMatrixColumns : 8;
  int64_t ofWarp = rowsOfWarp(byWarpgroups, rows);
  int64_t vectors = std::clamp<int64_t>(llvm::divideCeil(columns, kMatrixColumns), 2, most);
  // Halve the columns, and then the rows, until the task fits into shared memory. If the smallest block does not fit,
  // AssignShared reports an error.
  auto fits = [&] {
    return !MatrixMultiply::get(element) ||
           countShared(gpu, shape, ofWarp, vectors) <= int64_t(gpu.getShared());
  };
  while (!fits() && (vectors > 2 || ofWarp > kMatrixRows)) {
    if (vectors > 2)
      vectors = std::max<int64_t>(2, llvm::alignTo(vectors / 2, 2));
    else
      ofWarp = kMatrixRows;
  }
  return BlockAttr::get(gpu.getContext(), ofWarp, vectors, /*depth=*/0);
}

bool attn::hasRegisters(BlockAttr block) {
  return block.getRows() % kMatrixRows == 0 &&
         block.getRows() * block.getVectors() * kMatrixColumns / kWarp <= kMostRegisters / 2;
}

TaskSize attn::planTask(GpuAttr gpu, const ProductShape &shape, BlockAttr block) {
  int64_t columns = block.getVectors() * kMatrixColumns;
  int64_t above = rowsOfWarps(
      multipliesByWarpgroups(gpu, shape.types.a, kWarpsOfProduct, block.getRows(), columns));
  return {above * block.getRows(), kWarpsOfProduct / above * columns};
}

/// The number of inequalities that state which pairs the mask keeps.
static int64_t countConstraints(const AttentionShape &shape) {
  int64_t count = 0;
  if (shape.mask)
    for (const KeptSet &set : shape.mask.kept(shape.numBatch))
      count += set.pairs.getNumConstraints();
  return count;
}

namespace {
/// The resources that a block of threads needs.
struct Needs {
  GpuAttr gpu;
  bool byWarpgroups;
  int64_t rows; ///< the number of queries of a warp
  int64_t threads, registers, shared;

  Needs(GpuAttr gpu, const AttentionShape &shape, PlanAttr plan)
      : gpu(gpu), byWarpgroups(isByWarpgroups(gpu, shape.element, plan.getQ(),
                                              std::max(plan.getK(), shape.e))) {
    rows = rowsOfWarp(byWarpgroups, plan.getQ());
    threads = plan.getQ() / rows * kWarp;
    // Accumulators take registers, and so do scores, which become probabilities. A probability of f32 takes three
    // registers (struct Split in MatrixMultiply.cpp).
    bool isF32 = shape.element.isF32();
    int64_t scores = plan.getK() * (isF32 ? 3 : 1), others = kOtherRegisters;
    if (isF32)
      others = kOtherRegistersOfF32;
    if (byWarpgroups) {
      // Probabilities, two in a register, are still needed while the next scores are computed.
      scores += plan.getK() / 2;
      others = kOtherRegistersOfWarpgroups;
      if (shape.mask || shape.hasRegion)
        others += kMaskRegistersOfWarpgroups;
      if (shape.hasRegion || shape.hasCaptures)
        others += kCaptureRegistersOfWarpgroups;
      else if (countConstraints(shape) > 1)
        others += kTwoSidesRegistersOfWarpgroups;
      threads += kWarpgroupWarps * kWarp; // the producers
    } else if (shape.mask || shape.hasRegion) {
      others += kMaskRegisters;
    }
    registers = rows * (llvm::alignTo(shape.e, 16) + scores) / kWarp + others;
    auto bytes = [&](int64_t rows, int64_t columns, int64_t stages) {
      return bytesOf({rows, columns, shape.element, byWarpgroups}, stages);
    };
    shared = bytes(plan.getQ(), shape.d, byWarpgroups && !shape.mask ? kQueryStages : 1) +
             bytes(plan.getK(), shape.d, plan.getStages()) +
             bytes(plan.getK(), shape.e, plan.getStages());
  }

  /// The number of warpgroups that multiply, if warpgroups do.
  int64_t getWarpgroups() const { return threads / (kWarpgroupWarps * kWarp) - 1; }
  int64_t mostRegisters() const {
    return byWarpgroups ? countConsumerRegisters(getWarpgroups()) : kMostRegisters;
  }
  bool fitShared() const { return shared + kBarrierBytes <= int64_t(gpu.getShared()); }
  bool fit() const { return fitShared() && registers <= mostRegisters(); }

  /// The number of blocks of threads that a multiprocessor runs at a time.
  int64_t blocksAtOnce() const {
    const Rates &rates = Rates::of(gpu);
    if (byWarpgroups) // a block takes nearly all registers
      return 1;
    int64_t ofThread = std::min(registers, kMostRegisters);
    return std::max<int64_t>(1,
                             std::min({rates.blocks, rates.threads / threads, rates.shared / shared,
                                       int64_t(gpu.getRegisters()) / (ofThread * threads)}));
  }
};
} // namespace

/// The number of tasks if each computes a tile of `q` queries with all keys.
static int64_t countTasks(const AttentionShape &shape, int64_t q) {
  return shape.heads * shape.groups * llvm::divideCeil(shape.queries, q);
}

/// The number of keys of a part for the schedule decode, with tiles of q queries and k keys. Returns 0 if there are
/// enough tasks or too few keys: each task then computes its queries with all keys.
static int64_t choosePart(GpuAttr gpu, const AttentionShape &shape, int64_t q, int64_t k) {
  int64_t tasks = countTasks(shape, q), wanted = int64_t(Rates::of(gpu).multiprocessors);
  if (tasks == 0 || 2 * tasks > wanted || shape.returnsProbabilities)
    return 0;
  if (!shape.knowsKeys)
    return llvm::alignTo(kTypicalPart, k);
  int64_t parts = std::min(wanted / tasks, shape.keys / (kLeastTilesOfPart * k));
  return parts < 2 ? 0 : llvm::alignTo(llvm::divideCeil(shape.keys, parts), k);
}

double attn::predictPlan(GpuAttr gpu, const AttentionShape &shape, PlanAttr plan) {
  Needs needs(gpu, shape, plan);
  const Rates &rates = Rates::of(gpu);
  double q = plan.getQ(), k = plan.getK(), rows = double(needs.rows), warps = q / rows;
  double tasks = double(countTasks(shape, plan.getQ())), keys = double(shape.keys), merge = 0;
  if (int64_t part = plan.getPart()) {
    tasks *= std::ceil(keys / double(part));
    keys = double(part);
    merge = kCyclesOfLaunch;
  }
  double blocks = double(needs.blocksAtOnce());
  if (shape.knowsBatch) // otherwise, assume that there are many tasks
    blocks = std::clamp(tasks / rates.multiprocessors, 1.0, blocks);

  double bytes = shape.element.getIntOrFloatBitWidth() / 8.0;
  double products = q * k * double(shape.d + shape.e);
  double multiplies = products / rates.multiplies * (shape.element.isF32() ? 6 : 1);
  // For mma.sync, each warp reads the keys, the values and its own queries from shared memory. mma.sync has half the
  // rate of wgmma.
  double reads =
      warps * bytes * (k * double(shape.d + shape.e) + rows * double(shape.d)) / rates.sharedBytes;
  if (!needs.byWarpgroups && gpu.can(GpuCapabilities::Warpgroups))
    multiplies *= 2;
  // Copies run one step ahead of products. Copies by producer warps run as many steps ahead as there are stages.
  double latency = kLatencyOfCopy / (blocks * (needs.byWarpgroups ? plan.getStages() : 1));
  double copies = std::max(bytes * k * double(shape.d + shape.e) / rates.copiedBytes, latency);
  double exponentials = q * k / rates.exponentials;
  double softmax = exponentials + q * (8 * k + double(shape.e)) / rates.operations;
  double step;
  if (needs.byWarpgroups) {
    double others = double(needs.getWarpgroups() - 1);
    double units = kOfProducts * multiplies + kOfExponentials * exponentials;
    double inOrder = kCyclesOfWarpgroup * others + kOfRows * (multiplies + softmax) / (1 + others);
    step = kCyclesOfStep + std::max({units, copies, inOrder});
  } else if (needs.blocksAtOnce() >
             1) { // products overlap with the softmax of another block of threads
    step = std::max({multiplies, reads, copies, softmax}) + 0.25 * std::min(multiplies, softmax);
  } else {
    step = std::max(copies, std::max(multiplies, reads) + softmax);
  }
  // What a block does before and after its steps overlaps with other blocks, if there are any.
  double begin = needs.byWarpgroups ? 0 : step;
  if (gpu.can(GpuCapabilities::Warpgroups))
    begin += kCyclesOfTask / double(needs.blocksAtOnce());
  double rounds = tasks / rates.multiprocessors;
  if (shape.knowsBatch)
    rounds = std::ceil(rounds);
  return rounds * (begin + std::ceil(keys / k) * step) + merge;
}

/// Returns a plan with as many stages as fit into shared memory, but not more than there are tiles. A plan has more than
/// the least number of stages only if a producer copies the tiles (ProduceTiles.cpp): warpgroups multiply, and the
/// attention does not return its probabilities.
static PlanAttr withMostStages(GpuAttr gpu, const AttentionShape &shape, Schedule schedule,
                               int64_t q, int64_t k, int64_t part) {
  auto planOf = [&](int64_t stages) {
    return PlanAttr::get(gpu.getContext(), schedule, q, k, /*group=*/1, part, /*transposes=*/false,
                         stages);
  };
  int64_t stages = PlanAttr::kLeastStages;
  int64_t most = PlanAttr::kMostStages;
  if (shape.knowsKeys)
    most = std::min<int64_t>(most, llvm::divideCeil(shape.keys, k));
  if (Needs(gpu, shape, planOf(stages)).byWarpgroups && !shape.returnsProbabilities)
    while (stages < most && Needs(gpu, shape, planOf(stages + 1)).fitShared())
      ++stages;
  return planOf(stages);
}

SmallVector<Prediction> attn::predictPlans(GpuAttr gpu, const AttentionShape &shape,
                                           std::optional<Schedule> only) {
  SmallVector<PlanAttr> plans;
  for (int64_t q : kQueryTiles) {
    bool byWarpgroups = isByWarpgroups(gpu, shape.element, q, shape.e);
    // Other warps copy the tiles of warpgroups, with TMA, which copies rows of multiples of 16 bytes.
    if (byWarpgroups ? shape.d % kRowUnit != 0 || shape.e % kRowUnit != 0 : q > kMostQueriesOfWarps)
      continue;
    if (q > kMostQueriesOfWarps && shape.returnsProbabilities)
      continue;
    for (int64_t k : byWarpgroups ? ArrayRef(kKeyTilesOfWarpgroups) : ArrayRef(kKeyTiles))
      for (Schedule schedule : {Schedule::Phased, Schedule::Decode}) {
        int64_t part = schedule == Schedule::Decode ? choosePart(gpu, shape, q, k) : 0;
        if (only ? schedule == *only : schedule == Schedule::Phased || part)
          plans.push_back(withMostStages(gpu, shape, schedule, q, k, part));
      }
  }
  SmallVector<Prediction> predictions;
  for (PlanAttr plan : plans)
    if (Needs(gpu, shape, plan).fit())
      predictions.push_back({plan, predictPlan(gpu, shape, plan)});
  llvm::sort(predictions, [](auto &a, auto &b) { return a.cost < b.cost; });
  if (!predictions.empty() || plans.empty())
    return predictions;
  // No plan fits. Among the plans that fit into shared memory, take one that spills the fewest registers. If all plans
  // need too much shared memory, a later pass reports an error.
  auto *least = llvm::min_element(plans, [&](PlanAttr a, PlanAttr b) {
    Needs ofA(gpu, shape, a), ofB(gpu, shape, b);
    return std::make_tuple(!ofA.fitShared(), ofA.registers - ofA.mostRegisters(), -a.getQ()) <
           std::make_tuple(!ofB.fitShared(), ofB.registers - ofB.mostRegisters(), -b.getQ());
  });
  return {{*least, predictPlan(gpu, shape, *least)}};
}
