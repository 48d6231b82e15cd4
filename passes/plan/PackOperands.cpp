//===- PackOperands.cpp - contiguous rows for every contraction ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %c = linalg.contract indexing_maps = [(s, n, k) -> (s, k), (s, n, k) -> (n, k), (s, n, k) -> (s, n)]
//          ins(%x, %w : tensor<?x768xf32>, tensor<768x768xf32>) outs(%i : tensor<?x768xf32>)
// becomes, if %w is a weight and the panel width is 64,
//   %p = attn.pack ins(%w) outs(%e : tensor<12x768x64xf32>)
//   %i3 = tensor.expand_shape %i [[0], [1, 2]] : tensor<?x768xf32> into tensor<?x12x64xf32>
//   %c3 = linalg.contract indexing_maps = [(s, p, j, k) -> (s, k), (s, p, j, k) -> (p, k, j), ... -> (s, p, j)]
//           ins(%x, %p) outs(%i3)
//   %c = tensor.collapse_shape %c3 [[0], [1, 2]]
//
// A register block reads rows that are contiguous along the innermost dimension n of the output. The operand that has n
// is packed if it is a weight, and transposed if it is not. A weight whose rows run along n, such as w (k, n) in x @ w,
// is packed from its rows. If the machine has an instruction that adds products in groups, such as pairs of bf16, k is
// split into a dimension of groups and a dimension of the elements of a group; packing splits it in the weight, and a
// view splits it in the other operand:
//
//   %p = attn.pack group(2) ins(%w) outs(%e : tensor<12x384x64x2xbf16>)
//   %x3 = tensor.expand_shape %x [[0], [1, 2]] : tensor<?x768xbf16> into tensor<?x384x2xbf16>
//   %c3 = linalg.contract indexing_maps = [(s, p, j, k, l) -> (s, k, l), (s, p, j, k, l) -> (p, k, j, l), ... -> (s, p, j)]
//
// An operand that is not a weight stays unchanged if its rows are already contiguous along n. Such a weight stays
// unchanged if it is a single panel without groups. In both cases, the operand that has n becomes the second one of the
// product. Products whose body is not that of linalg.contract stay unchanged too.
// Test: test/passes/plan/pack-operands.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/plan/Planner.h"
#include "passes/plan/Weights.h"
#include "support/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PACKOPERANDS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {

/// A contraction whose operand `rhs` has the innermost dimension of the output.
struct Contraction {
  linalg::LinalgOp op;
  OpOperand *lhs, *rhs;
  SmallVector<unsigned> lhsLoops, rhsLoops, outLoops; // in the order of the dimensions
  unsigned n;                                         // loop of the output's innermost dimension
  unsigned k;                                         // the reduction loop
};

} // namespace

static std::optional<Contraction> matchContraction(linalg::LinalgOp op) {
  if (!isProduct(op) || !op.hasPureTensorSemantics())
    return std::nullopt;
  auto loopsOf = [&](OpOperand *operand) { return findLoops(op.getMatchingIndexingMap(operand)); };
  std::optional<SmallVector<unsigned>> out = loopsOf(op.getDpsInitOperand(0));
  if (!out || out->empty())
    return std::nullopt;
  unsigned n = out->back();
  OpOperand *a = op.getDpsInputOperand(0), *b = op.getDpsInputOperand(1);
  bool inA = op.getMatchingIndexingMap(a).isFunctionOfDim(n),
       inB = op.getMatchingIndexingMap(b).isFunctionOfDim(n);
  if (inA == inB)
    return std::nullopt;
  if (inA)
    std::swap(a, b);
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  if (reductions.size() != 1)
    return std::nullopt;
  return Contraction{op, a, b, *loopsOf(a), *loopsOf(b), *out, n, reductions.front()};
}

/// `value`, whose dimensions are the loops `order`, transposed to the order `loops`.
static Value transposed(OpBuilder &builder, Location loc, Value value, ArrayRef<unsigned> order,
                        ArrayRef<unsigned> loops) {
  SmallVector<int64_t> permutation;
  for (unsigned loop : loops)
    permutation.push_back(std::distance(order.begin(), llvm::find(order, loop)));
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return value;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, value);
  applyPermutationToVector(sizes, permutation);
  Value init = tensor::EmptyOp::create(builder, loc, sizes,
                                       cast<ShapedType>(value.getType()).getElementType());
  return linalg::TransposeOp::create(builder, loc, value, init, permutation)->getResult(0);
}

/// Returns the value before rounding if an op computes `value` by rounding alone; otherwise returns `value` itself.
static Value beforeRounding(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  return op && isRounding(op) ? op.getDpsInputs()[0] : value;
}

