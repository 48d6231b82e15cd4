//===- PlanProducts.cpp - the register block and the rows of every product --===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %c = linalg.contract ... ins(%x, %w : tensor<?x3072xf32>, tensor<12x3072x64xf32>) outs(%i : tensor<?x12x64xf32>)
// becomes
//   %c = linalg.contract {attn.block = #attn.block<rows = 6, vectors = 4, depth = 192>, attn.task = #attn.task<rows = 96>}
//          ... ins(%x, %w : ...)
//
// The planner of the machine chooses the register block, whose vectors run along the innermost dimension of the output,
// and the part of the product that a task computes. This part is used only if the product gets tasks of its own. The
// pass changes attributes only, so users can edit its result and resume compilation from it. It does not change an
// attribute that a product already has.
//
// A convolution gets the same attributes on a CPU. The rows of its block and of its tasks are output channels, and the
// columns of its tasks are elements of the image. If channels are the last dimension of the output, they are the columns
// instead, and the rows are those of the image, as in a product.
//
// An attention contains its products until code generation. The attention gets `attn.blocks`, the blocks of the product
// of queries and keys and of the product of probabilities and values, for the schedule and the tiles of its plan:
//
//   attn.blocks = {scores = #attn.block<rows = 8, vectors = 3>, values = #attn.block<rows = 8, vectors = 3>}
// Test: test/passes/plan/plan-products.mlir, test/tools/resume.test
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/Rows.h"
#include "passes/plan/Planner.h"
#include "passes/plan/TaskRows.h"

#include <cmath>

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PLANPRODUCTS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Verifies that the depth of `block` divides the number of products of each sum. In a convolution, it must consist of
/// whole steps of the outermost dimension of the sum. If the number of products is unknown, the depth must be 0.
static LogicalResult verifyDepth(Operation *op, const ProductShape &shape, BlockAttr block) {
  std::optional<int64_t> whole = shape.depth;
  if (block.getDepth() == 0 || (whole && *whole % block.getDepth() == 0 &&
                                block.getDepth() % std::max<int64_t>(1, shape.kernel) == 0))
    return success();
  InFlightDiagnostic error = op->emitOpError() << "expected a depth that divides the sum of ";
  if (whole)
    error << *whole << " products";
  else
    error << "an unknown number of products";
  if (shape.kernel)
    error << ", and is a multiple of " << shape.kernel;
  return error << ", got " << block.getDepth();
}

/// The shapes of the products of an attention, by their names in `attn.blocks`.
static SmallVector<std::pair<StringRef, ProductShape>> getProducts(AttentionOp op) {
  PlanAttr plan = *op.getPlan();
  // Queries are either the columns of the products or their rows. If they are the rows, scores have a column for each
  // key, and outputs have a column for each element of a value.
  bool hasQueryColumns =
      !plan.getStages() &&
      llvm::is_contained({Schedule::PerHead, Schedule::Phased}, plan.getSchedule());
  bool isTiled = hasQueryColumns || plan.getStages() || plan.getSchedule() == Schedule::Decode;
  int64_t keys = isTiled ? plan.getK() : op.getStaticSize(op.getKDim());
  int64_t e = op.getStaticSize(op.getEDim());
  auto known = [](int64_t size) {
    return ShapedType::isDynamic(size) ? std::nullopt : std::optional(size);
  };
  auto shapeOf = [&](Value operand, int64_t rows, int64_t columns, int64_t depth, bool skipsZeros) {
    Type factor = getElementTypeOrSelf(operand.getType());
    return ProductShape{columns,         known(depth), skipsZeros,
                        plan.getGroup(), rows,         {factor, factor, op.getAccumulatorType()}};
  };
  SmallVector<std::pair<StringRef, ProductShape>> products = {
      {"scores", shapeOf(op.getKey(), hasQueryColumns ? keys : plan.getQ(),
                         hasQueryColumns ? plan.getQ() : keys, op.getStaticSize(op.getDDim()),
                         /*skipsZeros=*/false)}};
  for (bool isMasked : {false, true})
    if (isMasked ? bool(op.getMask()) : isTiled || !op.getMask())
      products.push_back({isMasked ? "masked" : "values",
                          shapeOf(op.getValue(), hasQueryColumns ? e : plan.getQ(),
                                  hasQueryColumns ? plan.getQ() : e, keys, isMasked)});
  return products;
}

