//===- MultiplyBeforeGather.cpp - products of rows of a table --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %g = linalg.generic ins(%places) outs(%e) { tensor.extract %table[%place, linalg.index 2] }         [Q,K,D]
//   %r = linalg.contract (h,q,k,d)->(h,q,d), (q,k,d), (h,q,k) ins(%x, %g) outs(%0)                       [H,Q,K]
// becomes
//   %p = linalg.contract (h,q,r,d)->(h,q,d), (r,d), (h,q,r) ins(%x, %table) outs(%1)                     [H,Q,R]
//   %r = linalg.generic ins(%places) outs(%2) { tensor.extract %p[linalg.index 0, linalg.index 1, %place] }
//
// Scores with relative positions multiply each query by the row of a table that belongs to the distance of each key.
// There are Q x K such rows, but the table has few: it is multiplied as a matrix, and the products are gathered. The
// pass does so only if that is faster. It is slower if there are more heads and batch items than elements in a row,
// because then more products than elements of rows are gathered, and if the table is so large that most products are
// computed for nothing.
// Test: test/passes/simplify/multiply-before-gather.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Product.h"
#include "support/Loops.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

namespace attn {
#define GEN_PASS_DEF_MULTIPLYBEFOREGATHER
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The time to read an element at an index that is data, in multiply-adds of elements in vectors of 8 lanes.
static constexpr double kGather = 56;
/// A product of fewer rows takes as long as a product of this many rows.
static constexpr double kLeastRows = 4;

namespace {
/// An op that gathers rows of a table: each element of its result is an element of the table. One index into the table
/// is data, and the other indices are loops of the op.
struct Gather {
  /// Matches operand `input` of `product`, which may be a view of the gathered rows.
  static std::optional<Gather> match(linalg::LinalgOp product, unsigned input);

  linalg::GenericOp op;
  tensor::ExtractOp extract;
  unsigned row;                               ///< the dimension of the table whose index is data
  SmallVector<std::optional<unsigned>> loops; ///< the loop of each other dimension
  llvm::SetVector<Operation *> index; ///< the ops of the body that compute the index that is data
  SmallVector<unsigned> inProduct;    ///< the loop of the product that each loop of the op is
  SmallVector<unsigned> units; ///< loops of the product over dimensions of size 1 that a view added

  bool isLoopOfTable(unsigned loop) const { return llvm::is_contained(loops, std::optional(loop)); }
};
} // namespace

std::optional<Gather> Gather::match(linalg::LinalgOp product, unsigned input) {
  std::optional<SmallVector<unsigned>> read =
      findLoops(product.getMatchingIndexingMap(product.getDpsInputOperand(input)));
  if (!read)
    return std::nullopt;
  SmallVector<unsigned> inProduct = *read, units;
  Value value = product.getDpsInputs()[input];
  while (true) {
    if (auto transpose = value.getDefiningOp<linalg::TransposeOp>()) {
      SmallVector<unsigned> loops(inProduct.size());
      for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
        loops[dim] = inProduct[i];
      inProduct = loops;
      value = transpose.getInput();
    } else if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>()) {
      SmallVector<unsigned> loops;
      for (const ReassociationIndices &group : expand.getReassociationIndices()) {
        auto isUnit = [&](int64_t dim) { return expand.getResultType().getDimSize(dim) == 1; };
        const int64_t *kept = llvm::find_if_not(group, isUnit);
        if (kept == group.end())
          kept = group.begin();
        for (int64_t dim : group)
          if (dim != *kept && !isUnit(dim))
            return std::nullopt;
          else if (dim != *kept)
            units.push_back(inProduct[dim]);
        loops.push_back(inProduct[*kept]);
      }
      inProduct = loops;
      value = expand.getSrc();
    } else {
      break;
    }
  }
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumReductionLoops() || op->getNumResults() != 1 ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
    return std::nullopt;
  auto extract = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp<tensor::ExtractOp>();
  if (!extract || extract->getBlock() != op.getBlock() ||
      !extract.getTensor().getType().hasStaticShape())
    return std::nullopt;
  Gather gather{op, extract, 0, {}, {}, inProduct, units};
  unsigned numRows = 0;
  for (auto [i, index] : llvm::enumerate(extract.getIndices())) {
    auto loop = index.getDefiningOp<linalg::IndexOp>();
    if (loop && gather.isLoopOfTable(loop.getDim()))
      return std::nullopt;
    gather.loops.push_back(loop ? std::optional<unsigned>(loop.getDim()) : std::nullopt);
    if (loop)
      continue;
    gather.row = i;
    ++numRows;
  }
  if (numRows != 1)
    return std::nullopt;
  // The index that is data must be the same for all elements of a row, and must not be read from the output.
  if (op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)))
    return std::nullopt;
  for (OpOperand *input : op.getDpsInputOperands())
    for (std::optional<unsigned> loop : gather.loops)
      if (loop && op.getMatchingIndexingMap(input).isFunctionOfDim(*loop))
        return std::nullopt;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.filter = [&](Operation *inner) { return inner->getBlock() == op.getBlock(); };
  if (Operation *index = extract.getIndices()[gather.row].getDefiningOp())
    (void)getBackwardSlice(index, &gather.index, options);
  for (Operation *inner : gather.index) {
    auto loop = dyn_cast<linalg::IndexOp>(inner);
    if (inner->getNumRegions() || (loop && gather.isLoopOfTable(loop.getDim())))
      return std::nullopt;
  }
  return gather;
}

