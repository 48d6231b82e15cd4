//===- Choose.cpp - the tiles of attentions on GPUs ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Predictions count cycles of one multiprocessor of an A100, from its published rates per multiprocessor and cycle:
// 1024 multiply-adds of 16-bit factors, 16 exponentials, 64 other operations on f32, 128 bytes from shared memory and
// 48 bytes from the L2 cache. No prediction has been compared with a measurement yet.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Choose.h"
#include "codegen/gpu/MatrixMultiply.h"
#include "codegen/gpu/TileCopies.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// Queries and keys of a tile to try.
static constexpr int64_t kQueryTiles[] = {128, 64, 32}, kKeyTiles[] = {64, 32, 16, 128};

/// The most queries of a warp, and the warps that a block of threads has if there are enough queries.
static constexpr int64_t kRowsOfWarp = 32, kWarpsOfBlock = 4;

/// The most registers of a thread, and those that addresses, maxima, sums and factors take: of f32, factors are split
/// into three parts each.
static constexpr int64_t kMostRegisters = 255, kOtherRegisters = 100, kOtherRegistersOfF32 = 124;

/// The registers that masks and regions of scores need.
static constexpr int64_t kMaskRegisters = 56;

/// The multiprocessors of an A100.
static constexpr int64_t kMultiprocessors = 108;

/// The most threads and blocks of threads of a multiprocessor at a time, and its shared memory, of an A100.
static constexpr int64_t kMostThreads = 2048, kMostBlocks = 32, kSharedBytes = 164 * 1024;

static int64_t rowsOfWarp(int64_t queries) {
  return std::clamp<int64_t>(queries / kWarpsOfBlock, kMatrixRows, kRowsOfWarp);
}

BlockAttr attn::planBlock(GpuAttr gpu, const ProductShape &shape) {
  int64_t rows = ShapedType::isDynamic(shape.rows) ? kRowsOfWarp * kWarpsOfBlock : shape.rows;
  int64_t columns = ShapedType::isDynamic(shape.columns) ? kMatrixColumns : shape.columns;
  return BlockAttr::get(gpu.getContext(), rowsOfWarp(rows),
                        std::clamp<int64_t>(llvm::divideCeil(columns, kMatrixColumns), 2, 8),
                        /*depth=*/0);
}

bool attn::hasRegisters(BlockAttr block) {
  return block.getRows() % kMatrixRows == 0 &&
         block.getRows() * block.getVectors() * kMatrixColumns / kWarp <= kMostRegisters / 2;
}

TaskSize attn::planTask(BlockAttr block) {
  // Two by two warps.
  return {2 * block.getRows(), 2 * block.getVectors() * kMatrixColumns};
}

namespace {
/// What a block of threads needs.
struct Needs {
  int64_t threads, registers, shared;

  Needs(const AttentionShape &shape, PlanAttr plan) {
    int64_t rows = rowsOfWarp(plan.getQ());
    threads = plan.getQ() / rows * kWarp;
    // The accumulators and the scores, which become probabilities: of f32, in three parts.
    bool isF32 = shape.element.isF32();
    registers = rows * (llvm::alignTo(shape.e, 16) + plan.getK() * (isF32 ? 3 : 1)) / kWarp +
                (isF32 ? kOtherRegistersOfF32 : kOtherRegisters);
    if (shape.mask || shape.hasRegion)
      registers += kMaskRegisters;
    SharedTile queries = {plan.getQ(), shape.d, shape.element},
               keys = {plan.getK(), shape.d, shape.element},
               values = {plan.getK(), shape.e, shape.element};
    auto bytes = [](const SharedTile &tile, int64_t stages) {
      return stages * tile.rows * tile.pitch() * tile.element.getIntOrFloatBitWidth() / 8;
    };
    shared = bytes(queries, 1) + bytes(keys, 2) + bytes(values, 2);
  }

  bool fitShared(GpuAttr gpu) const { return shared <= int64_t(gpu.getShared()); }
  bool fit(GpuAttr gpu) const { return fitShared(gpu) && registers <= kMostRegisters; }

  /// The blocks of threads that a multiprocessor runs at a time.
  int64_t blocksAtOnce(GpuAttr gpu) const {
    return std::max<int64_t>(
        1,
        std::min({kMostBlocks, kMostThreads / threads, kSharedBytes / shared,
                  int64_t(gpu.getRegisters()) / (std::min(registers, kMostRegisters) * threads)}));
  }
};
} // namespace

double attn::predictPlan(GpuAttr gpu, const AttentionShape &shape, PlanAttr plan) {
  Needs needs(shape, plan);
  double q = plan.getQ(), k = plan.getK(), rows = rowsOfWarp(plan.getQ()), warps = q / rows;
  double bytes = shape.element.getIntOrFloatBitWidth() / 8.0;
  double products = q * k * double(shape.d + shape.e);
  double multiplies = products / 1024 * (shape.element.isF32() ? 6 : 1);
  // Each warp reads the keys, the values and its own queries.
  double reads = warps * bytes * (k * double(shape.d + shape.e) + rows * double(shape.d)) / 128;
  double copies = bytes * k * double(shape.d + shape.e) / 48;
  double softmax = q * k * (1.0 / 16 + 8.0 / 64) + q * double(shape.e) / 64;
  // With several blocks of threads, one computes its softmax while another one multiplies.
  double step =
      needs.blocksAtOnce(gpu) > 1
          ? std::max({multiplies, reads, copies, softmax}) + 0.25 * std::min(multiplies, softmax)
          : std::max(copies, std::max(multiplies, reads) + softmax);
  double tasks = double(shape.heads) * shape.groups * llvm::divideCeil(shape.queries, plan.getQ());
  double steps = std::ceil(double(shape.keys) / k) + 1; // one for the start and the end
  double rounds = tasks / kMultiprocessors;
  if (shape.knowsBatch) // otherwise there are many tasks
    rounds = std::ceil(rounds);
  return rounds * steps * step;
}

SmallVector<Prediction> attn::predictPlans(GpuAttr gpu, const AttentionShape &shape) {
  SmallVector<PlanAttr> plans;
  for (int64_t q : kQueryTiles)
    for (int64_t k : kKeyTiles)
      plans.push_back(PlanAttr::get(gpu.getContext(), Schedule::Phased, q, k, /*group=*/1,
                                    /*part=*/0, /*transposes=*/false, /*in_place=*/true));
  SmallVector<Prediction> predictions;
  for (PlanAttr plan : plans)
    if (Needs(shape, plan).fit(gpu))
      predictions.push_back({plan, predictPlan(gpu, shape, plan)});
  llvm::sort(predictions, [](auto &a, auto &b) { return a.cost < b.cost; });
  if (!predictions.empty())
    return predictions;
  // The plan that spills the fewest registers. A head that is too large for every tile gets an error later.
  auto *least = llvm::min_element(plans, [&](PlanAttr a, PlanAttr b) {
    Needs ofA(shape, a), ofB(shape, b);
    return std::make_tuple(!ofA.fitShared(gpu), ofA.registers, -a.getQ()) <
           std::make_tuple(!ofB.fitShared(gpu), ofB.registers, -b.getQ());
  });
  return {{*least, predictPlan(gpu, shape, *least)}};
}
