//===- IndexBounds.cpp - keep indices within their table ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Test: test/frontend/pt2/indices.test
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/IndexBounds.h"
#include "dialect/Attn.h"
#include "frontend/Intervals.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::pt2;

namespace {
/// Integers of which `first` is the least and `last` the greatest.
struct Positions {
  Size first, last;

  bool isSingle() const { return first == last; }
};
} // namespace

static std::optional<Positions> combine(const std::optional<Positions> &a,
                                        const std::optional<Positions> &b,
                                        std::optional<Size> (*function)(const Size &,
                                                                        const Size &)) {
  if (!a || !b || (!a->isSingle() && !b->isSingle()))
    return std::nullopt;
  std::optional<Size> first = function(a->first, b->first), last = function(a->last, b->last);
  return first && last ? std::optional(Positions{*first, *last}) : std::nullopt;
}

/// Returns the least and the greatest element of `value` if sums and products compute the elements from sizes, numbers
/// and the positions in one dimension. For example, torch.arange(S) has the elements 0 to S - 1. `value` is a tensor,
/// or a scalar in the body of the op that computes the elements. Follows chains of at most `depth` producers.
static std::optional<Positions> positionsOf(const TensorBuilder &b, Value value, int depth = 12) {
  if (depth-- == 0)
    return std::nullopt;
  if (value.getType().isIndex())
    if (std::optional<Size> size = b.findSize(value))
      return Positions{*size, *size};
  IntegerAttr constant;
  if (matchPattern(value, m_Constant(&constant))) {
    Size number(constant.getValue().getSExtValue());
    return Positions{number, number};
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto op = dyn_cast<linalg::LinalgOp>(argument.getOwner()->getParentOp());
    if (!op)
      return std::nullopt;
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    bool readsAll =
        op.getMatchingIndexingMap(&operand).isProjectedPermutation(/*allowZeroInResults=*/true);
    return readsAll ? positionsOf(b, operand.get(), depth) : std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.getNumReductionLoops() == 0 && op->getNumResults() == 1
               ? positionsOf(b, linalgOp.getBlock()->getTerminator()->getOperand(0), depth)
               : std::nullopt;
  auto operand = [&](unsigned i) { return positionsOf(b, op->getOperand(i), depth); };
  return llvm::TypeSwitch<Operation *, std::optional<Positions>>(op)
      .Case<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp, arith::IndexCastOp,
            arith::ExtSIOp>([&](Operation *) { return operand(0); })
      .Case([&](arith::AddIOp) { return combine(operand(0), operand(1), add); })
      .Case([&](arith::SubIOp) -> std::optional<Positions> {
        std::optional<Positions> subtrahend = operand(1);
        return subtrahend && subtrahend->isSingle() ? combine(operand(0), subtrahend, subtract)
                                                    : std::nullopt;
      })
      .Case([&](arith::MulIOp) -> std::optional<Positions> {
        std::optional<Positions> factor = operand(1);
        return factor && factor->isSingle() && factor->first.isNonNegative()
                   ? combine(operand(0), factor, multiply)
                   : std::nullopt;
      })
      .Case([&](linalg::IndexOp index) -> std::optional<Positions> {
        auto loops = cast<linalg::LinalgOp>(index->getParentOp());
        OpOperand *init = loops.getDpsInitOperand(0);
        auto empty = init->get().getDefiningOp<tensor::EmptyOp>();
        std::optional<unsigned> dim = loops.getMatchingIndexingMap(init).getResultPosition(
            getAffineDimExpr(index.getDim(), index.getContext()));
        if (!empty || !dim)
          return std::nullopt;
        std::optional<Size> size = b.findSize(empty.getMixedSizes()[*dim]);
        std::optional<Size> last = size ? subtract(*size, Size(1)) : std::nullopt;
        return last ? std::optional(Positions{Size(0), *last}) : std::nullopt;
      })
      .Default(std::nullopt);
}

LogicalResult attn::pt2::boundIndex(Call &call, const Tensor &index, const Size &size) {
  // An index tensor without elements needs no condition.
  std::optional<Positions> positions = positionsOf(call.b, index.value);
  if (positions && !llvm::is_contained(index.sizes, Size(0)))
    if (std::optional<Size> count = add(positions->last, Size(1))) {
      call.requireAtMost(*count, size);
      return failure(call.failed());
    }
  std::optional<int64_t> count = size.constant();
  std::optional<attn::Interval> interval = attn::intervalOf(index.value);
  if (!count || *count == 0 || !interval || !interval->argument || interval->least < 0)
    return success();
  if (interval->most >= *count)
    return call.error() << "expected indices below " << *count << ", got indices of at least "
                        << interval->most;
  auto function = cast<func::FuncOp>(interval->argument.getOwner()->getParentOp());
  unsigned number = interval->argument.getArgNumber();
  int64_t bound = *count - 1 - interval->most;
  auto known = function.getArgAttrOfType<IntegerAttr>(number, attn::AttnDialect::kBoundAttr);
  if (!known || known.getInt() > bound)
    function.setArgAttr(number, attn::AttnDialect::kBoundAttr, call.b.getI64IntegerAttr(bound));
  return success();
}
