//===- RegisterBlocks.cpp - how much of a product stays in registers -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/RegisterBlocks.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// The number of vectors that stands for many columns: the width of every block that fits divides it.
static constexpr int64_t kManyVectors = 12;

/// The number of sums in a vector register.
static int64_t getLanes(CpuAttr cpu, const MultiplyAdd &instruction) {
  return cpu.getLanes(instruction.getSumType(cpu.getContext()));
}

bool attn::fitsRegisters(CpuAttr cpu, const MultiplyAdd &instruction, RegisterBlock block,
                         bool guarded) {
  int64_t live = block.rows * block.vectors + block.vectors * (guarded ? 2 : 1) + 1;
  // A product that is guarded or not fused needs a register before it is added or selected.
  if (guarded || !instruction.isFused)
    ++live;
  return live <= int64_t(cpu.getRegisters() - cpu.getSpare());
}

/// The number of loads for each step of the reduction and each row. In each step, a block loads one element for each of
/// its rows, and its vectors.
static double loadsPerRow(RegisterBlock block, int64_t vectors) {
  int64_t whole = vectors / block.vectors, rest = vectors % block.vectors;
  int64_t loads = whole * (block.rows + block.vectors) + (rest ? block.rows + rest : 0);
  return double(loads) / block.rows;
}

RegisterBlock attn::fitTwoSums(CpuAttr cpu, const MultiplyAdd &instruction, RegisterBlock block) {
  // Try 8, 6, 4, 3, 2 and 1 rows, because the number of keys in a tile is a multiple of most of these. If rows are in
  // groups, keep whole groups.
  while (instruction.isFused && block.rows > instruction.group &&
         !fitsRegisters(cpu, instruction, {2 * block.rows, block.vectors}, /*guarded=*/false))
    block.rows -= std::max<int64_t>(block.rows > 4 ? 2 : 1, instruction.group);
  return block;
}

int64_t attn::chooseDepthBlock(CpuAttr cpu, const MultiplyAdd &instruction, RegisterBlock block,
                               bool isOfTiles, int64_t depth, int64_t bytesPerFactor,
                               int64_t kernel) {
  // Long sums are split because the error of a sum grows with its length. A tile costs more to store and load than a
  // vector, so the parts of the sums are longer with tiles; these parts consist of whole steps.
  static constexpr int64_t kLongestSum = 192, kLongestSumOfTiles = 1024;
  int64_t longestSum = isOfTiles ? kLongestSumOfTiles : kLongestSum;
  int64_t granule = isOfTiles ? instruction.tile->steps * instruction.group : kernel ? kernel : 2;
  int64_t bytesPerRow =
      block.vectors * getLanes(cpu, instruction) * instruction.group * bytesPerFactor;
  int64_t most = std::clamp<int64_t>(cpu.getL2() / 4 / bytesPerRow, 1, longestSum);
  // Shorter parts would load and store the accumulators too often, and a part of odd length does not consist of pairs
  // of steps.
  int64_t least = most / 2;
  for (int64_t length = std::min(most, depth); length >= least && length > 0; --length)
    if (depth % length == 0 && (length % granule == 0 || length == depth))
      return length;
  return depth;
}

RegisterBlock attn::chooseRegisterBlock(CpuAttr cpu, const MultiplyAdd &instruction,
                                        int64_t columns, bool guarded) {
  int64_t vectors = kManyVectors;
  if (!ShapedType::isDynamic(columns))
    vectors = std::max<int64_t>(1, llvm::divideCeil(columns, getLanes(cpu, instruction)));
  RegisterBlock best = {1, 1};
  // Consider only blocks that have at least as many rows as vectors.
  for (int64_t rows = 2; rows <= kMostRows; rows += 2) {
    for (int64_t width = 1; width <= std::min(rows, vectors); ++width) {
      RegisterBlock block = {rows, width};
      if (fitsRegisters(cpu, instruction, block, guarded) &&
          loadsPerRow(block, vectors) < loadsPerRow(best, vectors))
        best = block;
    }
  }
  return best;
}

