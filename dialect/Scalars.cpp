//===- Scalars.cpp - what scalar ops compute -------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Scalars.h"
#include "support/Loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace attn;
using llvm::APFloat;
using llvm::APInt;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static unsigned widthOf(Value value) {
  Type type = getElementTypeOrSelf(value.getType());
  return type.isIndex() ? IndexType::kInternalStorageBitWidth : type.getIntOrFloatBitWidth();
}

static double toDouble(const APInt &value) {
  return value.roundToDouble(/*isSigned=*/value.getBitWidth() > 1);
}

double attn::toDouble(Attribute number) {
  if (auto value = dyn_cast<FloatAttr>(number))
    return value.getValue().convertToDouble();
  return ::toDouble(cast<IntegerAttr>(number).getValue());
}

/// The bits of an integer `value`. A double beyond the range of int64_t is first clamped to this range.
static APInt toInteger(double value, unsigned width) {
  constexpr double kLimit = 9223372036854775808.0;
  int64_t integer = value >= kLimit    ? std::numeric_limits<int64_t>::max()
                    : value <= -kLimit ? std::numeric_limits<int64_t>::min()
                                       : static_cast<int64_t>(value);
  return APInt(width, integer, /*isSigned=*/true, /*implicitTrunc=*/true);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

template <typename Compute> static ScalarFunction unary(Compute compute) {
  return [=](ArrayRef<double> x) -> double { return compute(x[0]); };
}

template <typename Compute> static ScalarFunction binary(Compute compute) {
  return [=](ArrayRef<double> x) -> double { return compute(x[0], x[1]); };
}

/// Computes on integers of the operands' width; sums and products wrap around.
template <typename Compute> static ScalarFunction integers(Operation *op, Compute compute) {
  unsigned width = widthOf(op->getOperand(0));
  return binary([=](double a, double b) {
    return ::toDouble(compute(toInteger(a, width), toInteger(b, width)));
  });
}

/// Converts an integer to another width.
static ScalarFunction resized(Operation *op, bool isSigned) {
  unsigned from = widthOf(op->getOperand(0)), to = widthOf(op->getResult(0));
  return unary([=](double x) {
    APInt value = toInteger(x, from);
    return ::toDouble(isSigned ? value.sextOrTrunc(to) : value.zextOrTrunc(to));
  });
}

static ScalarFunction integerToFloat(Operation *op, bool isSigned) {
  unsigned width = widthOf(op->getOperand(0));
  return unary([=](double x) { return toInteger(x, width).roundToDouble(isSigned); });
}

/// A shift by the width or more is undefined in MLIR; here it gives 0.
template <typename Compute> static ScalarFunction shifted(Operation *op, Compute compute) {
  unsigned width = widthOf(op->getOperand(0));
  return integers(op, [=](const APInt &a, const APInt &amount) {
    return amount.ult(width) ? compute(a, amount) : APInt(width, 0);
  });
}

static ScalarFunction floatToInteger(Operation *op) {
  unsigned width = widthOf(op->getResult(0));
  return unary([=](double x) { return std::isnan(x) ? 0 : ::toDouble(toInteger(x, width)); });
}

static double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
}

int64_t attn::evaluate(AffineExpr expr, ArrayRef<int64_t> dims, ArrayRef<int64_t> symbols) {
  auto lhs = [&] { return evaluate(cast<AffineBinaryOpExpr>(expr).getLHS(), dims, symbols); };
  auto rhs = [&] { return evaluate(cast<AffineBinaryOpExpr>(expr).getRHS(), dims, symbols); };
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
    return cast<AffineConstantExpr>(expr).getValue();
  case AffineExprKind::DimId:
    return dims[*findLoop(expr)];
  case AffineExprKind::SymbolId:
    return symbols[cast<AffineSymbolExpr>(expr).getPosition()];
  case AffineExprKind::Add:
    return lhs() + rhs();
  case AffineExprKind::Mul:
    return lhs() * rhs();
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs(), rhs());
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(lhs(), rhs());
  case AffineExprKind::Mod:
    return llvm::mod(lhs(), rhs());
  }
  llvm_unreachable("expected a kind of affine expression");
}

/// The result that `choose` picks or computes from the results of an affine op's map.
template <typename OpTy, typename Choose>
static ScalarFunction resultOfMap(OpTy op, Choose choose) {
  return [map = op.getMap(), choose](ArrayRef<double> x) -> double {
    SmallVector<int64_t> operands(x.begin(), x.end());
    auto dims = ArrayRef(operands).take_front(map.getNumDims());
    auto symbols = ArrayRef(operands).drop_front(map.getNumDims());
    return choose(llvm::map_to_vector(
        map.getResults(), [&](AffineExpr expr) { return evaluate(expr, dims, symbols); }));
  };
}

