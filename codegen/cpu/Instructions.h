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

/// Returns p * 2^n, where n is the floor of `exponent`. `exponent` may be any number.
mlir::Value createScale(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value p,
                        mlir::Value exponent);

/// Returns x minus the floor of x, or 0 if x is infinite.
mlir::Value createFraction(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);

/// Rounds two vectors of f32 to bf16 and interleaves them: element i of the first comes before element i of the second.
mlir::Value createPairs(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange rows);

/// Returns sums[i] + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] for each lane i of `sums`. `a` and `b` are vectors of bf16.
mlir::Value createMultiplyAddPairs(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                                   mlir::Value b, mlir::Value sums);

/// Tiles are the matrices in the registers TMM0 to TMM7 of AMX. A tile of sums has 16 rows of 16 f32, a tile of factors
/// 16 rows of 16 pairs of bf16. In memory, the elements of a row are adjacent.
///
/// A tile of zeros.
mlir::Value createZeroTile(mlir::OpBuilder &builder, mlir::Location loc);
/// Loads a tile from `buffer`, a memref of one dimension: the first row starts at `index`, and each further row starts
/// `stride` elements after the previous one.
mlir::Value createLoadTile(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                           mlir::Value index, mlir::Value stride);
/// Stores a tile of sums to `buffer`, in the layout that createLoadTile() reads.
void createStoreTile(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tile,
                     mlir::Value buffer, mlir::Value index, mlir::Value stride);
/// Returns, for each i and j, sums[i, j] plus the products of the pairs a[i, k] and b[k, j] for all k.
mlir::Value createMultiplyAddTiles(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                                   mlir::Value b, mlir::Value sums);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_INSTRUCTIONS_H