/// Whether the tile registers can hold `down` x `width` tiles of sums, and the tiles of factors that these sums need.
static bool fitsTiles(const TileMultiplyAdd &tile, int64_t down, int64_t width) {
  return down * width + down + width <= tile.registers;
}

RegisterBlock attn::chooseTileBlock(const TileMultiplyAdd &tile, int64_t columns) {
  int64_t across = kManyVectors;
  if (!ShapedType::isDynamic(columns))
    across = std::max<int64_t>(1, columns / tile.columns);
  RegisterBlock best = {1, 1};
  for (int64_t down = 1; down < tile.registers; ++down)
    for (int64_t width = 1; width <= std::min(down, across); ++width)
      if (fitsTiles(tile, down, width) &&
          loadsPerRow({down, width}, across) < loadsPerRow(best, across))
        best = {down, width};
  return {best.rows * tile.rows, best.vectors};
}

bool attn::hasTiles(const MultiplyAdd &instruction, RegisterBlock block) {
  const TileMultiplyAdd *tile = instruction.tile;
  return tile && block.rows % tile->rows == 0 &&
         fitsTiles(*tile, block.rows / tile->rows, block.vectors);
}

RegisterBlock attn::fitEdges(CpuAttr cpu, const MultiplyAdd &instruction, RegisterBlock block) {
  block.rows = kMostRows;
  while (block.rows > instruction.group &&
         !fitsRegisters(cpu, instruction, block, /*guarded=*/false))
    block.rows /= 2;
  return block;
}

/// The instruction for elements in groups of `shape.group`, or else for single elements; null if there is none.
static const MultiplyAdd *findInstruction(CpuAttr cpu, const ProductShape &shape) {
  for (const MultiplyAdd *row : findMultiplyAdds(cpu, shape.types))
    if (row->group == shape.group)
      return row;
  return findMultiplyAdd(cpu, shape.types);
}

bool attn::hasRegisters(CpuAttr cpu, const ProductShape &shape, BlockAttr block) {
  if (block.getRows() <= kMostRows)
    return true;
  const MultiplyAdd *instruction = findInstruction(cpu, shape);
  return instruction && !shape.skipsZeros && !shape.kernel &&
         hasTiles(*instruction, {block.getRows(), block.getVectors()});
}

/// Whether a product of `shape` has as many rows and columns as a tile, and enough products for one instruction.
static bool fillsTiles(const MultiplyAdd &instruction, const ProductShape &shape) {
  auto isAtLeast = [](int64_t size, int64_t least) {
    return ShapedType::isDynamic(size) || size >= least;
  };
  const TileMultiplyAdd *tile = instruction.tile;
  return tile && !shape.skipsZeros && !shape.kernel && isAtLeast(shape.rows, tile->rows) &&
         isAtLeast(shape.columns, tile->columns) &&
         isAtLeast(shape.depth.value_or(ShapedType::kDynamic), tile->steps * instruction.group);
}

BlockAttr attn::planBlock(CpuAttr cpu, const ProductShape &shape) {
  const MultiplyAdd *instruction = findInstruction(cpu, shape);
  if (!instruction)
    return {};
  bool isOfTiles = fillsTiles(*instruction, shape);
  RegisterBlock block =
      isOfTiles ? chooseTileBlock(*instruction->tile, shape.columns)
                : chooseRegisterBlock(cpu, *instruction, shape.columns, shape.skipsZeros);
  int64_t bytes = std::max(getBytes(shape.types.a), getBytes(shape.types.b));
  int64_t part = shape.depth ? chooseDepthBlock(cpu, *instruction, block, isOfTiles, *shape.depth,
                                                bytes, shape.kernel)
                             : 0;
  return BlockAttr::get(cpu.getContext(), block.rows, block.vectors,
                        part == shape.depth ? 0 : part);
}
