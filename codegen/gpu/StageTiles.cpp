//===- StageTiles.cpp - copy tiles to shared memory ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   scf.for %j = %lo to %full_hi step %c64 { attn.online_step ins(%q, %k[%j, 64 rows], %v[%j, 64 rows]) ... }
//   scf.for %j = %full_hi to %hi step %c64 { attn.online_step ins(%q, %k[%j, %n rows], %v[%j, %n rows]) ... mask(M) }
// becomes
//   copy %q, and the tile of keys and values at %lo           // asynchronous, by all threads of the block
//   scf.for %j = %lo to %full_hi step %c64 {
//     wait for the copies of this thread, then for all threads
//     copy the tile at min(%j + 64, %full_hi)                 // for the next step, while this one computes
//     attn.online_step ins(%shared_q, %shared_k, %shared_v)
//   }
//   scf.for %j = %full_hi to %hi step %c64 { the same }       // the previous loop has copied its first tile
//   wait for the copies of this thread
//
// Tiles of keys and values are double-buffered: while one step computes, the copies of the next tile run. Rows beyond
// the last key are zeros. If a loop begins at the upper bound of the previous loop, the last step of the previous loop
// copies the first tile of this loop. A step outside of loops waits for its own tile. If a packed mask may hide tiles
// (attn.test_mask), and no other loop continues the loop, the mask of the next tile is tested before its copy, and a
// hidden tile is not copied.
// Test: test/codegen/gpu/stage-tiles.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Chains.h"
#include "codegen/gpu/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_STAGETILES
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {

/// Emits the copies of the tiles of one chain (Chains.h).
class Staging {
public:
  Staging(func::FuncOp function, Chain &chain)
      : b(function.getLoc(), chain.ops.front()),
        top(function.getLoc(), OpBuilder::atBlockBegin(&function.front())), chain(chain),
        threads(getThreads(function)) {}

  LogicalResult run();

private:
  /// Returns a view of `count` rows of the buffer that contains `operand`, the tile of a step in `loop`. The view
  /// begins where the tile begins when the loop variable is `first`. Also returns how many rows the buffer has from
  /// there on.
  std::pair<Value, Value> rowsAt(ThreadBuilder &b, Value operand, scf::ForOp loop, Value first,
                                 int64_t count);
  void copyTiles(ThreadBuilder &b, Operation *op, Value first, Value turn);
  void wait(ThreadBuilder &b) { waitForCopies(b, isByWarpgroups); }
  void replaceOperands(Operation *op, Value turn);

  ThreadBuilder b, top;
  Chain &chain;
  int64_t threads;
  bool isByWarpgroups = false;
  SmallVector<StagedTile, 2> tiles; // one of keys, and one of values
  Value query;                      // the tile of queries in shared memory
};

} // namespace

std::pair<Value, Value> Staging::rowsAt(ThreadBuilder &b, Value operand, scf::ForOp loop,
                                        Value first, int64_t count) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), first);
  auto tile = operand.getDefiningOp<memref::SubViewOp>();
  unsigned keyDim = tile.getDroppedDims().find_first_unset();
  SmallVector<OpFoldResult> offsets =
      llvm::map_to_vector(tile.getMixedOffsets(), [&](OpFoldResult offset) -> OpFoldResult {
        auto value = dyn_cast<Value>(offset);
        return value ? OpFoldResult(cloneSlice(b, value, loop, mapping)) : offset;
      });
  SmallVector<OpFoldResult> sizes = tile.getMixedSizes(), strides = tile.getMixedStrides();
  sizes[keyDim] = b.getIndexAttr(count);
  Value base = tile.getSource();
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(
      {count, tile.getType().getDimSize(1)}, tile.getSourceType(), offsets, sizes, strides);
  Value rows = memref::SubViewOp::create(b, type, base, offsets, sizes, strides);
  Value exist = b.subtract(memref::DimOp::create(b, base, keyDim), b.toValue(offsets[keyDim]));
  return {rows, exist};
}

