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
// Tiles of keys and values are double-buffered: while one step computes, the copies of the next tile run. Rows beyond
// the last key are zeros. Loops are handled together if each begins where the one before ends. A step outside such a
// loop waits for its own tile.
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

/// Keys that products of matrices compute together.
static constexpr int64_t kKeysOfProduct = 16;

namespace {

/// The operands of a step, or of a pass that computes probabilities, which has no value.
struct StepTiles {
  Operation *op;
  OpOperand *query, *key, *value;

  SmallVector<OpOperand *> keyAndValue() const {
    return value ? SmallVector<OpOperand *>{key, value} : SmallVector<OpOperand *>{key};
  }
  /// The queries of a full tile: those of the buffer that the maxima are a part of.
  int64_t getTileQueries() const {
    Value max = isa<OnlineStepOp>(op) ? cast<OnlineStepOp>(op).getMax()
                                      : cast<OnlineProbabilitiesOp>(op).getMax();
    while (auto view = max.getDefiningOp<memref::SubViewOp>())
      max = view.getSource();
    return cast<MemRefType>(max.getType()).getDimSize(0);
  }
};

static SmallVector<StepTiles> findSteps(Operation *op) {
  SmallVector<StepTiles> steps;
  op->walk([&](Operation *inner) {
    if (auto step = dyn_cast<OnlineStepOp>(inner))
      steps.push_back(
          {inner, &step.getQueryMutable(), &step.getKeyMutable(), &step.getValueMutable()});
    else if (auto step = dyn_cast<OnlineProbabilitiesOp>(inner))
      steps.push_back({inner, &step.getQueryMutable(), &step.getKeyMutable(), nullptr});
  });
  return steps;
}

/// The loops, or the one op without loops, that share the tiles of an attention.
struct Chain {
  SmallVector<Operation *> ops; // scf.for, or one other op
  SmallVector<StepTiles> steps;

  scf::ForOp loop(unsigned i) { return dyn_cast<scf::ForOp>(ops[i]); }
  bool hasLoops() { return isa<scf::ForOp>(ops.front()); }
};

/// Copies of the tiles of one chain.
class Staging {
public:
  Staging(func::FuncOp function, Chain &chain)
      : b(function.getLoc(), chain.ops.front()),
        top(function.getLoc(), OpBuilder::atBlockBegin(&function.front())), chain(chain),
        threads(getThreads(function)) {}

  LogicalResult run();

private:
  /// A tile that steps read: where it is in shared memory.
  struct Staged {
    SharedTile tile;
    Value buffer;
  };

  LogicalResult verify();
  /// The keys of a tile.
  int64_t keys();
  Staged stage(Value operand, int64_t rows, int64_t stages);
  /// `count` rows of `operand`, a tile in a step of `op`, and how many of them exist. In a loop, they begin where the
  /// tile would at `first` in place of the loop's variable.
  std::pair<Value, Value> rowsAt(ThreadBuilder &b, Value operand, Operation *op, Value first,
                                 int64_t count);
  void copyTiles(ThreadBuilder &b, Operation *op, Value first, Value turn);
  void replaceOperands(Operation *op, Value turn);

  ThreadBuilder b, top;
  Chain &chain;
  int64_t threads;
  Staged queries;
  SmallVector<Staged, 2> tiles; // of keys, and of values
  Value query;                  // the staged tile
};

} // namespace

LogicalResult Staging::verify() {
  for (const StepTiles &step : chain.steps) {
    Type element = getElementTypeOrSelf(step.query->get().getType());
    SmallVector<OpOperand *> operands = step.keyAndValue();
    operands.push_back(step.query);
    for (OpOperand *operand : operands) {
      auto type = cast<MemRefType>(operand->get().getType());
      if (type.isDynamicDim(1) || type.getElementType() != element)
        return step.op->emitOpError()
               << "expected queries, keys and values of one type and of known head sizes, got "
               << type;
    }
    for (OpOperand *operand : step.keyAndValue())
      if (chain.hasLoops() && !operand->get().getDefiningOp<memref::SubViewOp>())
        return step.op->emitOpError()
               << "expected tiles of buffers of keys and values, got " << operand->get().getType();
  }
  return success();
}

int64_t Staging::keys() {
  if (chain.hasLoops())
    return llvm::alignTo(*getConstantIntValue(chain.loop(0).getStep()), kKeysOfProduct);
  auto type = cast<MemRefType>(chain.steps.front().key->get().getType());
  return llvm::alignTo(type.getDimSize(0), kKeysOfProduct);
}

Staging::Staged Staging::stage(Value operand, int64_t rows, int64_t stages) {
  auto type = cast<MemRefType>(operand.getType());
  SharedTile tile = {rows, type.getDimSize(1), type.getElementType()};
  Value buffer = tile.allocate(top, stages);
  tile.clearPadding(b, buffer, stages, threads);
  return {tile, buffer};
}

