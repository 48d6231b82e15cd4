//===- GroupsToQueries.cpp - heads that share keys become queries ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(%q, %k, %v : tensor<2x4x1x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>)
//     indexing_maps = [(h, g, q, k, d, e) -> (h, g, q, d), (h, g, q, k, d, e) -> (h, k, d), ...]
// becomes
//     indexing_maps = [(h, g, q, k, d, e) -> (h, q, g, d), (h, g, q, k, d, e) -> (h, k, d), ...]
//
// If there is a single query, as when a token is decoded, the four heads of a group become four queries of the same
// keys. They form one tile, which reads keys and values from memory once instead of four times. The tensors stay the
// same; only the roles of their dimensions change. The coordinates in a score region are swapped too.
//
// An attention stays unchanged if its number of queries is dynamic or more than 1, if its mask depends on the
// coordinates of queries or groups themselves, as a causal mask does, and not only on captured operands, or if there is
// a single head of keys with so many groups that one task for each group is faster.
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

/// Whether the set of kept pairs depends on coordinate `dim` itself.
static bool reads(MaskInterface mask, unsigned numBatch, unsigned dim) {
  return llvm::any_of(mask.kept(numBatch), [&](const KeptSet &set) {
    return llvm::any_of(set.pairs.getConstraints(),
                        [&](AffineExpr expr) { return expr.isFunctionOfDim(dim); });
  });
}

/// If there is a single head of keys, groups become queries only if there are at most this many groups. So few groups
/// would be too few tasks anyway. More groups stay groups, each with tasks of its own.
static constexpr int64_t kFewGroups = 8;

/// The largest dimension of query heads that share their keys, if there is a single query.
static std::optional<unsigned> findGroup(AttentionOp op) {
  AffineMap queryMap = op.getQueryMap(), keyMap = op.getKeyMap(), outMap = op.getOutMap();
  auto positionOf = [&](unsigned dim) {
    return *outMap.getResultPosition(getAffineDimExpr(dim, op.getContext()));
  };
  auto sizeOf = [&](unsigned dim) {
    return cast<ShapedType>(op.getOuts()[0].getType()).getDimSize(positionOf(dim));
  };
  auto readsCoordinate = [&](unsigned dim) {
    return op.getMaskAttr() && reads(op.getMaskAttr(), op.getNumBatch(), dim);
  };
  // A plan and the origin of a tile refer to the present queries.
  if (op.getPlan() || !op.getOrigin().empty() || sizeOf(op.getQDim()) != 1 ||
      readsCoordinate(op.getQDim()))
    return std::nullopt;
  std::optional<unsigned> group;
  bool hasHeads = false; // whether there are heads with different keys
  for (unsigned dim = 0; dim < op.getNumBatch(); ++dim) {
    if (keyMap.isFunctionOfDim(dim) || op.getValueMap().isFunctionOfDim(dim))
      hasHeads |= sizeOf(dim) != 1;
    else if (queryMap.isFunctionOfDim(dim) && positionOf(dim) < positionOf(op.getEDim()) &&
             sizeOf(dim) > (group ? sizeOf(*group) : 1) && !readsCoordinate(dim))
      group = dim;
  }
  return group && (hasHeads || sizeOf(*group) <= kFewGroups) ? group : std::nullopt;
}

/// Swaps dimensions `a` and `b` of the iteration space.
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
