//===- OrderKeys.cpp - transpose keys and values into rows -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(%q, %k, %v : ..., tensor<2x64x?xf16>, ...) with keys (b, d, k)
// becomes
//   %rows = linalg.transpose ins(%k) outs(...) permutation = [0, 2, 1]
//   attn.attention ins(%q, %rows, %v : ..., tensor<2x?x64xf16>, ...) with keys (b, k, d)
//
// Threads copy tiles of keys and values to shared memory row by row, 16 bytes at a time, so the elements of a row must
// be neighbours in memory.
// Test: test/codegen/gpu/order-keys.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_ORDERKEYS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Transposes operand `number` if the operand's dimension for the loop `column` of the attention comes before its
/// dimension for the loop `row`.
static void order(AttentionOp op, unsigned number, unsigned row, unsigned column) {
  OpOperand &operand = op->getOpOperand(number);
  SmallVector<Attribute> maps(op.getIndexingMaps().getValue());
  AffineMap map = cast<AffineMapAttr>(maps[number]).getValue();
  auto positionOf = [&](unsigned dim) {
    return *map.getResultPosition(getAffineDimExpr(dim, op.getContext()));
  };
  unsigned rows = positionOf(row), columns = positionOf(column);
  if (rows < columns)
    return;
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(map.getNumResults()));
  std::swap(permutation[rows], permutation[columns]);
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, operand.get());
  applyPermutationToVector(sizes, permutation);
  Value init =
      tensor::EmptyOp::create(builder, loc, sizes, getElementTypeOrSelf(operand.get().getType()));
  operand.set(
      linalg::TransposeOp::create(builder, loc, operand.get(), init, permutation)->getResult(0));
  SmallVector<AffineExpr> results(map.getResults());
  std::swap(results[rows], results[columns]);
  maps[number] = AffineMapAttr::get(AffineMap::get(map.getNumDims(), 0, results, op.getContext()));
  op.setIndexingMapsAttr(builder.getArrayAttr(maps));
}

namespace {
struct OrderKeys : attn::impl::OrderKeysBase<OrderKeys> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) {
      order(op, op.getKeyMutable().getOperandNumber(), op.getKDim(), op.getDDim());
      order(op, op.getValueMutable().getOperandNumber(), op.getKDim(), op.getEDim());
    });
  }
};
} // namespace