void Staging::copyTiles(ThreadBuilder &b, Operation *op, Value first, Value turn) {
  StepTiles step = findSteps(op).front();
  ThreadBuilder::InsertionGuard guard(b);
  // The next tile may be the first one of another loop, which this test does not know.
  auto loop = dyn_cast<scf::ForOp>(op);
  scf::IfOp test = loop && chain.ops.size() == 1 ? findTileTest(loop) : scf::IfOp();
  scf::IfOp kept;
  if (test && canClone(op->getParentOfType<func::FuncOp>(), test.getCondition(), loop)) {
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), first);
    kept = scf::IfOp::create(b, cloneSlice(b, test.getCondition(), loop, mapping));
    b.setInsertionPointToStart(kept.thenBlock());
  }
  for (auto [operand, staged] : llvm::zip_equal(step.keyAndValue(), tiles)) {
    Value tile = operand->get(), rows, exist;
    if (first) {
      std::tie(rows, exist) = rowsAt(b, tile, cast<scf::ForOp>(op), first, staged.tile.rows);
    } else {
      IRMapping mapping;
      rows = cloneSlice(b, tile, op, mapping);
      exist = memref::DimOp::create(b, rows, 0);
    }
    staged.tile.copy(b, rows, exist, /*validColumns=*/{}, hasAlignedRows(tile), staged.buffer, turn,
                     threads);
  }
  if (kept)
    b.setInsertionPointAfter(kept);
  NVVM::CpAsyncCommitGroupOp::create(b);
}

void Staging::replaceOperands(Operation *op, Value turn) {
  for (const StepTiles &step : findSteps(op)) {
    ThreadBuilder at(step.op->getLoc(), step.op);
    for (auto [operand, staged] : llvm::zip_equal(step.keyAndValue(), tiles)) {
      OpFoldResult count = memref::getMixedSize(at, at.getLoc(), operand->get(), 0);
      operand->assign(staged.tile.view(at, staged.buffer, turn, count));
    }
    step.query->assign(query);
  }
}

LogicalResult Staging::run() {
  if (failed(chain.verify()))
    return failure();
  StepTiles first = chain.steps.front();
  int64_t stages = chain.hasLoops() ? 2 : 1;
  isByWarpgroups = chain.isByWarpgroups(threads);
  Value zero = top.constant(0);
  StagedTile queries = StagedTile::create(top, b, first.query->get(), first.getTileQueries(),
                                          /*stages=*/1, isByWarpgroups, threads);
  for (OpOperand *operand : first.keyAndValue())
    tiles.push_back(StagedTile::create(top, b, operand->get(), chain.getTileKeys(), stages,
                                       isByWarpgroups, threads));
  // The number, 0 or 1, of the buffer that the next step reads. LLVM keeps it in a register.
  Value turn = memref::AllocaOp::create(top, MemRefType::get({}, top.getIndexType()));
  memref::StoreOp::create(b, zero, turn, ValueRange{});

  IRMapping mapping;
  query = copyQueries(b, cloneSlice(b, first.query->get(), chain.ops.front(), mapping), queries,
                      threads);
  copyTiles(b, chain.ops.front(), chain.hasLoops() ? chain.loop(0).getLowerBound() : Value(), zero);
  if (!chain.hasLoops()) {
    wait(b);
    replaceOperands(chain.ops.front(), zero);
    b.setInsertionPointAfter(chain.ops.front());
    gpu::BarrierOp::create(b); // other threads may then overwrite the tiles
    return success();
  }
  for (unsigned i = 0; i < chain.ops.size(); ++i) {
    scf::ForOp loop = chain.loop(i);
    ThreadBuilder in(loop.getLoc(), OpBuilder::atBlockBegin(loop.getBody()));
    wait(in);
    Value stage = memref::LoadOp::create(in, turn, ValueRange{}),
          other = in.subtract(in.constant(1), stage);
    Value next = in.min(in.add(loop.getInductionVar(), loop.getStep()), loop.getUpperBound());
    copyTiles(in, loop, next, other);
    memref::StoreOp::create(in, other, turn, ValueRange{});
    replaceOperands(loop, stage);
  }
  ThreadBuilder after(b.getLoc(), chain.ops.back()->getBlock(),
                      std::next(chain.ops.back()->getIterator()));
  wait(after);
  return success();
}

namespace {
struct StageTiles : attn::impl::StageTilesBase<StageTiles> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto launch = function->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
    if (function.isDeclaration() || !launch || launch.getProducers())
      return;
    for (Chain &chain : findChains(function.front()))
      if (failed(Staging(function, chain).run()))
        return signalPassFailure();
  }
};
} // namespace