/// A view of `value` in which dimension `dim` is split into groups of `group` elements. The size of the dimension is
/// static and a multiple of `group`.
static Value withGroups(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t group) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  SmallVector<OpFoldResult> sizes;
  SmallVector<ReassociationIndices> reassociation;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    reassociation.push_back({int64_t(shape.size())});
    shape.push_back(i == dim ? type.getDimSize(i) / group : type.getDimSize(i));
    sizes.push_back(i == dim ? OpFoldResult(builder.getIndexAttr(shape.back()))
                             : dimOf(builder, loc, value, i));
    if (i == dim) {
      reassociation.back().push_back(shape.size());
      shape.push_back(group);
      sizes.push_back(builder.getIndexAttr(group));
    }
  }
  return tensor::ExpandShapeOp::create(builder, loc,
                                       RankedTensorType::get(shape, type.getElementType()), value,
                                       reassociation, sizes);
}

static AffineMap mapTo(MLIRContext *context, unsigned numLoops, ArrayRef<unsigned> loops) {
  return AffineMap::getMultiDimMapWithTargets(numLoops, loops, context);
}

/// Whether `op` is the view that splits an operand of a product into groups. This view does not move past the ops
/// before it.
static bool isInGroups(Operation *op) {
  return isa<tensor::ExpandShapeOp>(op) && llvm::any_of(op->getUses(), [](OpOperand &use) {
           auto product = dyn_cast<linalg::LinalgOp>(use.getOwner());
           return product && isProduct(product) && product.isDpsInput(&use) &&
                  getGroup(product) > 1;
         });
}

/// Rewrites the contraction to read rhs as (batch..., k, n), or as panels (batch..., panel, k, column).
static void packRhs(IRRewriter &rewriter, Contraction contraction, PlannerInterface planner) {
  auto [op, lhs, rhs, leftLoops, rhsLoops, outLoops, n, k] = contraction;
  MLIRContext *context = op.getContext();
  Location loc = op.getLoc();
  OpOperand *init = op.getDpsInitOperand(0);
  SmallVector<unsigned> batch;
  for (unsigned loop : rhsLoops)
    if (loop != n && loop != k)
      batch.push_back(loop);

  bool isWeight = dependsOnWeightsOnly(rhs->get());
  bool rowsAreRight = rhsLoops.back() == n;
  auto outType = cast<RankedTensorType>(init->get().getType());
  int64_t columns = outType.getShape().back();
  if (columns == 0)
    return;
  ProductShape shape = ProductShape::get(op);
  shape.columns = columns;
  Panel panels = planner.choosePanel(shape);
  if (panels.width == 0)
    return;
  bool isPacked =
      isWeight && !ShapedType::isDynamic(columns) && !rhs->get().getDefiningOp<PackOp>();
  int64_t width = isPacked ? panels.width : columns, group = isPacked ? panels.group : 1;
  SmallVector<unsigned> rowLoops = batch;
  rowLoops.append({k, n});
  bool needsPanels = !rowsAreRight || width != columns || group != 1;
  // If the rows of a batch item, such as those of one head in a weight (k, head, n), are not adjacent in memory, the
  // weight is transposed so that they are.
  bool isInOrder = !isWeight || rhsLoops == rowLoops;
  if (!needsPanels && isInOrder && lhs->getOperandNumber() == 0)
    return;

  rewriter.setInsertionPoint(op);
  unsigned numLoops = op.getNumLoops();
  Value packed;
  SmallVector<unsigned> packedLoops = batch;
  unsigned panel = n, column = n; // the loops that n becomes
  if (isPacked && needsPanels) {
    SmallVector<unsigned> columnLoops = batch;
    columnLoops.append({n, k});
    // attn.pack also rounds to the narrower type. A separate op would need an intermediate tensor, and the function
    // that packs weights has no workspace.
    Value source = transposed(rewriter, loc, beforeRounding(rhs->get()), rhsLoops,
                              rowsAreRight ? rowLoops : columnLoops);
    SmallVector<int64_t> shape(cast<ShapedType>(source.getType()).getShape());
    int64_t depth = shape.end()[rowsAreRight ? -2 : -1];
    shape.pop_back_n(2);
    shape.append({columns / width, depth / group, width});
    if (group > 1)
      shape.push_back(group);
    Value empty = tensor::EmptyOp::create(rewriter, loc, shape, getElementTypeOrSelf(rhs->get()));
    packed = PackOp::create(rewriter, loc, TypeRange{empty.getType()}, source, ValueRange{empty},
                            rowsAreRight, group, /*scale=*/FloatAttr())
                 .getResult(0);
    if (width == columns) {
      // One panel: (batch..., k, n).
      SmallVector<ReassociationIndices> groups;
      for (int64_t i = 0, e = batch.size(); i < e; ++i)
        groups.push_back({i});
      int64_t first = batch.size();
      if (batch.empty()) {
        groups.push_back({0, 1});
        groups.push_back({2});
      } else {
        groups.back().push_back(first);
        groups.push_back({first + 1});
        groups.push_back({first + 2});
      }
      if (group > 1)
        groups.push_back({first + 3});
      packed = tensor::CollapseShapeOp::create(rewriter, loc, packed, groups);
      packedLoops.append({k, n});
    } else {
      column = numLoops++;
      packedLoops.append({panel, k, column});
    }
    if (group > 1)
      packedLoops.push_back(numLoops++);
  } else {
    // Rows that are contiguous already may stay in another order of batch dimensions.
    packedLoops = needsPanels || !isInOrder ? rowLoops : SmallVector<unsigned>(rhsLoops);
    packed = transposed(rewriter, loc, rhs->get(), rhsLoops, packedLoops);
  }

  Value out = init->get();
  SmallVector<ReassociationIndices> split;
  if (column != n) {
    outLoops.push_back(column);
    for (int64_t i = 0; i < outType.getRank(); ++i)
      split.push_back({i});
    split.back().push_back(outType.getRank());
    SmallVector<int64_t> shape(outType.getShape().drop_back());
    shape.append({columns / width, width});
    SmallVector<OpFoldResult> sizes;
    for (int64_t i = 0; i + 1 < outType.getRank(); ++i)
      sizes.push_back(dimOf(rewriter, loc, out, i));
    sizes.append({rewriter.getIndexAttr(columns / width), rewriter.getIndexAttr(width)});
    out = tensor::ExpandShapeOp::create(
        rewriter, loc, RankedTensorType::get(shape, outType.getElementType()), out, split, sizes);
  }
  Value left = lhs->get();
  if (group > 1) {
    left = withGroups(rewriter, loc, left,
                      std::distance(leftLoops.begin(), llvm::find(leftLoops, k)), group);
    leftLoops.insert(std::next(llvm::find(leftLoops, k)), numLoops - 1);
  }
  auto maps = rewriter.getAffineMapArrayAttr({mapTo(context, numLoops, leftLoops),
                                              mapTo(context, numLoops, packedLoops),
                                              mapTo(context, numLoops, outLoops)});
  SmallVector<NamedAttribute> attributes;
  if (auto contract = dyn_cast<linalg::ContractOp>(*op)) {
    llvm::append_range(attributes, contract->getDiscardableAttrs());
    if (linalg::TypeFnAttr cast = contract.getCastAttr())
      attributes.emplace_back(contract.getCastAttrName(), cast);
  }
  Value result =
      linalg::ContractOp::create(rewriter, loc, TypeRange{out.getType()}, ValueRange{left, packed},
                                 ValueRange{out}, maps, attributes)
          ->getResult(0);
  if (column != n)
    result = tensor::CollapseShapeOp::create(rewriter, loc, outType, result, split);
  rewriter.replaceOp(op, result);
}

