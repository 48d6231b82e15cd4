//===- Instructions.h - what the vector dialect does not have ----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Instructions that MLIR's machine-independent dialects cannot express. In codegen/cpu, only Instructions.cpp and the
// descriptions in targets/ contain code for a particular instruction set.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_INSTRUCTIONS_H
#define ATTN_CODEGEN_CPU_INSTRUCTIONS_H

#include "codegen/cpu/MultiplyAdd.h"

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

/// Returns sums[i] + a[i] * b[i] for each lane i of `sums`. `a` and `b` are vectors of f16.
mlir::Value createMultiplyAddHalves(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                                    mlir::Value b, mlir::Value sums);

/// The multiplications of tiles. In memory, the elements of a row of a tile are adjacent.
///
/// The tiles of AMX are in the registers TMM0 to TMM7. A tile of sums has 16 rows of 16 f32, and a tile of factors has
/// 16 rows of 16 pairs of bf16.
extern const TileMultiplyAdd kAmxTile;
/// The tiles of NEON are in vector registers. A tile of sums has 2 rows of 4 f32, the first factor has 2 rows of 2
/// pairs of bf16, and the second factor has 2 rows of 4 pairs.
extern const TileMultiplyAdd kNeonTile;

} // namespace attn

#endif // ATTN_CODEGEN_CPU_INSTRUCTIONS_H
