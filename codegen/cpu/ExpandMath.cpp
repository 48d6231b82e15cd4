//===- ExpandMath.cpp - functions of a math library as arithmetic ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %y = math.rsqrt %x : vector<16xf32>
// becomes
//   %s = math.sqrt %x : vector<16xf32>
//   %y = arith.divf %one, %s : vector<16xf32>
//
// and exp, exp2 and tanh become polynomials, on scalars and vectors of f32. Kernels have no
// undefined symbols, so whatever LLVM would turn into a call on the smallest machine is refused;
// math.absf, math.copysign and math.sqrt are instructions everywhere. Test:
// test/codegen/cpu/expand-math.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Exp2.h"
#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

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

/// Near 0 the odd polynomial x + x^3 P(x^2), which keeps the relative error; elsewhere 1 - 2 /
/// (e^2|x| + 1).
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

namespace {
struct ExpandMath : attn::impl::ExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      bool isCall = isa_and_nonnull<math::MathDialect>(op->getDialect()) || isa<arith::RemFOp>(op);
      if (isCall && !isa<math::AbsFOp, math::AbsIOp, math::CopySignOp, math::SqrtOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      auto expand = llvm::TypeSwitch<Operation *, Value (*)(OpBuilder &, Location, Value)>(op)
                        .Case([](math::ExpOp) { return createFullExp; })
                        .Case([](math::Exp2Op) { return createFullExp2; })
                        .Case([](math::TanhOp) { return createTanh; })
                        .Case([](math::RsqrtOp) { return createReciprocalSqrt; })
                        .Default([](Operation *) { return nullptr; });
      if (!expand) {
        op->emitOpError()
            << "expected a function with an expansion (exp, exp2, tanh, rsqrt), got a library call";
        return signalPassFailure();
      }
      Type type = op->getResult(0).getType();
      if (isa<ShapedType>(type) ? !isa<VectorType>(type) || !getElementTypeOrSelf(type).isF32()
                                : !type.isF32()) {
        op->emitOpError() << "expected f32 or a vector of it, got " << type;
        return signalPassFailure();
      }
      OpBuilder builder(op);
      op->getResult(0).replaceAllUsesWith(expand(builder, op->getLoc(), op->getOperand(0)));
      op->erase();
    }
  }
};
} // namespace
