//===- OrderTasks.cpp - start the tasks with the most keys first -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   scf.forall (%b, %h, %i) = (0, 0, 0) to (%n, 12, %s) step (1, 1, 128) shared_outs(%e) {
//     attn.attention ins(%qi, %kh, %vh) outs(...) at(%b, %h, %i, 0) mask(#attn.causal) plan(<phased, ...>)
// becomes
//   %tiles = ceildiv(%s, 128)
//   scf.forall (%b, %t, %h) in (%n, %tiles, 12) shared_outs(%e) {
//     %i = (%tiles - 1 - %t) * 128
//     attn.attention ins(%qi, %kh, %vh) outs(...) at(%b, %h, %i, 0) mask(#attn.causal) plan(<phased, ...>)
//
// Blocks of threads start in the order of the tasks, the last loop variable first. With a causal mask, a later tile of
// queries has more keys. If it starts late, the other multiprocessors are idle while it runs at the end. In the new
// order, the last tiles of all heads of a batch item start first. The order does not go beyond a batch item, because
// blocks that run together should read the same keys and values, so that these stay in the L2 cache. The tasks compute
// the same numbers. Under a mask whose rows have about equally many keys, the order stays.
// Test: test/codegen/gpu/order-tasks.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"
#include "dialect/KeyBounds.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_ORDERTASKS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The number of keys that a row of `mask` keeps at query `q`, if there are very many keys, and if lengths and other
/// captured numbers hide none of them.
static int64_t countKeys(MaskInterface mask, unsigned numBatch, int64_t q) {
  static constexpr int64_t kManyKeys = 1000000;
  SmallVector<int64_t> operands(numBatch, 0);
  operands.append({q, /*rows=*/1, kManyKeys});
  for (const KeptSet &set : mask.kept(numBatch))
    operands.append(2 * set.symbols.size(), kManyKeys);
  auto [lo, fullLo, fullHi, hi] =
      KeyBounds::get(mask.getContext(), mask, numBatch, /*step=*/1).evaluate(operands);
  return hi - lo;
}

/// Whether later queries have more keys, as with a causal mask. The function compares three queries that are far from the
/// first and the last one; in a window, these have equally many keys.
static bool growsWithQuery(MaskInterface mask, unsigned numBatch) {
  int64_t early = countKeys(mask, numBatch, 100000), middle = countKeys(mask, numBatch, 300000),
          late = countKeys(mask, numBatch, 600000);
  return early < middle && middle < late;
}

/// Returns the loop over tiles of queries if each task computes an attention for one tile, and if later tiles have more
/// keys.
static std::optional<unsigned> findLoopOverQueries(scf::ForallOp tasks) {
  for (AttentionOp op : tasks.getBody()->getOps<AttentionOp>()) {
    MaskInterface mask = op.getMaskAttr();
    if (!mask || !op.getPlan() || op.getPlan()->getSchedule() != Schedule::Phased ||
        op.getOrigin().empty() || !growsWithQuery(mask, op.getNumBatch()))
      continue;
    auto loops = tasks.getInductionVars();
    auto loop = llvm::find(loops, op.getOrigin()[op.getQDim()]);
    unsigned position = std::distance(loops.begin(), loop);
    if (loop != loops.end() && isZeroInteger(tasks.getMixedLowerBound()[position]) &&
        getConstantIntValue(tasks.getMixedStep()[position]))
      return position;
  }
  return std::nullopt;
}

namespace {
struct OrderTasks : attn::impl::OrderTasksBase<OrderTasks> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> foralls;
    getOperation().walk([&](scf::ForallOp tasks) { foralls.push_back(tasks); });
    for (scf::ForallOp tasks : foralls)
      if (std::optional<unsigned> loop = findLoopOverQueries(tasks))
        order(tasks, *loop);
  }

  /// Reverses `loop`, which is over tiles of queries, and moves it before the loops over heads.
  static void order(scf::ForallOp tasks, unsigned loop) {
    OpBuilder builder(tasks);
    Location loc = tasks.getLoc();
    SmallVector<OpFoldResult> lower = tasks.getMixedLowerBound(),
                              upper = tasks.getMixedUpperBound(), step = tasks.getMixedStep();
    int64_t rows = *getConstantIntValue(step[loop]);
    AffineExpr size, tile;
    bindSymbols(builder.getContext(), size);
    bindDims(builder.getContext(), tile);
    AffineExpr tiles = size.ceilDiv(rows), query = (tiles - 1 - tile) * rows;
    OpFoldResult whole = upper[loop];
    for (auto *bounds : {&lower, &upper, &step})
      bounds->erase(bounds->begin() + loop);
    // The first of several batch dimensions counts batch items; the others count heads.
    unsigned place = lower.size() > 1 ? 1 : 0;
    lower.insert(lower.begin() + place, builder.getIndexAttr(0));
    upper.insert(upper.begin() + place,
                 affine::makeComposedFoldedAffineApply(builder, loc, tiles, {whole}));
    step.insert(step.begin() + place, builder.getIndexAttr(1));
    auto ordered = scf::ForallOp::create(builder, loc, lower, upper, step, tasks.getOutputs(),
                                         tasks.getMapping());
    ordered.getRegion().takeBody(tasks.getRegion());
    Block *body = ordered.getBody();
    Value variable = body->insertArgument(place, builder.getIndexType(), loc);
    builder.setInsertionPointToStart(body);
    Value first = getValueOrCreateConstantIndexOp(
        builder, loc,
        affine::makeComposedFoldedAffineApply(builder, loc, query, {variable, whole}));
    body->getArgument(loop + (place <= loop)).replaceAllUsesWith(first);
    body->eraseArgument(loop + (place <= loop));
    tasks.replaceAllUsesWith(ordered.getResults());
    tasks.erase();
  }
};
} // namespace
