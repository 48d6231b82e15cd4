//===- CopyRows.cpp - rows of arguments in different sets of L1 ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @f(%x: tensor<2048x1024xf32>, ...)
//     %c = linalg.contract ... ins(%x, %w : tensor<2048x1024xf32>, tensor<64x1024x16xf32>) ...
// becomes, if the rows share sets of L1,
//   func.func @f(%x: tensor<2048x1024xf32>, ...)
//     %e = tensor.empty() : tensor<2048x1024xf32>
//     %r = linalg.copy ins(%x) outs(%e)
//     %c = linalg.contract ... ins(%r, %w : tensor<2048x1024xf32>, tensor<64x1024x16xf32>) ...
//
// A product reads several rows of its left operand at a time. If these rows share a set of L1, which has only a few
// cache lines, they evict each other: on an EPYC (Zen 4, AVX2), this product ran at 74 GFLOP/s, and at 102 with the
// copy. Temporaries get rows of another size (codegen/cpu/PadRows.cpp), but arguments have a compact layout, so the
// product reads a copy. The planner of the machine decides, from the distance of the rows. Weights,
// few rows, and products with few columns, which take hardly more time than the copy, stay unchanged. So do products
// that share their tasks with other ops.
// Test: test/passes/plan/copy-rows.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/plan/Planner.h"
#include "passes/plan/Weights.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_COPYROWS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Returns the number of elements from one row of `value` to the next, where a row is the innermost dimension. Returns 0
/// if `value` is not an argument or a view of one, or if the number is unknown.
static int64_t distanceOfRows(Value value) {
  int64_t distance = cast<RankedTensorType>(value.getType()).getShape().back();
  bool isReshaped = false; // whether the innermost dimension of an op before `value` is another one
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::ExtractSliceOp,
             tensor::CastOp>(op))
      return 0;
    value = op->getOperand(0);
    auto source = cast<RankedTensorType>(value.getType());
    int64_t size = source.getRank() > 0 ? source.getShape().back() : 1;
    if (size == cast<RankedTensorType>(op->getResult(0).getType()).getShape().back())
      continue;
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      if (isReshaped || slice.getDroppedDims().test(source.getRank() - 1) ||
          slice.getStaticStrides().back() != 1)
        return 0;
      distance = size;
    } else {
      isReshaped = true;
    }
  }
  return ShapedType::isDynamic(distance) ? 0 : distance;
}

/// Returns the number of rows of `product` if `operand` is 0, and of columns if it is 1: the iterations of the loops that
/// index this operand but not the other one. If a number of iterations is unknown, the result is kMany.
static int64_t countLoops(linalg::LinalgOp product, unsigned operand) {
  static constexpr int64_t kMany = 1 << 20;
  int64_t count = 1;
  auto reads = [&](unsigned input, unsigned loop) {
    return product.getMatchingIndexingMap(product.getDpsInputOperand(input)).isFunctionOfDim(loop);
  };
  for (auto [loop, range] : llvm::enumerate(product.getStaticLoopRanges()))
    if (reads(operand, loop) && !reads(1 - operand, loop))
      count = ShapedType::isDynamic(range) ? kMany : std::min(kMany, count * range);
  return count;
}

/// Whether a row of the left operand of `product`, which is the dimension of the sum, is contiguous in an argument, and
/// shares sets of L1 with the rows around it, which slows the product down. Products of groups, whose sum has two
/// dimensions, are not looked at.
static bool hasCloseRows(linalg::LinalgOp product, PlannerInterface planner) {
  OpOperand *left = product.getDpsInputOperand(0);
  auto type = cast<RankedTensorType>(left->get().getType());
  AffineMap map = product.getMatchingIndexingMap(left);
  SmallVector<unsigned> sums;
  product.getReductionDims(sums);
  if (type.getRank() < 2 || type.isDynamicDim(type.getRank() - 1) || sums.size() != 1 ||
      map.getResult(type.getRank() - 1) != getAffineDimExpr(sums.front(), map.getContext()))
    return false;
  int64_t bytes = distanceOfRows(left->get()) * type.getElementTypeBitWidth() / 8;
  return bytes > 0 && planner.sharesCacheSets(bytes) && !dependsOnWeightsOnly(left->get());
}

namespace {
struct CopyRows : attn::impl::CopyRowsBase<CopyRows> {
  void runOnOperation() override {
    static constexpr int64_t kLeastRows = 16, kLeastColumns = 256;
    PlannerInterface planner = getPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    // All products that read the same rows share a copy.
    llvm::MapVector<Value, SmallVector<linalg::LinalgOp>> readers;
    getOperation().walk([&](linalg::LinalgOp op) {
      auto task = op->getAttrOfType<TaskAttr>(AttnDialect::kTaskAttr);
      if (isProduct(op) && op.hasPureTensorSemantics() && task && !task.getGroup() &&
          hasCloseRows(op, planner) && countLoops(op, 0) >= kLeastRows)
        readers[op.getDpsInputs()[0]].push_back(op);
    });
    OpBuilder builder(&getContext());
    for (auto &[rows, products] : readers) {
      int64_t columns = 0;
      for (linalg::LinalgOp product : products)
        columns += countLoops(product, 1);
      if (columns < kLeastColumns)
        continue;
      builder.setInsertionPointAfterValue(rows);
      Location loc = products.front().getLoc();
      auto type = cast<RankedTensorType>(rows.getType());
      Value empty = tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, rows),
                                            type.getElementType());
      Value copy = linalg::CopyOp::create(builder, loc, rows, empty).getResult(0);
      for (linalg::LinalgOp product : products)
        product.getDpsInputOperand(0)->set(copy);
    }
  }
};
} // namespace