/// Verifies that the machine has enough registers for the block of a product.
static LogicalResult verifyBlock(Operation *op, const ProductShape &shape, BlockAttr block,
                                 PlannerInterface planner) {
  if (failed(verifyDepth(op, shape, block)))
    return failure();
  if (!planner.hasRegisters(shape, block))
    return op->emitOpError() << "expected a block of at most 8 rows, or of tiles that fit the "
                                "registers of the machine, got "
                             << block;
  return success();
}

static LogicalResult planAttention(AttentionOp op, PlannerInterface planner) {
  auto given = op->getAttrOfType<DictionaryAttr>(AttnDialect::kBlocksAttr);
  NamedAttrList blocks(given);
  for (auto &[name, shape] : getProducts(op)) {
    if (auto block = dyn_cast_or_null<BlockAttr>(blocks.get(name))) {
      if (failed(verifyBlock(op, shape, block, planner)))
        return failure();
    } else if (Attribute plan = planner.planProduct(shape)) {
      blocks.set(name, plan);
    }
  }
  if (!blocks.empty())
    op->setAttr(AttnDialect::kBlocksAttr, blocks.getDictionary(op.getContext()));
  return success();
}

/// The number of rows of the loops that tasks merge. The innermost loop, which has `innermost` rows, is merged with the
/// loops around it until there are at least kManyRows rows, or until a further loop would leave fewer than kLeastTasks
/// tasks.
static int64_t countMergedRows(linalg::LinalgOp product, int64_t innermost) {
  constexpr int64_t kManyRows = 48, kLeastTasks = 8;
  Rows loops = findEvenRowLoops(product);
  if (loops.empty())
    return innermost;
  SmallVector<int64_t> ranges = product.getStaticLoopRanges();
  ArrayRef<int64_t> shape = cast<ShapedType>(product.getDpsInits()[0].getType()).getShape();
  int64_t rows = 1, rowsOfPanels = 1;
  for (int64_t size : shape.drop_back())
    rowsOfPanels *= ShapedType::isDynamic(size) ? kLeastTasks * kRowsOfProduct : size;
  for (int64_t loop : llvm::reverse(loops)) {
    if (rows >= kManyRows)
      break;
    if (ShapedType::isDynamic(ranges[loop]))
      return ShapedType::kDynamic;
    if (rowsOfPanels < kLeastTasks * std::min(rows * ranges[loop], kRowsOfProduct))
      break;
    rows *= ranges[loop];
  }
  return rows > 1 ? rows : innermost;
}

/// Returns how many panels the output has, over all batch items, if each panel has `shape.rows` rows and `shape.columns`
/// columns. The result is at most kMany, and 0 if the number is unknown.
static int64_t countPanels(linalg::LinalgOp product, const ProductShape &shape) {
  static constexpr double kMany = 1 << 20;
  auto out = cast<ShapedType>(product.getDpsInits()[0].getType());
  if (!out.hasStaticShape() || shape.rows <= 0 || shape.columns <= 0)
    return 0;
  double panels = 1.0 / shape.rows / shape.columns; // a product of integers could overflow
  for (int64_t size : out.getShape())
    panels *= size;
  return std::llround(std::min(panels, kMany));
}

static void setTask(Operation *op, TaskSize size) {
  op->setAttr(AttnDialect::kTaskAttr,
              TaskAttr::get(op->getContext(), size.rows, std::nullopt, size.columns));
}

namespace {
struct PlanProducts : attn::impl::PlanProductsBase<PlanProducts> {
  void runOnOperation() override {
    PlannerInterface planner = getPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    bool isValid = true;
    getOperation().walk([&](AttentionOp op) {
      if (op.getPlan())
        isValid &= succeeded(planAttention(op, planner));
    });
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!isProductOrConvolution(op) && !skipsZeros(op))
        return;
      auto block = op->getAttrOfType<BlockAttr>(AttnDialect::kBlockAttr);
      if (block) {
        isValid &= succeeded(verifyBlock(op, ProductShape::get(op), block, planner));
      } else if (Attribute plan = planner.planProduct(ProductShape::get(op))) {
        op->setAttr(AttnDialect::kBlockAttr, plan);
        block = dyn_cast<BlockAttr>(plan);
      }
      bool isPlanned = isProduct(op) || (isConvolution(op) && block);
      if (!isPlanned || op->hasAttr(AttnDialect::kTaskAttr))
        return;
      ProductShape shape = ProductShape::get(op);
      if (isProduct(op) && planner.mergesRows())
        shape.rows = countMergedRows(op, shape.rows);
      shape.panels = countPanels(op, shape);
      setTask(op, planner.planTask(shape, block));
    });
    if (!isValid)
      signalPassFailure();
  }
};
} // namespace