namespace {
struct PackOperands : attn::impl::PackOperandsBase<PackOperands> {
  void runOnOperation() override {
    PlannerInterface planner = getPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    SmallVector<Contraction> contractions;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (std::optional<Contraction> contraction = matchContraction(op))
        contractions.push_back(*contraction);
    });
    IRRewriter rewriter(&getContext());
    for (Contraction contraction : contractions)
      packRhs(rewriter, contraction, planner);

    // Move the split of n past the elementwise ops that compute the init or read the output.
    auto isElementwise = [](Operation *op) {
      auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
      return linalgOp && linalgOp.getNumReductionLoops() == 0;
    };
    RewritePatternSet patterns(&getContext());
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, [&](OpOperand *fused) {
      // A collapsed bias, or a collapsed slice of a bias, keeps its shape: if the broadcast that reads it were
      // expanded, a reshape would be between a product and its init.
      auto collapse = fused->get().getDefiningOp<tensor::CollapseShapeOp>();
      bool isRead = collapse && !collapse.getSrc().getDefiningOp<DestinationStyleOpInterface>();
      // If a result that other ops read too were expanded, these ops would read a collapsed view, which the patterns
      // would expand again, without end.
      bool isShared = isa<tensor::ExpandShapeOp>(fused->getOwner()) && !fused->get().hasOneUse();
      return !isRead && !isShared && !isInGroups(fused->getOwner()) &&
             (isElementwise(fused->getOwner()) || isElementwise(fused->get().getDefiningOp()));
    });
    linalg::FillOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::EmptyOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::populateFoldTensorEmptyPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
