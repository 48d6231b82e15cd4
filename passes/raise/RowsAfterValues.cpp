//===- RowsAfterValues.cpp - factors of rows of probabilities --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %p = linalg.softmax dimension(2) ins(%s)
//   %z = linalg.generic ins(%keep, %p) (b,q), (b,q,k) -> (b,q,k) { select %keep, %p, 0 }
//   %o = linalg.contract (b,q,k), (b,k,e) -> (b,q,e) ins(%z, %v) outs(zeros)
// becomes
//   %p = linalg.softmax dimension(2) ins(%s)
//   %t = linalg.contract (b,q,k), (b,k,e) -> (b,q,e) ins(%p, %v) outs(zeros)
//   %o = linalg.generic ins(%keep, %t) (b,q), (b,q,e) -> (b,q,e) { select %keep, %t, 0 }
//
// so that the probabilities are an operand of the product with the values, as attn-raise-attention expects. A factor or
// a divisor of each row moves in the same way. The op stays in place if its other operands are computed from the
// probabilities or the scores, or if something else reads its result.
// Test: test/passes/raise/rows-after-values.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/raise/Element.h"
#include "passes/Product.h"
#include "support/Loops.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

namespace attn {
#define GEN_PASS_DEF_ROWSAFTERVALUES
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// An op that multiplies or divides each row of probabilities, which come from `softmax`, by a number, or sets the row
/// to 0.
struct OfRows {
  linalg::GenericOp op;
  linalg::SoftmaxOp softmax;
  OpOperand *probabilities;
};
} // namespace

/// Whether the last op in the body of `op` multiplies or divides `element`, which nothing else reads, or selects it or 0.
static bool scales(linalg::GenericOp op, BlockArgument element) {
  Operation *last = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  if (!last || !element.hasOneUse() || *element.user_begin() != last)
    return false;
  if (isa<arith::MulFOp>(last))
    return true;
  unsigned position = element.use_begin()->getOperandNumber();
  if (isa<arith::DivFOp>(last))
    return position == 0;
  if (!isa<arith::SelectOp>(last) || position == 0)
    return false;
  auto other = dyn_cast_or_null<FloatAttr>(
      Element::of(op->getResult(0)).getOperand(3 - position).getConstant());
  return other && other.getValue().isZero();
}

/// Whether `value` is computed from the result of `softmax` or from its scores.
static bool dependsOn(Value value, linalg::SoftmaxOp softmax) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  (void)getBackwardSlice(value, &slice, options);
  return slice.contains(softmax) || llvm::any_of(slice, [&](Operation *op) {
           return llvm::is_contained(op->getOperands(), softmax.getInput());
         });
}

/// The softmax from whose probabilities elementwise ops compute `tensor`; null if there is none.
static linalg::SoftmaxOp findSoftmax(Value tensor) {
  SetVector<Value> forms;
  forms.insert(tensor);
  for (unsigned i = 0; i < forms.size(); ++i) {
    if (auto softmax = forms[i].getDefiningOp<linalg::SoftmaxOp>())
      return softmax;
    auto op = forms[i].getDefiningOp<linalg::LinalgOp>();
    if (op && isScalarFunction(op))
      for (OpOperand *input : op.getDpsInputOperands())
        if (op.getMatchingIndexingMap(input).isIdentity())
          forms.insert(input->get());
  }
  return nullptr;
}

static std::optional<OfRows> matchOfRows(Value tensor) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || !tensor.hasOneUse() || op->getNumResults() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() ||
      !op.getRegionOutputArgs()[0].use_empty())
    return std::nullopt;
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!op.getMatchingIndexingMap(input).isIdentity() ||
        input->get().getType() != tensor.getType() ||
        !scales(op, op.getMatchingBlockArgument(input)))
      continue;
    linalg::SoftmaxOp softmax = findSoftmax(input->get());
    if (!softmax)
      continue;
    unsigned key = softmax.getDimension();
    bool isOfRows = llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *other) {
      AffineMap map = op.getMatchingIndexingMap(other);
      return other == input || (map.isProjectedPermutation(/*allowZeroInResults=*/true) &&
                                !map.isFunctionOfDim(key) && !dependsOn(other->get(), softmax));
    });
    op.getBlock()->walk([&](linalg::IndexOp index) { isOfRows &= index.getDim() != key; });
    if (isOfRows)
      return OfRows{op, softmax, input};
  }
  return std::nullopt;
}

