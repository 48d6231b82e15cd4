//===- ExpandMath.cpp - functions of a math library as arithmetic ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %y = math.rsqrt %x : vector<16xf32>
// becomes
//   %s = math.sqrt %x : vector<16xf32>
//   %y = arith.divf %one, %s : vector<16xf32>
//
// In the same way, exp, exp2, tanh and erf become polynomials on scalars and vectors of f32. The logarithms, sine,
// cosine, powers and expm1 are computed in f64. The expansions of floor, ceil, trunc, roundeven and rsqrt work for f64
// too. math.fma becomes vector.fma or, on scalars, a product and a sum, unless the option keep-fma is set. math.absf,
// math.absi, math.copysign and math.sqrt stay, because they are instructions on every level. Any other op of the math
// dialect is an error, and so is arith.remf: LLVM might call a library, but kernels must not have undefined symbols.
// Test: test/codegen/cpu/expand-math.mlir, test/run/functions.test
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/DoubleMath.h"
#include "codegen/cpu/Exp2.h"
#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_EXPANDMATH
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

static Value createReciprocalSqrt(OpBuilder &builder, Location loc, Value x) {
  Value one = floatConstant(builder, loc, x.getType(), 1);
  return arith::DivFOp::create(builder, loc, one, math::SqrtOp::create(builder, loc, x));
}

/// Near 0, the result is the odd polynomial x + x^3 P(x^2), which keeps the relative error small.
/// Elsewhere, it is 1 - 2 / (e^(2|x|) + 1), with the sign of x.
static Value createTanh(OpBuilder &builder, Location loc, Value x) {
  static constexpr double kNear = 0.625;
  static constexpr double kOdd[] = {-5.704984535e-03, 2.063908428e-02, -5.373971537e-02,
                                    1.333144158e-01, -3.333328068e-01};
  auto constant = [&](double value) { return floatConstant(builder, loc, x.getType(), value); };
  auto mul = [&](Value a, Value b) -> Value { return arith::MulFOp::create(builder, loc, a, b); };
  Value magnitude = math::AbsFOp::create(builder, loc, x);

  Value power =
      createFullExp(builder, loc, arith::AddFOp::create(builder, loc, magnitude, magnitude));
  Value one = constant(1);
  Value quotient = arith::DivFOp::create(builder, loc, constant(2),
                                         arith::AddFOp::create(builder, loc, power, one));
  Value far = arith::SubFOp::create(builder, loc, one, quotient);

  Value square = mul(x, x), p = constant(kOdd[0]);
  for (double coefficient : ArrayRef(kOdd).drop_front())
    p = createMultiplyAdd(builder, loc, p, square, constant(coefficient));
  Value near = createMultiplyAdd(builder, loc, mul(p, square), x, x);

  Value isNear =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, magnitude, constant(kNear));
  Value result = arith::SelectOp::create(builder, loc, isNear, near, far);
  return math::CopySignOp::create(builder, loc, result, x);
}

/// The nearest integer, ties to even. The sum of |x| and 2^23 (2^52 in f64) has no bits for a fraction. Greater numbers
/// are integers.
static Value createRoundEven(OpBuilder &builder, Location loc, Value x) {
  Value magnitude = math::AbsFOp::create(builder, loc, x);
  auto type = cast<FloatType>(getElementTypeOrSelf(x.getType()));
  Value large =
      floatConstant(builder, loc, x.getType(), std::ldexp(1, int(type.getFPMantissaWidth()) - 1));
  Value sum = arith::AddFOp::create(builder, loc, magnitude, large);
  Value rounded = arith::SubFOp::create(builder, loc, sum, large);
  Value isSmall = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, magnitude, large);
  Value result = arith::SelectOp::create(builder, loc, isSmall, rounded, magnitude);
  return math::CopySignOp::create(builder, loc, result, x);
}

/// Returns `rounded` minus `step` where the comparison `beyond` of `rounded` with x is true, and `rounded` elsewhere.
static Value createCorrected(OpBuilder &builder, Location loc, Value x, Value rounded,
                             arith::CmpFPredicate beyond, double step) {
  Value isBeyond = arith::CmpFOp::create(builder, loc, beyond, rounded, x);
  Value corrected =
      arith::SubFOp::create(builder, loc, rounded, floatConstant(builder, loc, x.getType(), step));
  Value result = arith::SelectOp::create(builder, loc, isBeyond, corrected, rounded);
  // A result of 0 has the sign of x: the floor of 0.5 is 0, and the floor of -0 is -0.
  return math::CopySignOp::create(builder, loc, result, x);
}

