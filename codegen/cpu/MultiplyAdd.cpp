//===- MultiplyAdd.cpp - the instructions of products ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/MultiplyAdd.h"
#include "codegen/cpu/Instructions.h"
#include "codegen/cpu/Lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

/// Creates a vector.fma. Without FMA, LLVM turns this op into a multiplication and an addition.
static Value createOne(OpBuilder &builder, Location loc, Value a, Value b, Value sums) {
  return vector::FMAOp::create(builder, loc, a, b, sums);
}

/// Multiplies and adds integers. Sums wrap around on overflow, so the order in which products are added does not
/// matter.
static Value createOneOfIntegers(OpBuilder &builder, Location loc, Value a, Value b, Value sums) {
  return arith::AddIOp::create(builder, loc, sums, arith::MulIOp::create(builder, loc, a, b));
}

template <unsigned width> static Type getInteger(MLIRContext *context) {
  return IntegerType::get(context, width);
}
template <typename T> static Type getFloat(MLIRContext *context) { return T::get(context); }

static constexpr auto kPairs = CpuCapabilities::Pairs, kTiles = CpuCapabilities::Tiles | kPairs,
                      kMatrices = CpuCapabilities::Matrices | kPairs,
                      kWidening = CpuCapabilities::Widening, kFMA = CpuCapabilities::FMA,
                      kNone = CpuCapabilities::None;
static constexpr MultiplyAdd::GetType kBF16 = getFloat<BFloat16Type>, kF16 = getFloat<Float16Type>,
                                      kF32 = getFloat<Float32Type>, kF64 = getFloat<Float64Type>,
                                      kI32 = getInteger<32>;

/// For the same types, faster instructions come first. A CPU without the instructions for bf16 or f16 uses the rows of
/// f32 for products of these types.
static constexpr MultiplyAdd kMultiplyAdds[] = {
    // factor, sum, group, needs, isFused, create, createGroup, tile
    {kBF16, kF32, 2, kTiles, true, createMultiplyAddPairs, createPairs, &kAmxTile},
    {kBF16, kF32, 2, kMatrices, true, createMultiplyAddPairs, createPairs, &kNeonTile},
    {kBF16, kF32, 2, kPairs, true, createMultiplyAddPairs, createPairs, nullptr},
    {kF16, kF32, 1, kWidening, true, createMultiplyAddHalves, nullptr, nullptr},
    {kF32, kF32, 1, kFMA, true, createOne, nullptr, nullptr},
    {kF32, kF32, 1, kNone, false, createOne, nullptr, nullptr},
    {kF64, kF64, 1, kFMA, true, createOne, nullptr, nullptr},
    {kF64, kF64, 1, kNone, false, createOne, nullptr, nullptr},
    {kI32, kI32, 1, kNone, false, createOneOfIntegers, nullptr, nullptr},
};

bool MultiplyAdd::takes(Type stored) const {
  Type type = factor(stored.getContext());
  if (stored == type)
    return true;
  // A buffer of i1 has a byte for each element.
  if (isa<IntegerType>(stored) && isa<IntegerType>(type))
    return stored.getIntOrFloatBitWidth() >= 8 &&
           stored.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth();
  auto from = dyn_cast<FloatType>(stored), to = dyn_cast<FloatType>(type);
  return from && to && APFloat::isRepresentableBy(from.getFloatSemantics(), to.getFloatSemantics());
}

Value MultiplyAdd::createFactors(OpBuilder &builder, Location loc, Value value) const {
  return createConversion(builder, loc, value, factor(builder.getContext()));
}

SmallVector<const MultiplyAdd *> attn::findMultiplyAdds(CpuAttr cpu, const ProductTypes &types) {
  SmallVector<const MultiplyAdd *> found;
  for (const MultiplyAdd &row : kMultiplyAdds)
    if (row.takes(types.a) && row.takes(types.b) && row.getSumType(cpu.getContext()) == types.sum &&
        cpu.can(row.needs))
      found.push_back(&row);
  return found;
}

const MultiplyAdd *attn::findMultiplyAdd(CpuAttr cpu, const ProductTypes &types) {
  SmallVector<const MultiplyAdd *> found = findMultiplyAdds(cpu, types);
  const auto *row = llvm::find_if(found, [](const MultiplyAdd *each) { return each->group == 1; });
  return row == found.end() ? nullptr : *row;
}

bool attn::isForProducts(CpuCapabilities capabilities) {
  return bitEnumContainsAll(kTiles | kMatrices | kWidening, capabilities);
}

bool attn::isForFactors(Type stored, CpuCapabilities capabilities) {
  return llvm::any_of(kMultiplyAdds, [&](const MultiplyAdd &row) {
    return bitEnumContainsAny(row.needs, capabilities) && row.takes(stored);
  });
}

int64_t attn::getBytes(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}
