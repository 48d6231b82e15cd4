//===- GroupsToQueries.cpp - heads that share keys are queries -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(%q, %k, %v : tensor<2x4x1x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>)
//     indexing_maps = [(h, g, q, k, d, e) -> (h, g, q, d), (h, g, q, k, d, e) -> (h, k, d), ...]
// becomes
//     indexing_maps = [(h, g, q, k, d, e) -> (h, q, g, d), (h, g, q, k, d, e) -> (h, k, d), ...]
//
// With a single query, the step that decodes a token, the four heads of a group are four queries of the same keys: one
// tile, for which keys and values come from memory once and not four times. No tensor changes, only what its dimensions
// are called; coordinates in a score region follow.
//
// Left alone: more queries than one, or a number not known; and a mask that reads the coordinates themselves, as a
// causal one does, not through what it captures.
// Test: test/passes/simplify/groups-to-queries.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {
#define GEN_PASS_DEF_GROUPSTOQUERIES
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Whether which pairs are kept depends on coordinate `dim` itself.
static bool readsCoordinate(MaskInterface mask, unsigned numBatch, unsigned dim) {
  return mask && llvm::any_of(mask.kept(numBatch), [&](const KeptSet &set) {
           return llvm::any_of(set.pairs.getConstraints(),
                               [&](AffineExpr expr) { return expr.isFunctionOfDim(dim); });
         });
}

/// The dimension of heads that share the keys of a single query.
static std::optional<unsigned> findGroup(AttentionOp op) {
  auto sizeOf = [&](unsigned dim) {
    AffineExpr expr = getAffineDimExpr(dim, op.getContext());
    return cast<ShapedType>(op.getOuts()[0].getType())
        .getDimSize(*op.getOutMap().getResultPosition(expr));
  };
  MaskInterface mask = op.getMaskAttr();
  auto isFree = [&](unsigned dim) { return !readsCoordinate(mask, op.getNumBatch(), dim); };
  if (sizeOf(op.getQDim()) != 1 || !isFree(op.getQDim()))
    return std::nullopt;
  for (unsigned dim = 0; dim < op.getNumBatch(); ++dim)
    if (!op.getKeyMap().isFunctionOfDim(dim) && !op.getValueMap().isFunctionOfDim(dim) &&
        !ShapedType::isDynamic(sizeOf(dim)) && sizeOf(dim) > 1 && isFree(dim))
      return dim;
  return std::nullopt;
}

/// Lets dimensions `a` and `b` of the iteration space change places.
static void interchange(AttentionOp op, unsigned a, unsigned b) {
  MLIRContext *context = op.getContext();
  auto dims = llvm::map_to_vector(llvm::seq<unsigned>(0, op.getQueryMap().getNumDims()),
                                  [&](unsigned dim) { return getAffineDimExpr(dim, context); });
  std::swap(dims[a], dims[b]);
  auto maps = llvm::map_to_vector(
      op.getIndexingMaps().getAsValueRange<AffineMapAttr>(), [&](AffineMap map) {
        return map.replaceDimsAndSymbols(dims, {}, map.getNumDims(), map.getNumSymbols());
      });
  op.setIndexingMapsAttr(Builder(context).getAffineMapArrayAttr(maps));
  if (op.getScore().empty())
    return;
  Value first = op.getScore().getArgument(a), second = op.getScore().getArgument(b);
  auto uses = llvm::map_to_vector(first.getUses(), [](OpOperand &use) { return &use; });
  second.replaceAllUsesWith(first);
  for (OpOperand *use : uses)
    use->set(second);
}

namespace {
struct GroupsToQueries : attn::impl::GroupsToQueriesBase<GroupsToQueries> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) {
      if (std::optional<unsigned> group = findGroup(op))
        interchange(op, *group, op.getQDim());
    });
  }
};
} // namespace
