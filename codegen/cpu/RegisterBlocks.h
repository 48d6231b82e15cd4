//===- RegisterBlocks.h - how much of a product stays in registers -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_REGISTERBLOCKS_H
#define ATTN_CODEGEN_CPU_REGISTERBLOCKS_H

#include "codegen/cpu/MultiplyAdd.h"
#include "passes/plan/Planner.h"

namespace attn {

/// The part of a contraction's output that is accumulated in registers: `rows` rows of `vectors` vector registers each.
struct RegisterBlock {
  int64_t rows, vectors;
};

/// The most rows of a block of vectors. More rows would save few loads, and each row needs an address register.
inline constexpr int64_t kMostRows = 8;

/// Whether the registers can hold the block's accumulators, a row of its vector operand and an element of the other
/// operand at the same time. A `guarded` product, which skips the zeros of one operand, also keeps masks and a separate
/// product in registers.
bool fitsRegisters(CpuAttr cpu, const MultiplyAdd &instruction, RegisterBlock block, bool guarded);

/// Of the blocks that fit the registers of the target, the one with the fewest loads for `columns`
/// columns; kDynamic stands for many columns or an unknown number. For sums of f32:
///
///                                columns    16      32      48      64      80      96     768, many
///   x86-64-v4  16 lanes, 32 registers     8 x 1   8 x 2   8 x 3   6 x 4   8 x 3   8 x 3   6 x 4
///   x86-64-v3   8 lanes, 16 registers     6 x 2   6 x 2   4 x 3   4 x 3   4 x 3   4 x 3   4 x 3
///   x86-64      4 lanes, 16, no FMA       6 x 2   6 x 2   6 x 2   6 x 2   6 x 2   6 x 2   6 x 2
RegisterBlock chooseRegisterBlock(CpuAttr cpu, const MultiplyAdd &instruction, int64_t columns,
                                  bool guarded);

/// The block of tiles with the fewest loads of tiles for `columns` columns, among the blocks whose tiles of sums and of
/// operands fit in the tile registers.
RegisterBlock chooseTileBlock(const TileMultiplyAdd &tile, int64_t columns);

/// Whether `block` is a block of tiles of `instruction`.
bool hasTiles(const MultiplyAdd &instruction, RegisterBlock block);

/// Returns the block of vectors that computes the edges of a product in blocks of tiles. This block is as wide as
/// `block`, a block of tiles, and has 8, 4 or 2 rows.
RegisterBlock fitEdges(CpuAttr cpu, const MultiplyAdd &instruction, RegisterBlock block);

/// Returns `block` with few enough rows for the registers to hold two partial sums of each element. Returns `block`
/// unchanged if `instruction` is not fused.
RegisterBlock fitTwoSums(CpuAttr cpu, const MultiplyAdd &instruction, RegisterBlock block);

/// The length of the parts into which a sum of `depth` products is split; all rows add one part before any row adds the
/// next. The limit of the length is 192 or, if this is less, the number of rows of the vector operand that fit in a
/// quarter of L2. The length is `depth` if `depth` is at most the limit. Otherwise it is the greatest even divisor of
/// `depth` from half of the limit to the limit, or `depth` if there is none. With tiles, 1024 replaces 192, and the
/// divisor is a multiple of the number of products of one instruction. In a convolution, the
/// divisor is a multiple of `kernel` (ProductShape), which is 0 for a product.
int64_t chooseDepthBlock(CpuAttr cpu, const MultiplyAdd &instruction, RegisterBlock block,
                         bool isOfTiles, int64_t depth, int64_t bytesPerFactor, int64_t kernel);

/// Whether `block`, which a user may have written, is possible for a product of `shape`: a block of more than 8 rows
/// must consist of tiles that fit in the tile registers.
bool hasRegisters(CpuAttr cpu, const ProductShape &shape, BlockAttr block);

/// The block of a product; null if `cpu` has no instruction for its types.
BlockAttr planBlock(CpuAttr cpu, const ProductShape &shape);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_REGISTERBLOCKS_H
