//===- Divisions.cpp - divisions of integers that cannot trap --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %q = arith.divsi %a, %b : i64
// becomes
//   %isZero = arith.cmpi eq, %b, %zero : i64
//   %isLast = arith.cmpi eq, %b, %minusOne : i64
//   %isUnsafe = arith.ori %isZero, %isLast : i1
//   %safe = arith.select %isUnsafe, %one, %b : i64
//   %q = arith.divsi %a, %safe : i64
//   %negative = arith.subi %zero, %q : i64
//   %result = arith.select %isLast, %negative, %q : i64
// Test: test/frontend/mlir/divisions.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/mlir/Divisions.h"

#include "frontend/checks/ElementRanges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace attn;

static bool isSigned(Operation *op) {
  return isa<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp, arith::RemSIOp>(op);
}

static LogicalResult guard(FunctionSizes &sizes, Operation *op) {
  Value divisor = op->getOperand(1);
  Type type = divisor.getType();
  if (!type.isIntOrIndex())
    return op->emitError() << "expected a division of integers, got one of " << type;
  ElementRange range = rangeOf(sizes, divisor);
  if (!range.argument && range.least && sizes.facts.isAtMost(Size(1), *range.least) == true)
    return success();
  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, number));
  };
  auto is = [&](int64_t number) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, divisor, constant(number));
  };
  Value isUnsafe = is(0), isLast = isSigned(op) ? is(-1) : Value();
  if (isLast)
    isUnsafe = arith::OrIOp::create(b, isUnsafe, isLast);
  op->setOperand(1, arith::SelectOp::create(b, isUnsafe, constant(1), divisor));
  // A remainder by -1 is 0, as the remainder by 1.
  if (!isLast || isa<arith::RemSIOp>(op))
    return success();
  b.setInsertionPointAfter(op);
  Value quotient = op->getResult(0);
  Value negative = arith::SubIOp::create(b, constant(0), quotient);
  auto result = arith::SelectOp::create(b, isLast, negative, quotient);
  quotient.replaceUsesWithIf(result, [&](OpOperand &use) {
    return use.getOwner() != result && use.getOwner() != negative.getDefiningOp();
  });
  return success();
}

LogicalResult attn::guardDivisions(FunctionSizes &sizes) {
  SmallVector<Operation *> divisions;
  sizes.function.walk([&](Operation *op) {
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
            arith::CeilDivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
      divisions.push_back(op);
  });
  for (Operation *op : divisions)
    if (failed(guard(sizes, op)))
      return failure();
  sizes.forgetNumbers();
  return success();
}
