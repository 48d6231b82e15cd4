//===- Instructions.cpp - what the vector dialect does not have ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Instructions.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace attn;

/// Operands of the AVX-512 instructions: the current rounding direction and exception settings are used, the mask
/// selects every lane, and a number is rounded down.
static constexpr int32_t kCurrentDirection = 4;
static constexpr int16_t kEveryLane = -1;
static constexpr int32_t kDown = 1;

static Value constant(OpBuilder &builder, Location loc, TypedAttr value) {
  return arith::ConstantOp::create(builder, loc, value);
}

bool attn::canScale(CpuAttr cpu, Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return cpu.can(CpuCapabilities::Scale) && vector && vector.getRank() == 1 &&
         vector.getNumElements() == 16 && vector.getElementType().isF32();
}

Value attn::createScale(OpBuilder &builder, Location loc, Value p, Value exponent) {
  // The instruction is vscalefps. The op passes its operands to the intrinsic in this order: the value, the exponent,
  // the value of lanes that the mask switches off, the mask, the rounding. The names of the op's operands say
  // otherwise.
  return x86vector::MaskScaleFOp::create(
      builder, loc, p.getType(), p, exponent, p,
      constant(builder, loc, builder.getI16IntegerAttr(kEveryLane)),
      constant(builder, loc, builder.getI32IntegerAttr(kCurrentDirection)));
}

Value attn::createFraction(OpBuilder &builder, Location loc, Value x) {
  // The instruction is vreduceps.
  Value operands[] = {x, constant(builder, loc, builder.getI32IntegerAttr(kDown)), x,
                      constant(builder, loc, builder.getI16IntegerAttr(kEveryLane)),
                      constant(builder, loc, builder.getI32IntegerAttr(kCurrentDirection))};
  return LLVM::CallIntrinsicOp::create(builder, loc, x.getType(),
                                       builder.getStringAttr("llvm.x86.avx512.mask.reduce.ps.512"),
                                       operands)
      .getResult(0);
}

Value attn::createPairs(OpBuilder &builder, Location loc, ValueRange rows) {
  // The instruction is vcvtneps2bf16.
  auto type = cast<VectorType>(rows[0].getType()).clone(builder.getBF16Type());
  auto rounded = [&](Value value) {
    return x86vector::CvtPackedF32ToBF16Op::create(builder, loc, type, value);
  };
  return vector::InterleaveOp::create(builder, loc, rounded(rows[0]), rounded(rows[1]));
}

Value attn::createMultiplyAddPairs(OpBuilder &builder, Location loc, Value a, Value b, Value sums) {
  // The instruction is vdpbf16ps.
  return x86vector::DotBF16Op::create(builder, loc, sums.getType(), sums, a, b);
}

/// The type of a tile of 16 rows, each of which has 64 bytes of `element`.
static amx::TileType getTile(Type element) {
  static constexpr int64_t kRows = 16, kBitsPerRow = 512;
  return amx::TileType::get({kRows, kBitsPerRow / element.getIntOrFloatBitWidth()}, element);
}

Value attn::createZeroTile(OpBuilder &builder, Location loc) {
  return amx::TileZeroOp::create(builder, loc, getTile(builder.getF32Type()));
}

Value attn::createLoadTile(OpBuilder &builder, Location loc, Value buffer, Value index,
                           Value stride) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  return amx::TileLoadOp::create(builder, loc, getTile(element), buffer, index, stride);
}

void attn::createStoreTile(OpBuilder &builder, Location loc, Value tile, Value buffer, Value index,
                           Value stride) {
  amx::TileStoreOp::create(builder, loc, buffer, index, tile, stride);
}

Value attn::createMultiplyAddTiles(OpBuilder &builder, Location loc, Value a, Value b, Value sums) {
  // The instruction is tdpbf16ps.
  return amx::TileMulFOp::create(builder, loc, sums.getType(), a, b, sums);
}