/// Whether it is faster to multiply the whole table and to gather results than to compute `product`, which multiplies
/// the elements that `gather` has read. The first has `factor` times as many multiply-adds as `product`.
static bool isFaster(linalg::LinalgOp product, const Gather &gather, double factor) {
  SmallVector<int64_t> ranges = product.getStaticLoopRanges();
  double multiplyAdds = 1, results = 1, elements = 1, rowsOfOther = 1;
  for (int64_t range : ranges)
    multiplyAdds *= double(range);
  for (unsigned loop : gather.inProduct)
    elements *= double(ranges[loop]);
  SmallVector<unsigned> outLoops = *findResultLoops(product);
  for (unsigned loop : outLoops) {
    results *= double(ranges[loop]);
    if (!llvm::is_contained(gather.inProduct, loop))
      rowsOfOther *= double(ranges[loop]);
  }
  double before = elements * kGather + multiplyAdds * std::max(1.0, kLeastRows / rowsOfOther),
         after = results * kGather + multiplyAdds * factor;
  return after < before;
}

/// Multiplies before gathering if operand `input` of `product` is such a gather, and erases `product`. Returns whether
/// it did.
static bool multiplyBeforeGather(IRRewriter &rewriter, linalg::LinalgOp product, unsigned input) {
  std::optional<Gather> gather = Gather::match(product, input);
  Value other = product.getDpsInputs()[1 - input];
  auto fill = product.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  auto type = dyn_cast<RankedTensorType>(product->getResult(0).getType());
  if (!gather || !fill || !matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) || !type ||
      !type.hasStaticShape())
    return false;
  AffineMap ofOther = product.getMatchingIndexingMap(product.getDpsInputOperand(1 - input));
  std::optional<SmallVector<unsigned>> outLoops = findResultLoops(product);
  if (!outLoops)
    return false;
  MLIRContext *context = product.getContext();
  SmallVector<int64_t> ranges = product.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = product.getIteratorTypesArray();
  // The loops over rows that the other factor does not have become one loop over the table.
  llvm::SmallDenseSet<unsigned> free;
  int64_t gathered = 1;
  for (unsigned loop : gather->units) {
    if (ofOther.isFunctionOfDim(loop))
      continue;
    if (iterators[loop] != utils::IteratorType::parallel)
      return false;
    free.insert(loop);
  }
  for (auto [i, loop] : llvm::enumerate(gather->inProduct)) {
    if (gather->isLoopOfTable(i))
      continue;
    if (iterators[loop] != utils::IteratorType::parallel)
      return false;
    if (ofOther.isFunctionOfDim(loop))
      continue;
    free.insert(loop);
    gathered *= ranges[loop];
  }
  Value table = gather->extract.getTensor();
  int64_t rows = cast<RankedTensorType>(table.getType()).getDimSize(gather->row);
  if (free.empty() || gathered == 0 || !isFaster(product, *gather, double(rows) / double(gathered)))
    return false;

  // The new product has the loops of the old one, and one over the rows of the table. The loops that nothing reads any
  // more are renamed away.
  unsigned numLoops = product.getNumLoops();
  SmallVector<AffineExpr> rename(numLoops);
  unsigned next = 0;
  for (unsigned loop = 0; loop < numLoops; ++loop)
    rename[loop] =
        free.contains(loop) ? getAffineConstantExpr(0, context) : getAffineDimExpr(next++, context);
  AffineExpr rowLoop = getAffineDimExpr(next++, context);
  auto mapOf = [&](ArrayRef<AffineExpr> results) {
    return AffineMap::get(next, 0, results, context);
  };
  SmallVector<AffineExpr> tableExprs, outExprs;
  for (std::optional<unsigned> loop : gather->loops)
    tableExprs.push_back(loop ? rename[gather->inProduct[*loop]] : rowLoop);
  SmallVector<int64_t> shape;
  for (unsigned loop : *outLoops)
    if (!free.contains(loop)) {
      outExprs.push_back(rename[loop]);
      shape.push_back(ranges[loop]);
    }
  outExprs.push_back(rowLoop);
  shape.push_back(rows);
  SmallVector<AffineExpr> otherExprs;
  for (AffineExpr expr : ofOther.getResults())
    otherExprs.push_back(expr.replaceDims(rename));

  rewriter.setInsertionPoint(product);
  Location loc = product.getLoc();
  Value empty = tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
  Value init = linalg::FillOp::create(rewriter, loc, fill.getInputs()[0], empty)->getResult(0);
  SmallVector<Value> factors = {other, table};
  SmallVector<AffineMap> maps = {mapOf(otherExprs), mapOf(tableExprs), mapOf(outExprs)};
  if (input == 0) {
    std::swap(factors[0], factors[1]);
    std::swap(maps[0], maps[1]);
  }
  Value products = createProduct(rewriter, loc, factors[0], factors[1], init, maps)->getResult(0);

  // The new gather has a loop for each dimension of the result. `loopOfResult` has this loop for each loop of the old
  // product.
  SmallVector<unsigned> loopOfResult(numLoops, 0);
  for (auto [i, loop] : llvm::enumerate(*outLoops))
    loopOfResult[loop] = i;
  linalg::GenericOp old = gather->op;
  SmallVector<AffineExpr> toResult;
  for (unsigned loop : gather->inProduct)
    toResult.push_back(getAffineDimExpr(loopOfResult[loop], context));
  SmallVector<AffineMap> gatherMaps;
  for (OpOperand *operand : old.getDpsInputOperands())
    gatherMaps.push_back(
        old.getMatchingIndexingMap(operand).replaceDimsAndSymbols(toResult, {}, type.getRank(), 0));
  gatherMaps.push_back(rewriter.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  Value result = tensor::EmptyOp::create(rewriter, loc, type.getShape(), type.getElementType());
  rewriter.replaceOpWithNewOp<linalg::GenericOp>(
      product, TypeRange(type), old.getDpsInputs(), ValueRange(result), gatherMaps, parallel,
      [&](OpBuilder &b, Location, ValueRange arguments) {
        IRMapping mapping;
        mapping.map(old.getBlock()->getArguments(), arguments);
        for (Operation *inner : gather->index) {
          if (auto loop = dyn_cast<linalg::IndexOp>(inner)) {
            unsigned dim = loopOfResult[gather->inProduct[loop.getDim()]];
            mapping.map(loop.getResult(),
                        linalg::IndexOp::create(b, loop.getLoc(), dim).getResult());
          } else {
            b.clone(*inner, mapping);
          }
        }
        SmallVector<Value> indices;
        for (auto [i, loop] : llvm::enumerate(*outLoops))
          if (!free.contains(loop))
            indices.push_back(linalg::IndexOp::create(b, loc, i));
        indices.push_back(mapping.lookupOrDefault(gather->extract.getIndices()[gather->row]));
        Value element = tensor::ExtractOp::create(b, gather->extract.getLoc(), products, indices);
        linalg::YieldOp::create(b, loc, element);
      });
  return true;
}

namespace {
struct MultiplyBeforeGather : attn::impl::MultiplyBeforeGatherBase<MultiplyBeforeGather> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> candidates;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isProduct(op) && op.hasPureTensorSemantics() && getGroup(op) == 1)
        candidates.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : candidates)
      for (unsigned input : {0u, 1u})
        if (multiplyBeforeGather(rewriter, op, input))
          break;
  }
};
} // namespace
