//===- Planner.cpp - the shapes that plans depend on -----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/Planner.h"
#include "passes/Product.h"
#include "passes/Rows.h"
#include "passes/plan/JoinHeads.h"
#include "support/Loops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace attn;

#include "passes/plan/PlannerInterface.cpp.inc"

PlannerInterface attn::getPlanner(Operation *op) {
  TargetInterface target = getTarget(op);
  auto planner = dyn_cast_if_present<PlannerInterface>(target);
  if (!target)
    op->emitError() << "expected '" << AttnDialect::kTargetAttr << "' on an enclosing module";
  else if (!planner)
    op->emitError() << "expected a target with a planner, got " << target;
  return planner;
}

/// The size of the innermost output dimension whose size is not 1, or 1 if there is none.
static int64_t getColumns(linalg::LinalgOp op) {
  auto out = cast<ShapedType>(op.getDpsInits()[0].getType());
  for (int64_t size : llvm::reverse(out.getShape()))
    if (size != 1)
      return size;
  return 1;
}

std::optional<int64_t> ProductShape::getDepth(linalg::LinalgOp op) {
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (attn::isConvolution(op)) {
    int64_t depth = 1;
    for (unsigned loop : reductions) {
      if (ShapedType::isDynamic(ranges[loop]))
        return std::nullopt;
      depth *= ranges[loop];
    }
    return depth;
  }
  int64_t depth = ranges[reductions.front()], group = getGroup(op);
  bool isOne = reductions.size() == 1 || group > 1;
  return isOne && !ShapedType::isDynamic(depth) ? std::optional(depth * group) : std::nullopt;
}

/// The elementwise op that reads the result of `op` element by element, if it is the only user.
static linalg::LinalgOp getElementwiseUser(linalg::LinalgOp op) {
  if (op->getNumResults() != 1 || !op->getResult(0).hasOneUse())
    return {};
  OpOperand &use = *op->getResult(0).use_begin();
  auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
  bool isElementwise = user && user.isDpsInput(&use) && user.getNumReductionLoops() == 0 &&
                       user.getMatchingIndexingMap(&use).isPermutation();
  return isElementwise ? user : linalg::LinalgOp();
}

/// The number of products whose results `op` computes from or, if it is a product, is.
static int64_t countProducts(linalg::LinalgOp op) {
  if (isProduct(op))
    return 1;
  int64_t count = 0;
  for (Value input : op.getDpsInputs())
    if (auto producer = input.getDefiningOp<linalg::LinalgOp>();
        producer && getElementwiseUser(producer) == op)
      count += countProducts(producer);
  return count;
}

static int64_t countCombined(linalg::LinalgOp product) {
  linalg::LinalgOp last = product;
  while (linalg::LinalgOp user = getElementwiseUser(last))
    last = user;
  return countProducts(last);
}

/// The innermost loop of the output of `convolution` that only operand `input` has: the image is operand 0, and the
/// kernel operand 1.
static std::optional<unsigned> findInnermost(linalg::LinalgOp convolution, unsigned input) {
  auto reads = [&](unsigned operand, unsigned loop) {
    return convolution.getMatchingIndexingMap(convolution.getDpsInputOperand(operand))
        .isFunctionOfDim(loop);
  };
  SmallVector<unsigned> loops = *findResultLoops(convolution);
  for (unsigned loop : llvm::reverse(loops))
    if (reads(input, loop) && !reads(1 - input, loop))
      return loop;
  return std::nullopt;
}

/// The number of products for each step of the outermost reduction of a convolution, the elements of its kernel. 0 if
/// `op` is no convolution.
static int64_t countKernel(linalg::LinalgOp op) {
  if (!isConvolution(op))
    return 0;
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  int64_t count = 1;
  for (unsigned loop : ArrayRef(reductions).drop_front())
    if (!ShapedType::isDynamic(ranges[loop]))
      count *= ranges[loop];
  return std::max<int64_t>(1, count);
}

