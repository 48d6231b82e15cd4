//===- NonFinite.cpp - find infinities and NaN in factors ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The code works on the bits of an element, with the sign bit cleared. If the element is an infinity or NaN, all bits
// of its exponent are 1, so adding 1 to the exponent sets the sign bit. A NaN has a significand other than 0, and an
// infinity does not, so adding 0x7fffff (f32) to the bits sets the sign bit for a NaN only. No sum carries into the
// next element.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/NonFinite.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace attn;

NonFinite::NonFinite(FloatType element) : element(element) {
  unsigned width = element.getWidth(), mantissa = element.getFPMantissaWidth() - 1;
  signBit = width - 1;
  uint32_t sign = uint32_t(1) << signBit, leastExponent = uint32_t(1) << mantissa,
           infinity = sign - leastExponent;
  auto everywhere = [&](uint32_t bits) { return width == 16 ? bits | bits << 16 : bits; };
  signs = everywhere(sign);
  exponents = everywhere(infinity);
  leastExponents = everywhere(leastExponent);
  aboveInfinity = everywhere(leastExponent - 1);
  one = uint32_t(APFloat(element.getFloatSemantics(), 1).bitcastToAPInt().getZExtValue());
  all = width == 16 ? 0xffff : 0xffffffff;
}

static Value constant(ThreadBuilder &b, uint32_t bits) { return b.i32(int32_t(bits)); }

static Value bitAnd(ThreadBuilder &b, Value x, Value y) { return arith::AndIOp::create(b, x, y); }

/// The bits of a register as an i32. A register of f16 has a vector type, and any other register is an i32.
static Value toBits(ThreadBuilder &b, Value value) {
  return value.getType().isInteger()
             ? value
             : LLVM::BitcastOp::create(b, b.getI32Type(), value).getResult();
}

Value NonFinite::test(ThreadBuilder &b, Value value) const {
  Value exponent = bitAnd(b, toBits(b, value), constant(b, exponents));
  return arith::AddIOp::create(b, exponent, constant(b, leastExponents));
}

Value NonFinite::any(ThreadBuilder &b, Value tests) const {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bitAnd(b, tests, constant(b, signs)),
                               b.i32(0));
}

NonFinite::Parts NonFinite::split(ThreadBuilder &b, const Factor &factor) const {
  Parts parts;
  for (Value value : factor) {
    Value bits = toBits(b, value);
    auto flip = [&](Value x) -> Value { return arith::XOrIOp::create(b, x, constant(b, ~0u)); };
    // For each element: `by` where its flag is set, else 0.
    auto select = [&](Value flags, uint32_t by) -> Value {
      flags = bitAnd(b, flags, constant(b, signs));
      Value bit = arith::ShRUIOp::create(b, flags, b.i32(signBit));
      return arith::MulIOp::create(b, bit, constant(b, by));
    };
    auto add = [&](Factor &part, Value x) {
      part.push_back(x.getType() == value.getType()
                         ? x
                         : LLVM::BitcastOp::create(b, value.getType(), x).getResult());
    };
    Value isSpecial = test(b, value);
    Value isNaN =
        arith::AddIOp::create(b, bitAnd(b, bits, constant(b, ~signs)), constant(b, aboveInfinity));
    Value isPositive = arith::OrIOp::create(b, flip(bits), isNaN),
          isNegative = arith::OrIOp::create(b, bits, isNaN);
    add(parts.finite, bitAnd(b, bits, flip(select(isSpecial, all))));
    add(parts.positive, select(bitAnd(b, isSpecial, isPositive), one));
    add(parts.negative, select(bitAnd(b, isSpecial, isNegative), one));
  }
  return parts;
}
