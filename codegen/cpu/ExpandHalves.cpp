//===- ExpandHalves.cpp - compute on f16 and bf16 in f32 -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %z = arith.addf %x, %y : f16
// becomes
//   %a = arith.extf %x : f16 to f32
//   %b = arith.extf %y : f16 to f32
//   %s = arith.addf %a, %b : f32
//   %z = arith.truncf %s : f32 to f16
//
// The pass treats bf16 in the same way. Conversions of bf16, and conversions of f16 for which the target has no
// instruction, become arithmetic on bits, because LLVM might call a library for them, and kernels must not have
// undefined symbols. Conversions from and to f64 go through f32.
// Test: test/codegen/cpu/expand-halves.mlir, test/run/halves.test
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Passes.h"
#include "dialect/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_EXPANDHALVES
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

namespace {
/// Arithmetic on the bits of floats, as i32: of a scalar or of each element of a vector.
struct Bits {
  ImplicitLocOpBuilder &b;
  Type shape;

  Type of(Type element) const {
    auto vector = dyn_cast<VectorType>(shape);
    return vector ? vector.clone(element) : element;
  }
  Value constant(uint32_t value) {
    Type type = of(b.getI32Type());
    IntegerAttr attr = b.getI32IntegerAttr(int32_t(value));
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, Attribute(attr)));
    return arith::ConstantOp::create(b, attr);
  }
  Value ofFloat(Value x) { return arith::BitcastOp::create(b, of(b.getI32Type()), x); }
  Value asFloat(Value x) { return arith::BitcastOp::create(b, of(b.getF32Type()), x); }
  template <typename Op> Value binary(Value x, Value y) { return Op::create(b, x, y); }
  template <typename Op> Value binary(Value x, uint32_t y) { return Op::create(b, x, constant(y)); }
  Value isBelow(Value x, uint32_t y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, constant(y));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
};
} // namespace

/// True for values of f16 and bf16, not for memory that holds them.
static bool isHalf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return !isa<BaseMemRefType>(type) && (element.isF16() || element.isBF16());
}

static constexpr uint32_t exponentOfF32(int exponent) { return uint32_t(exponent + 127) << 23; }

static Value extend(ImplicitLocOpBuilder &b, Value half) {
  Bits bits{b, half.getType()};
  Value all = arith::ExtUIOp::create(b, bits.of(b.getI32Type()),
                                     arith::BitcastOp::create(b, bits.of(b.getI16Type()), half));
  Value sign = bits.binary<arith::ShLIOp>(bits.binary<arith::AndIOp>(all, 0x8000), 16);
  Value magnitude = bits.binary<arith::ShLIOp>(bits.binary<arith::AndIOp>(all, 0x7fff), 13);
  // The exponent bias of f32 is greater than that of f16 by 112.
  Value normal = bits.binary<arith::AddIOp>(magnitude, 112u << 23);
  Value special = bits.binary<arith::OrIOp>(magnitude, exponentOfF32(128));
  // (2^-14 + fraction) - 2^-14 is exact and does not need a denormal f32.
  Value least = bits.constant(exponentOfF32(-14));
  Value denormal = bits.ofFloat(bits.binary<arith::SubFOp>(
      bits.asFloat(bits.binary<arith::AddIOp>(magnitude, least)), bits.asFloat(least)));
  Value finite = bits.select(bits.isBelow(magnitude, 0x0400 << 13), denormal, normal);
  Value result = bits.select(bits.isBelow(magnitude, 0x7c00 << 13), finite, special);
  return bits.asFloat(bits.binary<arith::OrIOp>(result, sign));
}

/// Rounds to the nearest, ties to even.
static Value truncate(ImplicitLocOpBuilder &b, Value x) {
  Bits bits{b, x.getType()};
  Value all = bits.ofFloat(x);
  Value magnitude = bits.binary<arith::AndIOp>(all, 0x7fffffff);
  Value sign = bits.binary<arith::ShRUIOp>(bits.binary<arith::XOrIOp>(all, magnitude), 16);
  // Values of 2^16 and more become infinity, and NaN stays NaN. For a value that rounds up to 2^16, the carry gives
  // infinity.
  Value special = bits.select(bits.isBelow(magnitude, exponentOfF32(128) + 1),
                              bits.constant(0x7c00), bits.constant(0x7e00));
  // The ulp of 0.5 in f32 is the least denormal f16, so adding 0.5 rounds to a multiple of it.
  Value half = bits.constant(exponentOfF32(-1));
  Value denormal = bits.binary<arith::SubIOp>(
      bits.ofFloat(bits.binary<arith::AddFOp>(bits.asFloat(magnitude), bits.asFloat(half))), half);
  Value isOdd = bits.binary<arith::AndIOp>(bits.binary<arith::ShRUIOp>(magnitude, 13), 1);
  Value rounded = bits.binary<arith::AddIOp>(
      bits.binary<arith::AddIOp>(magnitude, uint32_t(-112) * (1u << 23) + 0xfff), isOdd);
  Value normal = bits.binary<arith::ShRUIOp>(rounded, 13);
  Value finite = bits.select(bits.isBelow(magnitude, exponentOfF32(-14)), denormal, normal);
  Value result = bits.select(bits.isBelow(magnitude, exponentOfF32(16)), finite, special);
  Value narrow =
      arith::TruncIOp::create(b, bits.of(b.getI16Type()), bits.binary<arith::OrIOp>(result, sign));
  return arith::BitcastOp::create(b, bits.of(b.getF16Type()), narrow);
}

