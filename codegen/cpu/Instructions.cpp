//===- Instructions.cpp - what the vector dialect does not have ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Instructions.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace attn;

/// Operands of the AVX-512 intrinsics: the current rounding direction, a mask of all lanes, and rounding down.
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
  // the value of lanes that the mask switches off, the mask, the rounding. The names of the op's operands suggest
  // another order.
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

/// Calls an intrinsic of LLVM that returns a value of `type`.
static Value createIntrinsic(OpBuilder &builder, Location loc, StringRef name, Type type,
                             ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(builder, loc, type, builder.getStringAttr(name), operands)
      .getResult(0);
}

/// Whether vectors of sums have the length of NEON's registers. All levels with AVX-512 have longer vectors.
static bool isNeon(Type sums) { return cast<VectorType>(sums).getNumElements() == 4; }

Value attn::createPairs(OpBuilder &builder, Location loc, ValueRange rows) {
  auto type = cast<VectorType>(rows[0].getType()).clone(builder.getBF16Type());
  // The instructions are bfcvtn and vcvtneps2bf16.
  auto rounded = [&](Value value) -> Value {
    if (isNeon(value.getType()))
      return LLVM::FPTruncOp::create(builder, loc, type, value);
    return x86vector::CvtPackedF32ToBF16Op::create(builder, loc, type, value);
  };
  return vector::InterleaveOp::create(builder, loc, rounded(rows[0]), rounded(rows[1]));
}

Value attn::createMultiplyAddPairs(OpBuilder &builder, Location loc, Value a, Value b, Value sums) {
  // The instructions are bfdot and vdpbf16ps.
  if (isNeon(sums.getType()))
    return createIntrinsic(builder, loc, "llvm.aarch64.neon.bfdot.v4f32.v8bf16", sums.getType(),
                           {sums, a, b});
  return x86vector::DotBF16Op::create(builder, loc, sums.getType(), sums, a, b);
}

Value attn::createMultiplyAddHalves(OpBuilder &builder, Location loc, Value a, Value b,
                                    Value sums) {
  // The instruction is fmlal, which reads the lower halves of the registers of the factors.
  auto inLowerHalf = [&](Value factors) -> Value {
    static constexpr int64_t kMask[] = {0, 1, 2, 3, -1, -1, -1, -1};
    return vector::ShuffleOp::create(builder, loc, factors, factors, kMask);
  };
  return createIntrinsic(builder, loc, "llvm.aarch64.neon.fmlal.v4f32.v8f16", sums.getType(),
                         {sums, inLowerHalf(a), inLowerHalf(b)});
}

//===----------------------------------------------------------------------===//
// The tiles of AMX
//===----------------------------------------------------------------------===//

/// The type of a tile of 16 rows, each of which has 64 bytes of `element`.
static amx::TileType getTile(Type element) {
  static constexpr int64_t kRows = 16, kBitsPerRow = 512;
  return amx::TileType::get({kRows, kBitsPerRow / element.getIntOrFloatBitWidth()}, element);
}

static Value createZeroTile(OpBuilder &builder, Location loc) {
  return amx::TileZeroOp::create(builder, loc, getTile(builder.getF32Type()));
}

static Value createLoadTile(OpBuilder &builder, Location loc, Value buffer, Value index,
                            Value stride) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  return amx::TileLoadOp::create(builder, loc, getTile(element), buffer, index, stride);
}

static void createStoreTile(OpBuilder &builder, Location loc, Value tile, Value buffer, Value index,
                            Value stride) {
  amx::TileStoreOp::create(builder, loc, buffer, index, tile, stride);
}

static Value createMultiplyAddTiles(OpBuilder &builder, Location loc, Value a, Value b,
                                    Value sums) {
  // The instruction is tdpbf16ps.
  return amx::TileMulFOp::create(builder, loc, sums.getType(), a, b, sums);
}

// A multiplication takes 16 cycles, and a load or a store takes 8, according to Intel's optimisation manual for
// Sapphire Rapids. These costs have not been measured.
constexpr TileMultiplyAdd attn::kAmxTile = {
    /*rows=*/16,         /*columns=*/16,  /*steps=*/16,    /*registers=*/8,
    /*multiplyCost=*/16, /*loadCost=*/8,  createZeroTile,  createLoadTile,
    createLoadTile,      createLoadTile,  createStoreTile, createMultiplyAddTiles};