static Value createFloor(OpBuilder &builder, Location loc, Value x) {
  return createCorrected(builder, loc, x, createRoundEven(builder, loc, x),
                         arith::CmpFPredicate::OGT, 1);
}

static Value createCeil(OpBuilder &builder, Location loc, Value x) {
  return createCorrected(builder, loc, x, createRoundEven(builder, loc, x),
                         arith::CmpFPredicate::OLT, -1);
}

/// Rounds towards 0.
static Value createTrunc(OpBuilder &builder, Location loc, Value x) {
  Value floor = createFloor(builder, loc, math::AbsFOp::create(builder, loc, x));
  return math::CopySignOp::create(builder, loc, floor, x);
}

/// Replaces erf by MLIR's polynomial and, unless `keepFma` is set, replaces all math.fma ops.
static LogicalResult approximate(Operation *root, bool keepFma) {
  RewritePatternSet patterns(root->getContext());
  populatePolynomialApproximateErfPattern(patterns);
  if (failed(applyPatternsGreedily(root, std::move(patterns))))
    return failure();
  if (keepFma)
    return success();
  root->walk([](math::FmaOp op) {
    OpBuilder builder(op);
    op.replaceAllUsesWith(createMultiplyAdd(builder, op.getLoc(), op.getA(), op.getB(), op.getC()));
    op.erase();
  });
  return success();
}

using Expansion = std::function<Value(OpBuilder &, Location, ValueRange)>;

static Expansion unary(Value (*function)(OpBuilder &, Location, Value)) {
  return [=](OpBuilder &builder, Location loc, ValueRange operands) {
    return function(builder, loc, operands[0]);
  };
}

static Expansion expansionOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Expansion>(op)
      .Case([](math::ExpOp) { return unary(createFullExp); })
      .Case([](math::Exp2Op) { return unary(createFullExp2); })
      .Case([](math::TanhOp) { return unary(createTanh); })
      .Case([](math::RsqrtOp) { return unary(createReciprocalSqrt); })
      .Case([](math::LogOp) { return unary(createLog); })
      .Case([](math::Log2Op) { return unary(createLog2); })
      .Case([](math::Log1pOp) { return unary(createLog1p); })
      .Case([](math::ExpM1Op) { return unary(createExpM1); })
      .Case([](math::SinOp) { return unary(createSin); })
      .Case([](math::CosOp) { return unary(createCos); })
      .Case([](math::FloorOp) { return unary(createFloor); })
      .Case([](math::CeilOp) { return unary(createCeil); })
      .Case([](math::TruncOp) { return unary(createTrunc); })
      .Case([](math::RoundEvenOp) { return unary(createRoundEven); })
      .Case([](math::PowFOp) -> Expansion {
        return [](OpBuilder &builder, Location loc, ValueRange operands) {
          return createPow(builder, loc, operands[0], operands[1]);
        };
      })
      .Default([](Operation *) { return nullptr; });
}

/// Whether the expansion of `op` is right for every float type. The other expansions have constants for f32.
static bool isOfAnyFloat(Operation *op) {
  return isa<math::CeilOp, math::FloorOp, math::RoundEvenOp, math::RsqrtOp, math::TruncOp>(op);
}

namespace {
struct ExpandMath : attn::impl::ExpandMathBase<ExpandMath> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    if (failed(approximate(getOperation(), keepFma)))
      return signalPassFailure();
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      bool isCall = isa_and_nonnull<math::MathDialect>(op->getDialect()) || isa<arith::RemFOp>(op);
      if (isCall && !isa<math::AbsFOp, math::AbsIOp, math::CopySignOp, math::SqrtOp>(op) &&
          !(keepFma && isa<math::FmaOp>(op)))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      Expansion expand = expansionOf(op);
      if (!expand) {
        op->emitOpError() << "expected a function with an expansion, got a library call";
        return signalPassFailure();
      }
      Type type = op->getResult(0).getType();
      Type element = getElementTypeOrSelf(type);
      bool fits = element.isF32() || (element.isF64() && isOfAnyFloat(op));
      if (!fits || (isa<ShapedType>(type) && !isa<VectorType>(type))) {
        op->emitOpError() << "expected f32 or a vector of it, got " << type;
        return signalPassFailure();
      }
      OpBuilder builder(op);
      op->getResult(0).replaceAllUsesWith(expand(builder, op->getLoc(), op->getOperands()));
      op->erase();
    }
  }
};
} // namespace