/// Replaces arithmetic on f16 and bf16 by arithmetic on f32 between conversions.
static LogicalResult computeInF32(func::FuncOp function) {
  MLIRContext *context = function.getContext();
  Type f16 = Float16Type::get(context), bf16 = BFloat16Type::get(context);
  Type f32 = Float32Type::get(context);
  // Convert ops of the math dialect first, because this creates arithmetic ops on f16 and bf16.
  {
    TypeConverter converter;
    llvm::SetVector<Type> supported;
    supported.insert(f32);
    supported.insert(Float64Type::get(context));
    math::populateExtendToSupportedTypesTypeConverter(converter, supported, f32);
    ConversionTarget target(*context);
    math::populateExtendToSupportedTypesConversionTarget(target, converter);
    // By default, MLIR leaves math.fma unchanged.
    target.addDynamicallyLegalOp<math::FmaOp>(
        [&](math::FmaOp op) { return converter.isLegal(op.getOperation()); });
    RewritePatternSet patterns(context);
    math::populateExtendToSupportedTypesPatterns(patterns, converter);
    if (failed(applyPartialConversion(function, target, std::move(patterns))))
      return failure();
  }
  TypeConverter converter;
  arith::populateEmulateUnsupportedFloatsConversions(converter, {f16, bf16}, f32);
  ConversionTarget target(*context);
  arith::populateEmulateUnsupportedFloatsLegality(target, converter);
  RewritePatternSet patterns(context);
  arith::populateEmulateUnsupportedFloatsPatterns(patterns, converter);
  return applyPartialConversion(function, target, std::move(patterns));
}

/// Expands `op`, a conversion from or to f16 or bf16. Conversions from and to f64 go through f32. Conversions between
/// f16 and f32 become arithmetic on bits if the target has no instruction, or if they are part of a conversion from or
/// to f64. Conversions between bf16 and f32 stay.
static void expandConversion(Operation *op, bool isInstruction) {
  Value from = op->getOperand(0);
  Type to = op->getResult(0).getType();
  if (!isHalf(from.getType()) && !isHalf(to))
    return;
  bool widens = isHalf(from.getType());
  bool isDouble = getElementTypeOrSelf(widens ? to : from.getType()).isF64();
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Type single = Bits{b, to}.of(b.getF32Type());
  if (isDouble && !widens)
    from = arith::TruncFOp::create(b, single, from);
  Value result;
  // Between f16 and f64, LLVM would merge the two conversions into one, for which x86-64 levels have no instruction.
  if (getElementTypeOrSelf(widens ? from.getType() : to).isF16() && (isDouble || !isInstruction))
    result = widens ? extend(b, from) : truncate(b, from);
  else if (isDouble)
    result = widens ? Value(arith::ExtFOp::create(b, single, from))
                    : Value(arith::TruncFOp::create(b, to, from));
  else
    return;
  if (isDouble && widens)
    result = arith::ExtFOp::create(b, to, result);
  op->replaceAllUsesWith(ValueRange(result));
  op->erase();
}

/// Replaces conversions of bf16 by arithmetic on bits, with MLIR's patterns.
static LogicalResult expandBF16(func::FuncOp function) {
  RewritePatternSet patterns(function.getContext());
  arith::populateExpandBFloat16Patterns(patterns);
  return applyPatternsGreedily(function, std::move(patterns),
                               GreedyRewriteConfig().enableFolding(false));
}

namespace {
struct ExpandHalves : attn::impl::ExpandHalvesBase<ExpandHalves> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    WalkResult found = function.walk([&](Operation *op) {
      return WalkResult(failure(llvm::any_of(op->getOperandTypes(), isHalf) ||
                                llvm::any_of(op->getResultTypes(), isHalf)));
    });
    if (!found.wasInterrupted())
      return;
    if (failed(computeInF32(function)))
      return signalPassFailure();
    CpuAttr cpu = getCpu(function);
    bool isInstruction = cpu && cpu.can(CpuCapabilities::Halves);
    function.walk([&](Operation *op) {
      if (isa<arith::ExtFOp, arith::TruncFOp>(op))
        expandConversion(op, isInstruction);
    });
    if (failed(expandBF16(function)))
      return signalPassFailure();
  }
};
} // namespace
