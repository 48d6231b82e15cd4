//===- Instructions.h - what the vector dialect does not have ----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Instructions that MLIR's machine-independent dialects cannot express. Instructions.cpp and the descriptions in
// codegen/cpu/targets/ are the only files in codegen/cpu that name an instruction set.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_INSTRUCTIONS_H
#define ATTN_CODEGEN_CPU_INSTRUCTIONS_H

#include "dialect/Attn.h"

namespace attn {

/// Whether `cpu` has the instructions of createScale() and createFraction() for vectors of `type`.
bool canScale(CpuAttr cpu, mlir::Type type);

/// p * 2^n, where n is the integer at or below `exponent`, which may be any number.
mlir::Value createScale(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value p,
                        mlir::Value exponent);

/// x minus the integer at or below x; 0 for infinity.
mlir::Value createFraction(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);

/// Rounds two vectors of f32 to bf16 and interleaves them: element i of the first comes before element i of the second.
mlir::Value createPairs(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange rows);

/// sums + the products of each pair of bf16 in `a` and in `b`, which have two elements for each sum.
mlir::Value createMultiplyAddPairs(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                                   mlir::Value b, mlir::Value sums);

/// Tiles are the matrices in the registers TMM0 to TMM7 of AMX. A tile of sums has 16 rows of 16 f32, a tile of factors 16
/// rows of 16 pairs of bf16. In memory, the elements of a row are adjacent.
///
/// A tile of zeros.
mlir::Value createZeroTile(mlir::OpBuilder &builder, mlir::Location loc);
/// The tile in `buffer`, a memref of one dimension: the first row starts at `index`, and each further row `stride` elements
/// after the previous one.
mlir::Value createLoadTile(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                           mlir::Value index, mlir::Value stride);
/// Stores a tile of sums likewise.
void createStoreTile(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tile,
                     mlir::Value buffer, mlir::Value index, mlir::Value stride);
/// sums[i, j] + the products of all pairs a[i, k] and b[k, j].
mlir::Value createMultiplyAddTiles(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                                   mlir::Value b, mlir::Value sums);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_INSTRUCTIONS_H