/// The dimension of the result of `product` for each dimension of operand `i`; none for dimension `key`, which must be
/// the only one that the product sums over.
static std::optional<SmallVector<std::optional<unsigned>>>
findResultDims(linalg::LinalgOp product, unsigned i, unsigned key) {
  AffineMap read = product.getMatchingIndexingMap(&product->getOpOperand(i)),
            out = product.getMatchingIndexingMap(product.getDpsInitOperand(0));
  SmallVector<std::optional<unsigned>> dims;
  for (auto [dim, coordinate] : llvm::enumerate(read.getResults())) {
    std::optional<unsigned> loop = findLoop(coordinate);
    if (!loop)
      return std::nullopt;
    dims.push_back(out.getResultPosition(coordinate));
    if (dims.back().has_value() == (dim == key))
      return std::nullopt;
  }
  return dims;
}

/// Moves `rows`, operand `i` of `product`, behind the product.
static void move(RewriterBase &rewriter, linalg::LinalgOp product, unsigned i, OfRows rows,
                 ArrayRef<std::optional<unsigned>> dims) {
  Value whole = product->getResult(0);
  SmallVector<OpOperand *> readers =
      llvm::map_to_vector(whole.getUses(), [](OpOperand &use) { return &use; });
  rewriter.modifyOpInPlace(product, [&] { product->setOperand(i, rows.probabilities->get()); });
  rewriter.setInsertionPointAfter(product);
  unsigned rank = cast<RankedTensorType>(whole.getType()).getRank();
  MLIRContext *context = rewriter.getContext();
  SmallVector<AffineExpr> coordinates;
  for (std::optional<unsigned> dim : dims)
    coordinates.push_back(dim ? getAffineDimExpr(*dim, context)
                              : getAffineConstantExpr(0, context));
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand *input : rows.op.getDpsInputOperands()) {
    bool isProbability = input == rows.probabilities;
    inputs.push_back(isProbability ? whole : input->get());
    maps.push_back(isProbability ? AffineMap::getMultiDimIdentityMap(rank, context)
                                 : rows.op.getMatchingIndexingMap(input).replaceDimsAndSymbols(
                                       coordinates, {}, rank, 0));
  }
  maps.push_back(AffineMap::getMultiDimIdentityMap(rank, context));
  Value out = tensor::EmptyOp::create(rewriter, rows.op.getLoc(),
                                      tensor::getMixedSizes(rewriter, product.getLoc(), whole),
                                      getElementTypeOrSelf(whole.getType()));
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  auto moved = linalg::GenericOp::create(rewriter, rows.op.getLoc(), out.getType(), inputs, out,
                                         maps, loops);
  IRMapping mapping;
  rows.op.getRegion().cloneInto(&moved.getRegion(), mapping);
  moved.walk([&](linalg::IndexOp index) { index.setDim(*dims[index.getDim()]); });
  for (OpOperand *reader : readers)
    rewriter.modifyOpInPlace(reader->getOwner(), [&] { reader->set(moved->getResult(0)); });
  rewriter.eraseOp(rows.op);
}

/// Whether the sums of `product` start from 0; the factors of rows must not multiply any other number.
static bool startsFromZero(linalg::LinalgOp product) {
  auto fill = product.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.value(), m_AnyZeroFloat());
}

namespace {
struct RowsAfterValues : attn::impl::RowsAfterValuesBase<RowsAfterValues> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::LinalgOp> products;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isProduct(op) && op.hasPureTensorSemantics() && op.getNumReductionLoops() == 1 &&
          startsFromZero(op))
        products.push_back(op);
    });
    for (linalg::LinalgOp product : products)
      for (unsigned i : {0, 1})
        while (std::optional<OfRows> rows = matchOfRows(product->getOperand(i))) {
          auto dims = findResultDims(product, i, rows->softmax.getDimension());
          if (!dims ||
              getElementTypeOrSelf(rows->op->getResult(0)) != ProductTypes::get(product).sum)
            break;
          move(rewriter, product, i, *rows, *dims);
        }
  }
};
} // namespace
