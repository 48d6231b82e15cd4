//===- StageTiles.cpp - tiles of keys and values in shared memory ----------===//
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
//   scf.for %j = %full_hi to %hi step %c64 { the same }       // its first tile was copied by the loop before
//   wait for the copies of this thread
//
// There are two buffers for tiles of keys and two for tiles of values, which take turns. Rows beyond the last key are zeros.
// Loops are handled together if each begins where the one before ends. A step outside such a loop waits for its own tile.
// Test: test/codegen/gpu/stage-tiles.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/TileCopies.h"

#include "mlir/Analysis/SliceAnalysis.h"
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

/// The loops, or the one step, that share the tiles of an attention.
struct Chain {
  SmallVector<scf::ForOp> loops;
  SmallVector<OnlineStepOp> steps;
};

/// Where tiles of one operand of the steps lie in global memory.
struct Source {
  memref::SubViewOp tile; ///< in a step
  unsigned keyDim = 0;    ///< of the buffer that the tile is cut out of

  static std::optional<Source> get(Value operand) {
    auto tile = operand.getDefiningOp<memref::SubViewOp>();
    if (!tile)
      return std::nullopt;
    llvm::SmallBitVector dropped = tile.getDroppedDims();
    int keyDim = dropped.find_first_unset();
    return keyDim < 0 ? std::nullopt : std::optional(Source{tile, unsigned(keyDim)});
  }
};

class Staging {
public:
  Staging(func::FuncOp function, Chain &chain)
      : b(function.getLoc(), chain.loops.empty() ? chain.steps.front().getOperation()
                                                 : chain.loops.front().getOperation()),
        top(function.getLoc(), OpBuilder::atBlockBegin(&function.front())), function(function),
        chain(chain), threads(getThreads(function)) {}

  LogicalResult run();

private:
  /// The keys of a tile.
  int64_t keys() {
    if (chain.loops.empty())
      return llvm::alignTo(cast<MemRefType>(chain.steps.front().getKey().getType()).getDimSize(0), 16);
    return *getConstantIntValue(chain.loops.front().getStep());
  }
  SharedTile tileOf(Value operand, int64_t rows) {
    auto type = cast<MemRefType>(operand.getType());
    return {rows, type.getDimSize(1), type.getElementType()};
  }
  Value allocate(const SharedTile &tile, int64_t stages) {
    Value tiles = tile.allocate(top, stages);
    return tiles;
  }
  /// The rows of `operand`, a tile in the step of `loop`, from key `first` on, and how many of them exist.
  std::pair<Value, Value> rowsAt(ThreadBuilder &b, Value operand, scf::ForOp loop, Value first,
                                 int64_t count);
  void copyTiles(ThreadBuilder &b, scf::ForOp loop, Value first, Value stage);

  ThreadBuilder b, top;
  func::FuncOp function;
  Chain &chain;
  int64_t threads;
  std::optional<SharedTile> keyTile, valueTile;
  Value sharedKeys, sharedValues;
};

} // namespace

std::pair<Value, Value> Staging::rowsAt(ThreadBuilder &b, Value operand, scf::ForOp loop,
                                        Value first, int64_t count) {
  if (!loop)
    return {operand, memref::DimOp::create(b, operand, 0)};
  Source source = *Source::get(operand);
  // The first row of the tile as a function of the loop's variable.
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), first);
  auto inLoop = [&](Operation *op) { return loop->isProperAncestor(op); };
  auto valueAt = [&](OpFoldResult offset) -> OpFoldResult {
    auto value = dyn_cast<Value>(offset);
    if (!value)
      return offset;
    llvm::SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.filter = inLoop;
    options.inclusive = true;
    if (value.getDefiningOp() && inLoop(value.getDefiningOp()))
      (void)getBackwardSlice(value, &slice, options);
    for (Operation *op : slice)
      if (!mapping.contains(op->getResult(0)))
        b.clone(*op, mapping);
    return mapping.lookupOrDefault(value);
  };
  SmallVector<OpFoldResult> offsets =
                                llvm::map_to_vector(source.tile.getMixedOffsets(), valueAt),
                            sizes = source.tile.getMixedSizes(),
                            strides = source.tile.getMixedStrides();
  sizes[source.keyDim] = b.getIndexAttr(count);
  Value base = source.tile.getSource();
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(
      {count, cast<MemRefType>(operand.getType()).getDimSize(1)}, cast<MemRefType>(base.getType()),
      offsets, sizes, strides);
  Value rows = memref::SubViewOp::create(b, type, base, offsets, sizes, strides);
  Value exist = b.subtract(memref::DimOp::create(b, base, source.keyDim),
                           b.toValue(offsets[source.keyDim]));
  return {rows, exist};
}

void Staging::copyTiles(ThreadBuilder &b, scf::ForOp loop, Value first, Value stage) {
  OnlineStepOp step = chain.steps.front();
  if (loop)
    loop.walk([&](OnlineStepOp inner) { step = inner; });
  for (auto [operand, tile, tiles] :
       {std::tuple(step.getKey(), &*keyTile, sharedKeys),
        std::tuple(step.getValue(), &*valueTile, sharedValues)}) {
    auto [rows, exist] = rowsAt(b, operand, loop, first, tile->rows);
    tile->copy(b, rows, exist, /*validColumns=*/{}, hasAlignedRows(operand), tiles, stage, threads);
  }
  NVVM::CpAsyncCommitGroupOp::create(b);
}