ProductShape ProductShape::get(linalg::LinalgOp op) {
  std::optional<int64_t> loop;
  bool hasChannelsLast = false;
  if (isConvolution(op)) {
    std::optional<SmallVector<unsigned>> out = findResultLoops(op);
    AffineMap kernel = op.getMatchingIndexingMap(op.getDpsInputOperand(1));
    hasChannelsLast = !out->empty() && kernel.isFunctionOfDim(out->back());
    loop = findInnermost(op, /*input=*/hasChannelsLast ? 0 : 1);
  } else if (std::optional<Rows> loops = findRowLoops(op)) {
    loop = loops->back();
  }
  int64_t rows = loop                ? op.getStaticLoopRanges()[*loop]
                 : isConvolution(op) ? 1
                                     : ShapedType::kDynamic;
  return {getColumns(op),        getDepth(op),      attn::skipsZeros(op), getGroup(op),   rows,
          ProductTypes::get(op), countCombined(op), countKernel(op),      hasChannelsLast};
}

/// The reduction size of `product`, where an unknown size counts as kTypicalSize; 0 if `product` is null.
static int64_t depthOfProduct(linalg::LinalgOp product) {
  if (!product)
    return 0;
  SmallVector<int64_t> sizes = product.getStaticLoopRanges();
  SmallVector<unsigned> reductions;
  product.getReductionDims(reductions);
  int64_t depth = 1;
  for (unsigned loop : reductions)
    depth *= ShapedType::isDynamic(sizes[loop]) ? AttentionShape::kTypicalSize : sizes[loop];
  return depth;
}

AttentionShape AttentionShape::get(AttentionOp op) {
  auto size = [&](unsigned dim) {
    int64_t size = op.getStaticSize(dim);
    return ShapedType::isDynamic(size) ? kTypicalSize : size;
  };
  AttentionShape shape;
  shape.sum = op.getAccumulatorType();
  shape.element = getElementTypeOrSelf(op.getKey().getType());
  if (getElementTypeOrSelf(op.getQuery().getType()) != shape.element ||
      getElementTypeOrSelf(op.getValue().getType()) != shape.element)
    shape.element = shape.sum;
  shape.numBatch = op.getNumBatch();
  // An unknown batch size counts as 1: the batch size does not change which plan is fastest.
  for (unsigned i = 0; i < shape.numBatch; ++i) {
    int64_t count = op.getStaticSize(i);
    shape.knowsBatch &= !ShapedType::isDynamic(count);
    (op.getKeyMap().isFunctionOfDim(i) ? shape.heads : shape.groups) *=
        ShapedType::isDynamic(count) ? 1 : count;
  }
  shape.queries = size(op.getQDim());
  shape.keys = size(op.getKDim());
  shape.knowsKeys = !ShapedType::isDynamic(op.getStaticSize(op.getKDim()));
  shape.knowsHeads = !ShapedType::isDynamic(op.getStaticSize(op.getDDim())) &&
                     !ShapedType::isDynamic(op.getStaticSize(op.getEDim()));
  shape.d = size(op.getDDim());
  shape.e = size(op.getEDim());
  // If key and value are the same product, this product is computed once, before the attention. No reshape is between a
  // product inside a task and the attention. A reshape follows a product for all heads, which only a phased plan has.
  bool isPhased = op.getPlan() && op.getPlan()->getSchedule() == Schedule::Phased;
  auto depthOf = [&](Value value) {
    return value.getDefiningOp<linalg::LinalgOp>() || isPhased
               ? depthOfProduct(findProjection(value))
               : 0;
  };
  if (op.getKey() != op.getValue())
    shape.depth = std::max(depthOf(op.getKey()), depthOf(op.getValue()));
  shape.joined = countJoinedHeads(op);
  shape.hasRegion = !op.getScore().empty() || op.getSink();
  shape.hasCaptures = !op.getCaptures().empty();
  shape.returnsProbabilities = op.returnsProbabilities();
  shape.mask = op.getMaskAttr();
  return shape;
}
