//===- PlanProducts.cpp - the register block and the rows of every product --===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %c = linalg.contract ... ins(%x, %w : tensor<?x3072xf32>, tensor<12x3072x64xf32>) outs(%i : tensor<?x12x64xf32>)
// becomes
//   %c = linalg.contract {attn.block = #attn.block<rows = 6, vectors = 4, depth = 192>, attn.task = #attn.task<rows = 96>}
//          ... ins(%x, %w : ...)
//
// The planner of the machine chooses the block for the innermost dimension of the output; TaskRows.h chooses the rows of
// a task, which count if the product gets tasks of its own. The pass changes attributes only: its result can be edited
// and compilation resumed from it. A product that has an attribute keeps it. An attention contains
// its products until code generation, which derives their blocks from its tiles.
// Test: test/passes/plan/plan-products.mlir, test/tools/resume.test
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/Rows.h"
#include "passes/plan/Planner.h"
#include "passes/plan/TaskRows.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PLANPRODUCTS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The columns of the product: the size of the innermost dimension of the output that is not 1.
static int64_t getColumns(linalg::LinalgOp op) {
  auto out = cast<ShapedType>(op.getDpsInits()[0].getType());
  for (int64_t size : llvm::reverse(out.getShape()))
    if (size != 1)
      return size;
  return 1;
}

/// The length of the sum, if it has one dimension of a static size.
static std::optional<int64_t> getDepth(linalg::LinalgOp op) {
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  int64_t depth = op.getStaticLoopRanges()[reductions.front()];
  return reductions.size() == 1 && !ShapedType::isDynamic(depth) ? std::optional(depth)
                                                                 : std::nullopt;
}

/// The rows of a task: whole register blocks, if there are any, and enough work to pay for a task.
static int64_t planRows(linalg::LinalgOp op, BlockAttr block) {
  static constexpr int64_t kRowsPerTask = 96;
  std::optional<Rows> loops = findRowLoops(op);
  int64_t all = loops ? op.getStaticLoopRanges()[loops->back()] : ShapedType::kDynamic;
  return divideRows(all, kRowsPerTask, block ? block.getRows() : 1);
}

static LogicalResult verifyDepth(linalg::LinalgOp op, BlockAttr block) {
  std::optional<int64_t> whole = getDepth(op);
  if (block.getDepth() == 0 || (whole && *whole % block.getDepth() == 0))
    return success();
  InFlightDiagnostic error = op.emitOpError() << "expected a depth that divides the sum of ";
  if (whole)
    error << *whole << " products";
  else
    error << "an unknown number of products";
  return error << ", got " << block.getDepth();
}

namespace {
struct PlanProducts : attn::impl::PlanProductsBase<PlanProducts> {
  void runOnOperation() override {
    PlannerInterface planner = getPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    bool isValid = true;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!isProduct(op) && !skipsZeros(op))
        return;
      auto block = op->getAttrOfType<BlockAttr>(AttnDialect::kBlockAttr);
      if (block) {
        isValid &= succeeded(verifyDepth(op, block));
      } else if (Attribute plan =
                     planner.planProduct({getColumns(op), getDepth(op), skipsZeros(op)})) {
        op->setAttr(AttnDialect::kBlockAttr, plan);
        block = dyn_cast<BlockAttr>(plan);
      }
      if (isProduct(op) && !op->hasAttr(AttnDialect::kTaskAttr))
        op->setAttr(AttnDialect::kTaskAttr,
                    TaskAttr::get(&getContext(), planRows(op, block), std::nullopt));
    });
    if (!isValid)
      signalPassFailure();
  }
};
} // namespace