ScalarFunction attn::getScalarFunction(Operation *op) {
  return llvm::TypeSwitch<Operation *, ScalarFunction>(op)
      .Case([](arith::ConstantOp op) -> ScalarFunction {
        if (!isa<FloatAttr, IntegerAttr>(op.getValue()))
          return nullptr;
        return [value = toDouble(op.getValue())](ArrayRef<double>) { return value; };
      })
      .Case([](arith::SelectOp) -> ScalarFunction {
        return [](ArrayRef<double> x) { return x[0] ? x[1] : x[2]; };
      })
      // Floats.
      .Case([](arith::AddFOp) { return binary([](double a, double b) { return a + b; }); })
      .Case([](arith::SubFOp) { return binary([](double a, double b) { return a - b; }); })
      .Case([](arith::MulFOp) { return binary([](double a, double b) { return a * b; }); })
      .Case([](arith::DivFOp) { return binary([](double a, double b) { return a / b; }); })
      .Case([](arith::NegFOp) { return unary([](double x) { return -x; }); })
      .Case([](arith::MaximumFOp) { return binary(maximum); })
      .Case([](arith::MinimumFOp) {
        return binary([](double a, double b) { return -maximum(-a, -b); });
      })
      .Case([](arith::MaxNumFOp) { return binary([](double a, double b) { return fmax(a, b); }); })
      .Case([](arith::MinNumFOp) { return binary([](double a, double b) { return fmin(a, b); }); })
      .Case([](arith::CmpFOp op) {
        return binary([predicate = op.getPredicate()](double a, double b) {
          return arith::applyCmpPredicate(predicate, APFloat(a), APFloat(b));
        });
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([](auto) { return unary([](double x) { return x; }); })
      .Case([](math::AbsFOp) { return unary([](double x) { return std::abs(x); }); })
      .Case([](math::ExpOp) { return unary([](double x) { return std::exp(x); }); })
      .Case([](math::Exp2Op) { return unary([](double x) { return std::exp2(x); }); })
      .Case([](math::SqrtOp) { return unary([](double x) { return std::sqrt(x); }); })
      .Case([](math::RsqrtOp) { return unary([](double x) { return 1 / std::sqrt(x); }); })
      .Case([](math::TanhOp) { return unary([](double x) { return std::tanh(x); }); })
      .Case([](math::SinOp) { return unary([](double x) { return std::sin(x); }); })
      .Case([](math::CosOp) { return unary([](double x) { return std::cos(x); }); })
      .Case([](math::ErfOp) { return unary([](double x) { return std::erf(x); }); })
      .Case([](math::LogOp) { return unary([](double x) { return std::log(x); }); })
      .Case([](math::Log2Op) { return unary([](double x) { return std::log2(x); }); })
      .Case([](math::Log1pOp) { return unary([](double x) { return std::log1p(x); }); })
      .Case([](math::ExpM1Op) { return unary([](double x) { return std::expm1(x); }); })
      .Case([](math::PowFOp) { return binary([](double a, double b) { return std::pow(a, b); }); })
      .Case([](math::FloorOp) { return unary([](double x) { return std::floor(x); }); })
      .Case([](math::CeilOp) { return unary([](double x) { return std::ceil(x); }); })
      .Case([](math::TruncOp) { return unary([](double x) { return std::trunc(x); }); })
      .Case([](math::RoundEvenOp) { return unary([](double x) { return std::nearbyint(x); }); })
      .Case([](math::CopySignOp) {
        return binary([](double a, double b) { return std::copysign(a, b); });
      })
      .Case(
          [](arith::RemFOp) { return binary([](double a, double b) { return std::fmod(a, b); }); })
      // Integers.
      .Case([](arith::AddIOp op) { return integers(op, [](APInt a, APInt b) { return a + b; }); })
      .Case([](arith::SubIOp op) { return integers(op, [](APInt a, APInt b) { return a - b; }); })
      .Case([](arith::MulIOp op) { return integers(op, [](APInt a, APInt b) { return a * b; }); })
      // A division by 0 is undefined; here it gives 0.
      .Case([](arith::DivUIOp op) {
        return integers(op, [](APInt a, APInt b) { return b.isZero() ? b : a.udiv(b); });
      })
      .Case([](arith::RemUIOp op) {
        return integers(op, [](APInt a, APInt b) { return b.isZero() ? b : a.urem(b); });
      })
      .Case([](arith::DivSIOp op) {
        return integers(op, [](APInt a, APInt b) { return b.isZero() ? b : a.sdiv(b); });
      })
      .Case([](arith::RemSIOp op) {
        return integers(op, [](APInt a, APInt b) { return b.isZero() ? b : a.srem(b); });
      })
      .Case([](math::AbsIOp op) {
        unsigned width = widthOf(op->getOperand(0));
        return unary([=](double x) { return ::toDouble(toInteger(x, width).abs()); });
      })
      .Case([](arith::MinSIOp op) { return integers(op, llvm::APIntOps::smin); })
      .Case([](arith::MaxSIOp op) { return integers(op, llvm::APIntOps::smax); })
      .Case([](arith::AndIOp op) { return integers(op, [](APInt a, APInt b) { return a & b; }); })
      .Case([](arith::OrIOp op) { return integers(op, [](APInt a, APInt b) { return a | b; }); })
      .Case([](arith::XOrIOp op) { return integers(op, [](APInt a, APInt b) { return a ^ b; }); })
      .Case([](arith::CmpIOp op) {
        return integers(op, [predicate = op.getPredicate()](const APInt &a, const APInt &b) {
          return APInt(1, arith::applyCmpPredicate(predicate, a, b));
        });
      })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([](auto op) { return resized(op, true); })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp, arith::TruncIOp>(
          [](auto op) { return resized(op, false); })
      .Case([](arith::FloorDivSIOp op) {
        return integers(op, [](const APInt &a, const APInt &b) {
          return b.isZero() ? b : llvm::APIntOps::RoundingSDiv(a, b, APInt::Rounding::DOWN);
        });
      })
      .Case([](arith::CeilDivSIOp op) {
        return integers(op, [](const APInt &a, const APInt &b) {
          return b.isZero() ? b : llvm::APIntOps::RoundingSDiv(a, b, APInt::Rounding::UP);
        });
      })
      .Case([](arith::CeilDivUIOp op) {
        return integers(op, [](const APInt &a, const APInt &b) {
          return b.isZero() ? b : llvm::APIntOps::RoundingUDiv(a, b, APInt::Rounding::UP);
        });
      })
      .Case([](arith::MinUIOp op) { return integers(op, llvm::APIntOps::umin); })
      .Case([](arith::MaxUIOp op) { return integers(op, llvm::APIntOps::umax); })
      .Case([](arith::ShLIOp op) {
        return shifted(op, [](const APInt &a, const APInt &by) { return a.shl(by); });
      })
      .Case([](arith::ShRSIOp op) {
        return shifted(op, [](const APInt &a, const APInt &by) { return a.ashr(by); });
      })
      .Case([](arith::ShRUIOp op) {
        return shifted(op, [](const APInt &a, const APInt &by) { return a.lshr(by); });
      })
      .Case([](arith::FPToSIOp op) { return floatToInteger(op); })
      .Case([](arith::SIToFPOp op) { return integerToFloat(op, true); })
      .Case([](arith::UIToFPOp op) { return integerToFloat(op, false); })
      // Indices.
      .Case([](affine::AffineApplyOp op) {
        return resultOfMap(op, [](ArrayRef<int64_t> results) { return results.front(); });
      })
      .Case([](affine::AffineMinOp op) {
        return resultOfMap(op,
                           [](ArrayRef<int64_t> results) { return *llvm::min_element(results); });
      })
      .Case([](affine::AffineMaxOp op) {
        return resultOfMap(op,
                           [](ArrayRef<int64_t> results) { return *llvm::max_element(results); });
      })
      .Default(ScalarFunction());
}

LogicalResult attn::reportUnknown(Operation *op) {
  return op->emitError() << "expected an op that the reference implements, got '" << op->getName()
                         << "'";
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

FailureOr<ScalarBlock> ScalarBlock::get(Block &block, unsigned numLoops,
                                        llvm::function_ref<double(Value)> outer,
                                        llvm::function_ref<ScalarFunction(Value)> tensor) {
  ScalarBlock result;
  unsigned numArguments = block.getNumArguments();
  result.values.resize(numArguments + numLoops);
  llvm::DenseMap<Value, unsigned> positions;
  for (BlockArgument argument : block.getArguments())
    positions[argument] = argument.getArgNumber();
  auto positionsOf = [&](ValueRange operands) {
    return llvm::map_to_vector(operands, [&](Value operand) {
      auto [it, isOuter] = positions.try_emplace(operand, result.values.size());
      if (isOuter)
        result.values.push_back(outer(operand));
      return it->second;
    });
  };
  for (Operation &op : block.without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(op)) {
      positions[index] = numArguments + index.getDim();
      continue;
    }
    auto extract = dyn_cast<tensor::ExtractOp>(op);
    bool readsTensor = extract && tensor;
    ScalarFunction compute = readsTensor ? tensor(extract.getTensor()) : getScalarFunction(&op);
    if (!compute)
      return reportUnknown(&op);
    SmallVector<unsigned> operands =
        positionsOf(readsTensor ? ValueRange(extract.getIndices()) : ValueRange(op.getOperands()));
    unsigned position = positions[op.getResult(0)] = result.values.size();
    result.values.push_back(0);
    result.steps.push_back({std::move(compute), std::move(operands), position});
  }
  result.yielded = positionsOf(block.getTerminator()->getOperands());
  return result;
}

SmallVector<double> ScalarBlock::operator()(ArrayRef<double> inputs) {
  llvm::copy(inputs, values.begin());
  SmallVector<double> operands;
  for (const Step &step : steps) {
    operands.clear();
    for (unsigned position : step.operands)
      operands.push_back(values[position]);
    values[step.result] = step.compute(operands);
  }
  return llvm::map_to_vector(yielded, [&](unsigned position) { return values[position]; });
}