LogicalResult Staging::run() {
  OnlineStepOp first = chain.steps.front();
  for (OnlineStepOp step : chain.steps) {
    Type element = getElementTypeOrSelf(step.getQuery().getType());
    for (Value operand : {step.getQuery(), step.getKey(), step.getValue()}) {
      auto type = cast<MemRefType>(operand.getType());
      if (type.isDynamicDim(1) || type.getElementType() != element)
        return step.emitOpError()
               << "expected queries, keys and values of one type and of known head sizes, got "
               << type;
    }
    if (!chain.loops.empty() && !(Source::get(step.getKey()) && Source::get(step.getValue())))
      return step.emitOpError() << "expected tiles of buffers of keys and values, got "
                                << step.getKey().getType();
  }
  int64_t queries = cast<MemRefType>(first.getAcc().getType()).getDimSize(0);
  if (auto view = first.getAcc().getDefiningOp<memref::SubViewOp>())
    queries = view.getSourceType().getDimSize(0);
  int64_t stages = chain.loops.empty() ? 1 : 2;
  SharedTile queryTile = tileOf(first.getQuery(), queries);
  keyTile = tileOf(first.getKey(), keys());
  valueTile = tileOf(first.getValue(), keys());
  Value sharedQueries = queryTile.allocate(top, 1);
  sharedKeys = keyTile->allocate(top, stages);
  sharedValues = valueTile->allocate(top, stages);
  // Which of two tiles the next step reads. LLVM keeps it in a register.
  Value zero = top.constant(0);
  Value turn = memref::AllocaOp::create(top, MemRefType::get({}, top.getIndexType()));
  memref::StoreOp::create(b, zero, turn, ValueRange{});

  queryTile.clearPadding(b, sharedQueries, 1, threads);
  keyTile->clearPadding(b, sharedKeys, stages, threads);
  valueTile->clearPadding(b, sharedValues, stages, threads);
  Value query = first.getQuery();
  queryTile.copy(b, query, memref::DimOp::create(b, query, 0), /*validColumns=*/{},
                 hasAlignedRows(query), sharedQueries, zero, threads);
  copyTiles(b, chain.loops.empty() ? scf::ForOp() : chain.loops.front(),
            chain.loops.empty() ? Value() : chain.loops.front().getLowerBound(), zero);
  Value shared = queryTile.view(b, sharedQueries, zero, memref::getMixedSize(b, b.getLoc(), query, 0));

  auto replaceOperands = [&](OnlineStepOp step, Value stage) {
    ThreadBuilder at(step.getLoc(), step);
    OpFoldResult count = memref::getMixedSize(at, at.getLoc(), step.getKey(), 0);
    step.getQueryMutable().assign(shared);
    step.getKeyMutable().assign(keyTile->view(at, sharedKeys, stage, count));
    step.getValueMutable().assign(valueTile->view(at, sharedValues, stage, count));
  };
  if (chain.loops.empty()) {
    waitForCopies(b);
    replaceOperands(first, zero);
    return success();
  }
  for (scf::ForOp loop : chain.loops) {
    ThreadBuilder in(loop.getLoc(), OpBuilder::atBlockBegin(loop.getBody()));
    waitForCopies(in);
    Value stage = memref::LoadOp::create(in, turn, ValueRange{}),
          other = in.subtract(in.constant(1), stage);
    Value next = in.min(in.add(loop.getInductionVar(), loop.getStep()), loop.getUpperBound());
    copyTiles(in, loop, next, other);
    memref::StoreOp::create(in, other, turn, ValueRange{});
    SmallVector<OnlineStepOp> steps;
    loop.walk([&](OnlineStepOp step) { steps.push_back(step); });
    for (OnlineStepOp step : steps)
      replaceOperands(step, stage);
  }
  ThreadBuilder after(first.getLoc(), chain.loops.back()->getBlock(),
                      std::next(chain.loops.back()->getIterator()));
  waitForCopies(after);
  return success();
}

/// The chains of `block`, in order.
static SmallVector<Chain> findChains(Block &block) {
  SmallVector<Chain> chains;
  for (Operation &op : block) {
    if (auto step = dyn_cast<OnlineStepOp>(op)) {
      chains.push_back({{}, {step}});
      continue;
    }
    auto loop = dyn_cast<scf::ForOp>(op);
    SmallVector<OnlineStepOp> steps;
    if (loop)
      loop.walk([&](OnlineStepOp step) { steps.push_back(step); });
    if (steps.empty())
      continue;
    bool continues = !chains.empty() && !chains.back().loops.empty() &&
                     chains.back().loops.back().getUpperBound() == loop.getLowerBound() &&
                     chains.back().steps.front().getAcc() == steps.front().getAcc();
    if (!continues)
      chains.emplace_back();
    chains.back().loops.push_back(loop);
    chains.back().steps.append(steps);
  }
  return chains;
}

namespace {
struct StageTiles : attn::impl::StageTilesBase<StageTiles> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isDeclaration() || !function->hasAttr(AttnDialect::kLaunchAttr))
      return;
    for (Chain &chain : findChains(function.front()))
      if (failed(Staging(function, chain).run()))
        return signalPassFailure();
  }
};
} // namespace