//===----------------------------------------------------------------------===//
// The tiles of NEON
//===----------------------------------------------------------------------===//
//
// The instruction bfmmla multiplies 2 x 4 by 4 x 2 elements. A register holds the 2 rows of the first factor, the 2
// columns of the second factor, or 2 x 2 sums, row by row. A tile of sums is a vector of two such registers: one has
// the sums of columns 0 and 1, and the other has those of columns 2 and 3. The second factor is likewise a vector of
// two registers.

/// `value` as a vector of integers, each of which has `bits` bits.
static Value asIntegers(OpBuilder &builder, Location loc, Value value, unsigned bits) {
  auto type = cast<VectorType>(value.getType());
  int64_t size = type.getNumElements() * type.getElementTypeBitWidth() / bits;
  return vector::BitCastOp::create(builder, loc, VectorType::get(size, builder.getIntegerType(bits)),
                                   value);
}

/// Loads two rows of `size` elements and interleaves them, `bits` bits of each at a time.
template <int64_t size, unsigned bits>
static Value createLoadTwoRows(OpBuilder &builder, Location loc, Value buffer, Value index,
                               Value stride) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  auto load = [&](Value at) {
    Value row =
        vector::LoadOp::create(builder, loc, VectorType::get(size, element), buffer, at);
    return asIntegers(builder, loc, row, bits);
  };
  Value next = arith::AddIOp::create(builder, loc, index, stride);
  Value rows = vector::InterleaveOp::create(builder, loc, load(index), load(next));
  return vector::BitCastOp::create(builder, loc, VectorType::get(2 * size, element), rows);
}

static Value createZeroSums(OpBuilder &builder, Location loc) {
  return constant(builder, loc,
                  builder.getZeroAttr(VectorType::get(8, builder.getF32Type())));
}

static void createStoreSums(OpBuilder &builder, Location loc, Value sums, Value buffer, Value index,
                            Value stride) {
  auto rows = vector::DeinterleaveOp::create(builder, loc, asIntegers(builder, loc, sums, 64));
  Value next = arith::AddIOp::create(builder, loc, index, stride);
  auto type = VectorType::get(4, builder.getF32Type());
  for (auto [row, at] : {std::pair(rows.getRes1(), index), std::pair(rows.getRes2(), next)})
    vector::StoreOp::create(builder, loc, vector::BitCastOp::create(builder, loc, type, row), buffer,
                            at);
}

static Value createMultiplyAddMatrices(OpBuilder &builder, Location loc, Value a, Value b,
                                       Value sums) {
  auto half = [&](Value value, int64_t size, int64_t i) {
    return vector::ExtractStridedSliceOp::create(builder, loc, value, /*offsets=*/i * size,
                                                 /*sizes=*/size, /*strides=*/1);
  };
  Value halves[2];
  for (int64_t i : {0, 1}) {
    Value sumsOfHalf = half(sums, 4, i);
    halves[i] = createIntrinsic(builder, loc, "llvm.aarch64.neon.bfmmla", sumsOfHalf.getType(),
                                {sumsOfHalf, a, half(b, 8, i)});
  }
  static constexpr int64_t kAll[] = {0, 1, 2, 3, 4, 5, 6, 7};
  return vector::ShuffleOp::create(builder, loc, halves[0], halves[1], kAll);
}

// A multiplication is two instructions. In a block of 3 x 3 tiles, the shuffles of the factors take half as long as the
// multiplications on cores that multiply and shuffle in the same units, such as Neoverse V1, so `multiplyCost` is 3.
constexpr TileMultiplyAdd attn::kNeonTile = {/*rows=*/2,
                                             /*columns=*/4,
                                             /*steps=*/2,
                                             /*registers=*/15,
                                             /*multiplyCost=*/3,
                                             /*loadCost=*/2,
                                             createZeroSums,
                                             createLoadTwoRows<4, 64>,
                                             createLoadTwoRows<8, 32>,
                                             createLoadTwoRows<4, 64>,
                                             createStoreSums,
                                             createMultiplyAddMatrices};
