//===- Intervals.cpp - bounds on the integers that a graph computes -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Test: test/frontend/mlir/indices.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/Intervals.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

static bool isIndexType(Type type) {
  return getElementTypeOrSelf(type).isInteger(32) || getElementTypeOrSelf(type).isInteger(64);
}

/// Returns `interval` if all its integers fit in the elements of `type`, and none otherwise.
static std::optional<Interval> fitIn(Type type, std::optional<Interval> interval) {
  Type element = getElementTypeOrSelf(type);
  unsigned width = element.isIndex()     ? 64
                   : element.isInteger() ? element.getIntOrFloatBitWidth()
                                         : 0;
  if (!interval || width == 0 || width > 64)
    return std::nullopt;
  if (interval->argument)
    return width >= 32 && interval->least >= -kMostOffset && interval->most <= kMostOffset
               ? interval
               : std::nullopt;
  return llvm::isIntN(width, interval->least) && llvm::isIntN(width, interval->most) ? interval
                                                                                     : std::nullopt;
}

static std::optional<Interval> plus(const Interval &a, const Interval &b) {
  Interval sum = {a.argument ? a.argument : b.argument, 0, 0};
  if ((a.argument && b.argument) || llvm::AddOverflow(a.least, b.least, sum.least) ||
      llvm::AddOverflow(a.most, b.most, sum.most))
    return std::nullopt;
  return sum;
}

static std::optional<Interval> times(const Interval &a, const Interval &b) {
  int64_t least, most;
  if (a.argument || b.argument || a.least < 0 || b.least < 0 ||
      llvm::MulOverflow(a.least, b.least, least) || llvm::MulOverflow(a.most, b.most, most))
    return std::nullopt;
  return Interval{nullptr, least, most};
}

static std::optional<Interval> minus(const Interval &a, const Interval &b) {
  Interval difference = {a.argument, 0, 0};
  if (b.argument || llvm::SubOverflow(a.least, b.most, difference.least) ||
      llvm::SubOverflow(a.most, b.least, difference.most))
    return std::nullopt;
  return difference;
}

bool attn::countsUp(scf::ForOp loop) {
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  return !loop.getUnsignedCmp() && step && *step >= 1;
}

std::optional<Interval> attn::intervalOf(Value value, int depth) {
  IntegerAttr constant;
  if (depth-- == 0)
    return std::nullopt;
  if (matchPattern(value, m_Constant(&constant))) {
    std::optional<int64_t> number = constant.getValue().trySExtValue();
    return number ? std::optional(Interval{nullptr, *number, *number}) : std::nullopt;
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (isa<func::FuncOp>(owner))
      return isIndexType(argument.getType()) ? std::optional(Interval{argument, 0, 0})
                                             : std::nullopt;
    if (auto loop = scf::getForInductionVarOwner(argument)) {
      std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound()),
                             end = getConstantIntValue(loop.getUpperBound());
      return countsUp(loop) && first && end && *first < *end
                 ? fitIn(value.getType(), Interval{nullptr, *first, *end - 1})
                 : std::nullopt;
    }
    auto op = dyn_cast<linalg::LinalgOp>(owner);
    if (!op)
      return std::nullopt;
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    std::optional<Interval> read = intervalOf(operand.get(), depth);
    bool readsAll =
        op.getMatchingIndexingMap(&operand).isProjectedPermutation(/*allowZeroInResults=*/true);
    return read && read->argument && !readsAll ? std::nullopt : read;
  }
  Operation *op = value.getDefiningOp();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) // the body must compute all elements
    return linalgOp.getNumReductionLoops() == 0 && op->getNumResults() == 1 &&
                   linalgOp.getMatchingIndexingMap(linalgOp.getDpsInitOperand(0)).isPermutation()
               ? intervalOf(linalgOp.getBlock()->getTerminator()->getOperand(0), depth)
               : std::nullopt;
  auto both = [&](auto combine) -> std::optional<Interval> {
    std::optional<Interval> a = intervalOf(op->getOperand(0), depth),
                            b = intervalOf(op->getOperand(1), depth);
    return a && b ? fitIn(value.getType(), combine(*a, *b)) : std::nullopt;
  };
  return llvm::TypeSwitch<Operation *, std::optional<Interval>>(op)
      .Case<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp, arith::IndexCastOp,
            arith::ExtSIOp>([&](Operation *op) {
        return fitIn(value.getType(), intervalOf(op->getOperand(0), depth));
      })
      .Case([&](tensor::ExtractSliceOp slice) {
        // A bound would apply to all elements of an argument, but the slice reads only some of them.
        std::optional<Interval> whole = intervalOf(slice.getSource(), depth);
        return whole && whole->argument ? std::nullopt : whole;
      })
      .Case([&](arith::AddIOp) { return both(plus); })
      .Case([&](arith::SubIOp) { return both(minus); })
      .Case([&](arith::MulIOp) { return both(times); })
      .Case([](linalg::IndexOp index) -> std::optional<Interval> {
        auto loops = cast<linalg::LinalgOp>(index->getParentOp()).getStaticLoopRanges();
        int64_t size = loops[index.getDim()];
        return ShapedType::isDynamic(size) ? std::nullopt
                                           : std::optional(Interval{nullptr, 0, size - 1});
      })
      .Default(std::nullopt);
}
