//===- FoldGathers.cpp - gathers at coordinates become operands ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %i = linalg.generic outs(%e) { linalg.index 0 }                                  0, 1, 2, ...
//   %r = linalg.generic ins(%i) { ^bb0(%a): tensor.extract %mask[clamp(%a), ...] }
// becomes
//   %r = linalg.generic ins(%i, %mask) { ^bb0(%a, %m): %m }
//
// Decoders index their masks with tensors of the positions 0, 1, 2, ... If every index of an access is proved to be the
// coordinate of a loop that has the size of the indexed dimension, the indexed tensor becomes an ordinary operand. Ops
// that clamp the index, or that count a negative index from the end, then change nothing.
// Test: test/passes/raise/fold-gathers.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/raise/Element.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

namespace attn {
#define GEN_PASS_DEF_FOLDGATHERS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

using Bounds = ValueBoundsConstraintSet;

namespace {
/// An index of an access to dimension `dim` of `source` in the body of `op`.
struct Index {
  linalg::GenericOp op;
  TypedValue<RankedTensorType> source;
  int64_t dim;

  /// The loop whose coordinate `value` is, if that loop has the size of the dimension.
  std::optional<unsigned> loopOf(Value value);

private:
  bool isLast(Value value);
  Bounds::Variable size() { return Bounds::Variable(source, dim); }
};
} // namespace

/// Whether `value` is at least the last position of the dimension.
bool Index::isLast(Value value) {
  MLIRContext *context = value.getContext();
  AffineMap minusOne = AffineMap::get(1, 0, getAffineDimExpr(0, context) - 1);
  return Bounds::compare(Bounds::Variable(value), Bounds::GE,
                         Bounds::Variable(minusOne, ArrayRef<Bounds::Variable>{size()}));
}

/// Whether `op` is a cast that keeps a position: positions fit in 32 bits.
static bool keepsPosition(Operation *op) {
  return isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(op) &&
         (op->getResult(0).getType().isIndex() ||
          op->getResult(0).getType().getIntOrFloatBitWidth() >= 32);
}

std::optional<unsigned> Index::loopOf(Value value) {
  auto loopOfSize = [&](AffineExpr expr) -> std::optional<unsigned> {
    auto loop = dyn_cast_or_null<AffineDimExpr>(expr);
    if (!loop)
      return std::nullopt;
    AffineMap outMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    int64_t result = *outMap.getResultPosition(loop);
    FailureOr<bool> isEqual =
        Bounds::areEqual(Bounds::Variable(op.getDpsInits()[0], result), size());
    return succeeded(isEqual) && *isEqual ? std::optional(loop.getPosition()) : std::nullopt;
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != op.getBody())
      return std::nullopt;
    OpOperand *operand = op.getOpOperandsMatchingBBargs()[argument.getArgNumber()];
    Element element = Element::at({operand->get(), op.getMatchingIndexingMap(operand)});
    while (keepsPosition(element.getOp()))
      element = element.getOperand(0);
    return loopOfSize(element.getCoordinate());
  }
  Operation *scalar = value.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(scalar))
    return loopOfSize(getAffineDimExpr(index.getDim(), op.getContext()));
  if (keepsPosition(scalar))
    return loopOf(scalar->getOperand(0));
  // Ops that keep an index in range do not change a coordinate, which is in range.
  if (isa<arith::MaxSIOp>(scalar) && matchPattern(scalar->getOperand(1), m_Zero()))
    return loopOf(scalar->getOperand(0));
  if (isa<arith::MinSIOp>(scalar) && isLast(scalar->getOperand(1)))
    return loopOf(scalar->getOperand(0));
  if (auto select = dyn_cast<arith::SelectOp>(scalar))
    if (auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
        compare && compare.getPredicate() == arith::CmpIPredicate::slt &&
        compare.getLhs() == select.getFalseValue() && matchPattern(compare.getRhs(), m_Zero()))
      return loopOf(select.getFalseValue());
  return std::nullopt;
}

/// The map from the loops of `op` to the element that `extract` reads, if every index is a loop coordinate.
static std::optional<AffineMap> matchRead(linalg::GenericOp op, tensor::ExtractOp extract) {
  SmallVector<AffineExpr> exprs;
  for (auto [dim, value] : llvm::enumerate(extract.getIndices())) {
    std::optional<unsigned> loop =
        Index{op, extract.getTensor(), static_cast<int64_t>(dim)}.loopOf(value);
    // The only index in a dimension of size 1 is 0.
    bool isUnit = extract.getTensor().getType().getDimSize(dim) == 1;
    if (!loop && !isUnit)
      return std::nullopt;
    exprs.push_back(loop ? getAffineDimExpr(*loop, op.getContext())
                         : getAffineConstantExpr(0, op.getContext()));
  }
  return AffineMap::get(op.getNumLoops(), 0, exprs, op.getContext());
}

/// Makes the tensor of `extract` an operand of `op` that is read at `map`.
static void foldGather(linalg::GenericOp op, tensor::ExtractOp extract, AffineMap map,
                       RewriterBase &rewriter) {
  unsigned position = op.getNumDpsInputs();
  Value element = op.getBody()->insertArgument(position, extract.getType(), extract.getLoc());
  rewriter.replaceOp(extract, element);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.insert(maps.begin() + position, map);
  op.getInputsMutable().append(extract.getTensor());
  op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
}

namespace {
struct FoldGathers : attn::impl::FoldGathersBase<FoldGathers> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](linalg::GenericOp op) {
      if (!op.hasPureTensorSemantics() || op.getNumParallelLoops() != op.getNumLoops() ||
          !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isPermutation())
        return;
      for (auto extract : llvm::make_early_inc_range(op.getBody()->getOps<tensor::ExtractOp>()))
        if (std::optional<AffineMap> map = matchRead(op, extract))
          foldGather(op, extract, *map, rewriter);
    });
  }
};
} // namespace