std::pair<Value, Value> Staging::rowsAt(ThreadBuilder &b, Value operand, Operation *op, Value first,
                                        int64_t count) {
  // What the tile depends on inside of `op`, at another key.
  IRMapping mapping;
  if (first)
    mapping.map(cast<scf::ForOp>(op).getInductionVar(), first);
  auto valueAt = [&](Value value) -> Value {
    Operation *definition = value.getDefiningOp();
    if (!definition || !op->isProperAncestor(definition))
      return mapping.lookupOrDefault(value);
    llvm::SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.filter = [&](Operation *inner) { return op->isProperAncestor(inner); };
    options.inclusive = true;
    (void)getBackwardSlice(value, &slice, options);
    for (Operation *inner : slice)
      if (!mapping.contains(inner->getResult(0)))
        b.clone(*inner, mapping);
    return mapping.lookup(value);
  };
  if (!first) {
    Value tile = valueAt(operand);
    return {tile, memref::DimOp::create(b, tile, 0)};
  }
  auto tile = operand.getDefiningOp<memref::SubViewOp>();
  unsigned keyDim = tile.getDroppedDims().find_first_unset();
  SmallVector<OpFoldResult> offsets =
      llvm::map_to_vector(tile.getMixedOffsets(), [&](OpFoldResult offset) -> OpFoldResult {
        auto value = dyn_cast<Value>(offset);
        return value ? OpFoldResult(valueAt(value)) : offset;
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
  for (auto [operand, staged] : llvm::zip_equal(step.keyAndValue(), tiles)) {
    Value tile = operand->get();
    auto [rows, exist] = rowsAt(b, tile, op, first, staged.tile.rows);
    staged.tile.copy(b, rows, exist, /*validColumns=*/{}, hasAlignedRows(tile), staged.buffer, turn,
                     threads);
  }
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
  if (failed(verify()))
    return failure();
  StepTiles first = chain.steps.front();
  int64_t stages = chain.hasLoops() ? 2 : 1;
  Value zero = top.constant(0);
  queries = stage(first.query->get(), first.getTileQueries(), 1);
  for (OpOperand *operand : first.keyAndValue())
    tiles.push_back(stage(operand->get(), keys(), stages));
  // The number, 0 or 1, of the buffer that the next step reads. LLVM keeps it in a register.
  Value turn = memref::AllocaOp::create(top, MemRefType::get({}, top.getIndexType()));
  memref::StoreOp::create(b, zero, turn, ValueRange{});

  auto [source, numQueries] = rowsAt(b, first.query->get(), chain.ops.front(), /*first=*/{}, 0);
  queries.tile.copy(b, source, numQueries, /*validColumns=*/{}, hasAlignedRows(source),
                    queries.buffer, zero, threads);
  query =
      queries.tile.view(b, queries.buffer, zero, memref::getMixedSize(b, b.getLoc(), source, 0));
  copyTiles(b, chain.ops.front(), chain.hasLoops() ? chain.loop(0).getLowerBound() : Value(), zero);
  if (!chain.hasLoops()) {
    waitForCopies(b);
    replaceOperands(chain.ops.front(), zero);
    b.setInsertionPointAfter(chain.ops.front());
    gpu::BarrierOp::create(b); // from here on, other threads may overwrite the tiles
    return success();
  }
  for (unsigned i = 0; i < chain.ops.size(); ++i) {
    scf::ForOp loop = chain.loop(i);
    ThreadBuilder in(loop.getLoc(), OpBuilder::atBlockBegin(loop.getBody()));
    waitForCopies(in);
    Value stage = memref::LoadOp::create(in, turn, ValueRange{}),
          other = in.subtract(in.constant(1), stage);
    Value next = in.min(in.add(loop.getInductionVar(), loop.getStep()), loop.getUpperBound());
    copyTiles(in, loop, next, other);
    memref::StoreOp::create(in, other, turn, ValueRange{});
    replaceOperands(loop, stage);
  }
  ThreadBuilder after(b.getLoc(), chain.ops.back()->getBlock(),
                      std::next(chain.ops.back()->getIterator()));
  waitForCopies(after);
  return success();
}

/// The chains of `block`, in order.
static SmallVector<Chain> findChains(Block &block) {
  SmallVector<Chain> chains;
  for (Operation &op : block) {
    SmallVector<StepTiles> steps = findSteps(&op);
    if (steps.empty())
      continue;
    auto loop = dyn_cast<scf::ForOp>(op);
    auto before = chains.empty() ? scf::ForOp() : dyn_cast<scf::ForOp>(chains.back().ops.back());
    bool continues = loop && before && before.getUpperBound() == loop.getLowerBound() &&
                     bool(chains.back().steps.front().value) == bool(steps.front().value);
    if (!continues)
      chains.emplace_back();
    chains.back().ops.push_back(&op);
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
