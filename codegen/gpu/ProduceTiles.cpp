//===- ProduceTiles.cpp - copy tiles with separate warps -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func private @f.attend(...) attributes {attn.launch = #attn.launch<threads = 256>} {
//     scf.for %j = %lo to %full_hi step %c128 { attn.online_step ins(%q, %k[%j, 128 rows], %v[%j, 128 rows]) ... }
//     scf.for %j = %full_hi to %hi step %c128 { attn.online_step ins(%q, %k[%j, %n rows], %v[%j, %n rows]) .. mask(M) }
// becomes
//   func.func private @f.attend(...) attributes {attn.launch = #attn.launch<threads = 256, producers = 128>} {
//     %map = nvgpu.tma.create.descriptor %k box[128, 64]        // a tensor map; another one for %v
//     scf.if %is_producer {                                     // the last four warps, of which one thread copies
//       scf.for %j = %lo to %hi step %c128 {                    // one loop for each of the loops above
//         wait until a tile in shared memory is empty, start to copy a box of %k; the same for %v
//       }
//     } else {
//       copy %q
//       scf.if %lo < %full_hi {
//         wait for %k
//         attn.after_scores { release %k }
//         attn.online_step {attn.overlap = #attn.overlap<begin>}
//         scf.for %j = %lo + %c128 to %full_hi step %c128 {
//           wait for %k and for the previous step's %v
//           attn.after_scores { release %k }
//           attn.online_step {attn.overlap = #attn.overlap<middle>}
//           release %v
//         }
//         wait for %v, attn.online_step {attn.overlap = #attn.overlap<end>}, release %v
//       }
//       scf.for %j = %full_hi to %hi step %c128 {
//         wait for both, attn.after_scores { release %k }, attn.online_step, release %v
//       }
//     }
//
// The step marked `begin` computes the scores and probabilities of its tile, the step marked `end` adds the products
// with the values of the previous tile, and the steps marked `middle` do both. The softmax of a tile then overlaps with
// products. Masked steps and steps on partial tiles do not overlap. A step reads its keys only for the scores, so their
// tile is released before the softmax, and the next copy starts earlier. A circular buffer has as many tiles as
// `attn.stages` on its steps says, or 2 if no step has this attribute.
//
// If a packed mask may hide tiles, a warp of the producers tests the mask like the consumers, and one of its threads
// copies the tiles that are not hidden:
//
//   scf.for %j = %lo to %hi step %c128 {
//     %begin, %end, %all = attn.test_mask %words[.., tile %j]
//     scf.if %begin < %end {
//       attn.online_step ins(%q, %k[%j, 128 rows], %v[%j, 128 rows]) ...
//     }
//   }
// becomes, for producers and consumers,
//   scf.for %j = %lo to %hi step %c128 {
//     %begin, %end, %all = attn.test_mask %words[.., tile %j]
//     scf.if %begin < %end { scf.if %is_producer { copy %k, copy %v } }
//   }
//   scf.for %j = %lo to %hi step %c128 {
//     %begin, %end, %all = attn.test_mask %words[.., tile %j]
//     scf.if %begin < %end { wait for both, attn.after_scores { release %k }, attn.online_step, release %v }
//   }
//
// For a step outside of loops, the producer copies one tile of each tensor. Attentions that read tiles of the same
// shapes from the same tensors share buffers in shared memory.
//
// The pass rewrites a task if wgmma computes all its attentions, if none of them returns its probabilities, and if TMA
// can copy the keys and values: these must be in arguments that the task does not write, at offsets that the producer
// can compute. StageTiles rewrites all other tasks. Copies fill rows and columns outside of a tensor with zeros.
// Test: test/codegen/gpu/produce-tiles.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Chains.h"
#include "codegen/gpu/Passes.h"
#include "codegen/gpu/TilePipeline.h"
#include "codegen/gpu/WarpgroupMultiply.h"
#include "runtime/attn_kernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PRODUCETILES
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

/// A multiprocessor has 65536 registers, which is 512 times the number of threads of a warpgroup. The warpgroups of a
/// block divide these 512 among them: a thread of the producers keeps 32 registers, and the threads of each other
/// warpgroup get an equal part of the rest. setmaxnreg takes multiples of 8.
static constexpr int64_t kRegisters = 512, kProducerRegisters = 32, kRegisterUnit = 8;

namespace {
/// A tile that consists of consecutive rows of an argument of the task, with all columns.
struct Box {
  BlockArgument tensor;
  /// The coordinates of the first element of the tile. Each coordinate is the sum of the offsets of several views.
  SmallVector<SmallVector<OpFoldResult, 2>> offsets;
  unsigned rowDim;

  /// Returns none if `tile` is not such a tile, or if its rows do not begin at multiples of 16 bytes.
  static std::optional<Box> find(func::FuncOp function, Value tile);
};

/// Loops, and other ops with steps, whose tiles have the same shapes and come from the same tensors.
struct Group {
  SmallVector<Operation *> ops;
  StepTiles first;                        ///< the first step
  int64_t keys;                           ///< the largest number of keys of a tile
  int64_t stages;                         ///< the largest number of stages of a step
  SmallVector<TilePipeline, 2> pipelines; ///< one of keys, and one of values
  SmallVector<Value, 2> maps, turns;
  StagedTile queries;
  /// The tile that `queries` contains, and a view of `queries`.
  Value lastQuery = {}, stagedQuery = {};
  bool overlaps = false; ///< whether an earlier loop overlaps products with a softmax
};

class Producing {
public:
  Producing(func::FuncOp function, SmallVector<Chain> &chains)
      : function(function), chains(chains), threads(getThreads(function)),
        top(function.getLoc(), OpBuilder::atBlockBegin(&function.front())) {}

  /// Whether the pass rewrites the task.
  bool applies();
  void run();

private:
  bool canProduce(Operation *op);
  scf::IfOp findCopyTest(scf::ForOp loop);
  Value createMap(const Box &box, const SharedTile &tile);
  void makeGroups();
  void produce(ThreadBuilder &b);
  void copyTiles(ThreadBuilder &b, Operation *op, Group &group, IRMapping mapping);
  void consume(Operation *op, Group &group);
  void consumeOp(Operation *op, Group &group, ThreadBuilder &first, ThreadBuilder &last);
  void overlap(scf::ForOp loop, Group &group);

  func::FuncOp function;
  SmallVector<Chain> &chains;
  int64_t threads;
  Value isProducer;   ///< whether this thread starts copies
  bool tests = false; ///< whether a warp of producers tests which tiles to copy
  ThreadBuilder top; ///< inserts before the branch between producers and consumers
  SmallVector<Group, 0> groups;
  /// Each op with steps, and the number of its group.
  SmallVector<std::pair<Operation *, unsigned>> order;
};
} // namespace

std::optional<Box> Box::find(func::FuncOp function, Value tile) {
  auto type = cast<MemRefType>(tile.getType());
  Box box;
  box.offsets.resize(type.getRank());
  box.rowDim = 0;
  unsigned columnDim = 1;
  while (auto view = tile.getDefiningOp<memref::SubViewOp>()) {
    if (!view.hasUnitStride())
      return std::nullopt;
    llvm::SmallBitVector dropped = view.getDroppedDims();
    SmallVector<SmallVector<OpFoldResult, 2>> offsets;
    SmallVector<unsigned> kept; // for each dimension of the view, the dimension of the source
    for (auto [dim, offset] : llvm::enumerate(view.getMixedOffsets())) {
      offsets.emplace_back();
      if (!isConstantIntValue(offset, 0))
        offsets.back().push_back(offset);
      if (dropped.test(dim))
        continue;
      llvm::append_range(offsets.back(), box.offsets[kept.size()]);
      kept.push_back(dim);
    }
    box.rowDim = kept[box.rowDim];
    columnDim = kept[columnDim];
    box.offsets = std::move(offsets);
    tile = view.getSource();
  }
  auto argument = dyn_cast<BlockArgument>(tile);
  if (!argument || argument.getOwner() != &function.front() || !hasAlignedRows(argument))
    return std::nullopt;
  auto source = cast<MemRefType>(argument.getType());
  if (source.getRank() > ATTN_TENSOR_MAP_RANK || columnDim + 1 != source.getRank() ||
      !box.offsets.back().empty() || source.getShape().back() != type.getDimSize(1))
    return std::nullopt;
  box.tensor = argument;
  return box;
}

/// Whether the producers can copy the tiles of `op`, a loop or another op with steps.
bool Producing::canProduce(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (loop && !llvm::all_of(loop->getOperands(),
                            [&](Value bound) { return canClone(function, bound, scf::ForOp()); }))
    return false;
  return llvm::all_of(findSteps(op), [&](const StepTiles &step) {
    // In each iteration of the loop, the producer copies one tile of keys and one tile of values. Steps that compute
    // probabilities have no values, and would need another pipeline.
    if (!step.value || step.op->getParentOfType<scf::ForOp>() != loop)
      return false;
    return llvm::all_of(step.keyAndValue(), [&](OpOperand *operand) {
      std::optional<Box> box = Box::find(function, operand->get());
      if (!box || !findConstantArgument(function, box->tensor))
        return false;
      for (ArrayRef<OpFoldResult> offsets : box->offsets)
        for (OpFoldResult offset : offsets)
          if (auto value = dyn_cast<Value>(offset); value && !canClone(function, value, loop))
            return false;
      return true;
    });
  });
}

bool Producing::applies() {
  return !chains.empty() && llvm::all_of(chains, [&](Chain &chain) {
    return chain.isByWarpgroups(threads) &&
           llvm::all_of(chain.ops, [&](Operation *op) { return canProduce(op); });
  });
}

/// Creates a tensor map, which OutlineKernels turns into a parameter of the kernel.
Value Producing::createMap(const Box &box, const SharedTile &tile) {
  auto shape = MemRefType::get({tile.rows, kSwizzledColumns}, tile.element,
                               MemRefLayoutAttrInterface(), sharedSpace(top.getContext()));
  auto type = nvgpu::TensorMapDescriptorType::get(
      top.getContext(), shape, nvgpu::TensorMapSwizzleKind::SWIZZLE_128B,
      nvgpu::TensorMapL2PromoKind::L2PROMO_256B, nvgpu::TensorMapOOBKind::OOB_ZERO,
      nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE);
  auto source = cast<MemRefType>(box.tensor.getType());
  SmallVector<Value> sizes(source.getRank(), top.constant(1));
  sizes[box.rowDim] = top.constant(tile.rows);
  sizes.back() = top.constant(kSwizzledColumns);
  Value tensor = memref::CastOp::create(
      top, UnrankedMemRefType::get(tile.element, source.getMemorySpace()), box.tensor);
  Value map = nvgpu::TmaCreateDescriptorOp::create(top, type, tensor, sizes);
  return UnrealizedConversionCastOp::create(top, LLVM::LLVMPointerType::get(top.getContext()), map)
      .getResult(0);
}

/// Whether the tiles of two steps have the same shapes, except for the numbers of keys.
static bool haveSameTiles(const StepTiles &a, const StepTiles &b) {
  auto same = [](OpOperand *x, OpOperand *y) {
    auto of = cast<MemRefType>(x->get().getType()), to = cast<MemRefType>(y->get().getType());
    return of.getElementType() == to.getElementType() && of.getDimSize(1) == to.getDimSize(1);
  };
  return a.getTileQueries() == b.getTileQueries() && same(a.query, b.query) && same(a.key, b.key) &&
         same(a.value, b.value);
}

/// Whether two steps read tiles of the same tensors.
static bool haveSameTensors(func::FuncOp function, const StepTiles &a, const StepTiles &b) {
  auto tensors = [&](const StepTiles &step) {
    return llvm::map_to_vector(step.keyAndValue(), [&](OpOperand *operand) {
      return Box::find(function, operand->get())->tensor;
    });
  };
  return tensors(a) == tensors(b);
}

void Producing::makeGroups() {
  for (Chain &chain : chains)
    for (Operation *op : chain.ops) {
      StepTiles step = findSteps(op).front();
      auto *found = llvm::find_if(groups, [&](Group &group) {
        return haveSameTiles(group.first, step) && haveSameTensors(function, group.first, step);
      });
      if (found == groups.end())
        found = &groups.emplace_back(Group{{}, step, 0, PlanAttr::kLeastStages, {}, {}, {}, {}});
      found->ops.push_back(op);
      found->keys = std::max(found->keys, chain.getTileKeys());
      if (auto stages = step.op->getAttrOfType<IntegerAttr>(AttnDialect::kStagesAttr))
        found->stages = std::max(found->stages, stages.getInt());
      order.push_back({op, unsigned(found - groups.begin())});
    }
}

/// The op of `loop` that skips hidden tiles, if the producers can skip them too. Null otherwise.
scf::IfOp Producing::findCopyTest(scf::ForOp loop) {
  scf::IfOp test = loop ? findTileTest(loop) : scf::IfOp();
  return test && canClone(function, test.getCondition(), loop) ? test : scf::IfOp();
}

/// Emits the copies of the tiles for one iteration of `op`. `mapping` has the replacement for the loop variable. It is
/// a copy, because later ops must not use values that are computed in the branch of the producer.
void Producing::copyTiles(ThreadBuilder &b, Operation *op, Group &group, IRMapping mapping) {
  ThreadBuilder::InsertionGuard guard(b);
  if (tests)
    b.setInsertionPointToStart(scf::IfOp::create(b, isProducer).thenBlock());
  for (auto [i, operand] : llvm::enumerate(findSteps(op).front().keyAndValue())) {
    Box box = *Box::find(function, operand->get());
    SmallVector<Value> coordinates;
    for (ArrayRef<OpFoldResult> offsets : box.offsets) {
      coordinates.push_back(b.constant(0));
      for (OpFoldResult offset : offsets)
        coordinates.back() =
            b.add(coordinates.back(), isa<Attribute>(offset)
                                          ? b.toValue(offset)
                                          : cloneSlice(b, cast<Value>(offset), function, mapping));
    }
    group.pipelines[i].produce(b, group.turns[i], group.maps[i], coordinates);
  }
}

/// Emits the code of the thread that copies tiles, or of its warp if the warp tests the mask, for all ops in order.
void Producing::produce(ThreadBuilder &b) {
  IRMapping mapping;
  for (auto [op, number] : order) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop) {
      copyTiles(b, op, groups[number], mapping);
      continue;
    }
    Value lower = cloneSlice(b, loop.getLowerBound(), function, mapping),
          upper = cloneSlice(b, loop.getUpperBound(), function, mapping),
          step = cloneSlice(b, loop.getStep(), function, mapping);
    auto copies = scf::ForOp::create(b, lower, upper, step);
    ThreadBuilder in(b.getLoc(), OpBuilder::atBlockBegin(copies.getBody()));
    IRMapping inLoop = mapping;
    inLoop.map(loop.getInductionVar(), copies.getInductionVar());
    if (scf::IfOp test = findCopyTest(loop)) {
      Value isKept = cloneSlice(in, test.getCondition(), function, inLoop);
      in.setInsertionPointToStart(scf::IfOp::create(in, isKept).thenBlock());
    }
    copyTiles(in, op, groups[number], inLoop);
  }
}

/// The step of `loop`. Null if the body of the loop has another step or other side effects, if the step has a mask, or
/// if its tile does not have `keys` keys.
static OnlineStepOp findPlainStep(scf::ForOp loop, int64_t keys) {
  OnlineStepOp plain;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto step = dyn_cast<OnlineStepOp>(op)) {
      if (plain || step.getMaskAttr() ||
          cast<MemRefType>(step.getKey().getType()).getDimSize(0) != keys)
        return {};
      plain = step;
    } else if (!isPure(&op) && !isa<memref::AllocaOp>(op)) {
      return {};
    }
  }
  return plain;
}

static Value viewOf(ThreadBuilder &b, const TilePipeline &pipeline, Value turn, Value operand) {
  return pipeline.view(b, turn, memref::getMixedSize(b, b.getLoc(), operand, 0));
}

/// Releases the keys of `step` as soon as it has computed its scores.
static void releaseKeys(OnlineStepOp step, const TilePipeline &keys, Value turn) {
  ThreadBuilder b(step.getLoc(), step);
  auto after = AfterScoresOp::create(b);
  ThreadBuilder in(step.getLoc(), OpBuilder::atBlockBegin(&after.getBody().emplaceBlock()));
  keys.release(in, turn);
}

/// Returns true if `block` runs exactly one step, whichever branches it takes.
static bool runsOneStep(Block &block) {
  Operation *found = nullptr;
  for (Operation &op : block) {
    if (findSteps(&op).empty())
      continue;
    if (found)
      return false;
    found = &op;
  }
  auto branch = dyn_cast_if_present<scf::IfOp>(found);
  return isa_and_present<OnlineStepOp>(found) ||
         (branch && branch.elseBlock() && runsOneStep(*branch.thenBlock()) &&
          runsOneStep(*branch.elseBlock()));
}

/// Waits at `first` for the tiles of the steps in `op`, and releases them, the values at `last`.
void Producing::consumeOp(Operation *op, Group &group, ThreadBuilder &first, ThreadBuilder &last) {
  for (auto [pipeline, turn] : llvm::zip_equal(group.pipelines, group.turns))
    pipeline.wait(first, turn);
  for (const StepTiles &step : findSteps(op)) {
    ThreadBuilder b(step.op->getLoc(), step.op);
    for (auto [pipeline, turn, operand] :
         llvm::zip_equal(group.pipelines, group.turns, step.keyAndValue()))
      operand->assign(viewOf(b, pipeline, turn, operand->get()));
    step.query->assign(group.stagedQuery);
  }
  // A step releases the keys, unless it is in a branch that may not run.
  if (isa<OnlineStepOp>(op) || runsOneStep(*first.getInsertionBlock()))
    for (const StepTiles &step : findSteps(op))
      releaseKeys(cast<OnlineStepOp>(step.op), group.pipelines[0], group.turns[0]);
  else
    group.pipelines[0].release(last, group.turns[0]);
  group.pipelines[1].release(last, group.turns[1]);
}

/// Rewrites `loop` so that the step of each iteration multiplies the probabilities and values of the previous
/// iteration.
void Producing::overlap(scf::ForOp loop, Group &group) {
  TilePipeline &keys = group.pipelines[0], &values = group.pipelines[1];
  Value turnOfKeys = group.turns[0], turnOfValues = group.turns[1];
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  // Clones the body for the tile at `first`.
  auto createStep = [&](ThreadBuilder &b, Value first, Overlap overlap) {
    bool computesScores = overlap != Overlap::End, addsValues = overlap != Overlap::Begin;
    if (computesScores)
      keys.wait(b, turnOfKeys);
    if (addsValues)
      values.wait(b, turnOfValues);
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), first);
    OnlineStepOp step;
    for (Operation &op : loop.getBody()->without_terminator()) {
      Operation *clone = b.clone(op, mapping);
      if (auto online = dyn_cast<OnlineStepOp>(clone))
        step = online;
    }
    step->setAttr(AttnDialect::kOverlapAttr, OverlapAttr::get(b.getContext(), overlap));
    ThreadBuilder at(step.getLoc(), step);
    Value key = viewOf(at, keys, turnOfKeys, step.getKey()),
          value = viewOf(at, values, turnOfValues, step.getValue());
    step.getKeyMutable().assign(key);
    step.getValueMutable().assign(value);
    step.getQueryMutable().assign(group.stagedQuery);
    if (computesScores)
      releaseKeys(step, keys, turnOfKeys);
    if (addsValues)
      values.release(b, turnOfValues);
  };
  ThreadBuilder b(loop.getLoc(), loop);
  auto hasTiles = scf::IfOp::create(b, b.isLess(lower, upper));
  ThreadBuilder in(loop.getLoc(), OpBuilder::atBlockBegin(hasTiles.thenBlock()));
  createStep(in, lower, Overlap::Begin);
  auto rest = scf::ForOp::create(in, in.add(lower, loop.getStep()), upper, loop.getStep());
  ThreadBuilder body(loop.getLoc(), OpBuilder::atBlockBegin(rest.getBody()));
  createStep(body, rest.getInductionVar(), Overlap::Middle);
  createStep(in, lower, Overlap::End);
  loop.erase();
}

void Producing::consume(Operation *op, Group &group) {
  ThreadBuilder b(function.getLoc(), op);
  IRMapping mapping;
  Value query = cloneSlice(b, findSteps(op).front().query->get(), op, mapping);
  if (query != group.lastQuery) {
    if (group.lastQuery)
      gpu::BarrierOp::create(b); // other warps may still read the previous queries
    group.lastQuery = query;
    group.stagedQuery = copyQueries(b, query, group.queries, threads);
    NVVM::CpAsyncCommitGroupOp::create(b);
    waitForCopies(b, /*toWarpgroups=*/true);
  }
  auto loop = dyn_cast<scf::ForOp>(op);
  if (loop && findPlainStep(loop, group.keys)) {
    if (group.overlaps) // all warpgroups must first finish their turns in the earlier loop
      gpu::BarrierOp::create(b);
    group.overlaps = true;
    return overlap(loop, group);
  }
  if (!loop) {
    ThreadBuilder last(op->getLoc(), op->getNextNode());
    return consumeOp(op, group, b, last);
  }
  scf::IfOp test = findCopyTest(loop);
  Block *body = test ? test.thenBlock() : loop.getBody();
  b.setInsertionPointToStart(body);
  ThreadBuilder last(op->getLoc(), body->getTerminator());
  consumeOp(op, group, b, last);
}

void Producing::run() {
  Operation *first = &function.front().front(), *end = function.front().getTerminator();
  // Before the branch, allocate the barriers and the memory that all threads use.
  makeGroups();
  for (Group &group : groups) {
    const StepTiles &step = group.first;
    ThreadBuilder b(function.getLoc(), group.ops.front());
    group.queries = StagedTile::create(top, b, step.query->get(), step.getTileQueries(),
                                       /*stages=*/1, /*isSwizzled=*/true, threads);
    for (OpOperand *operand : step.keyAndValue()) {
      TilePipeline &pipeline =
          group.pipelines.emplace_back(top, operand->get(), group.keys, group.stages);
      group.turns.push_back(TilePipeline::createTurn(top));
      group.maps.push_back(createMap(*Box::find(function, operand->get()), pipeline.getTile()));
    }
  }
  Value thread = top.thread(), producer = top.constant(threads);
  isProducer = arith::CmpIOp::create(top, arith::CmpIPredicate::eq, thread, producer);
  auto starts = scf::IfOp::create(top, isProducer);
  ThreadBuilder start(function.getLoc(), OpBuilder::atBlockBegin(starts.thenBlock()));
  for (Group &group : groups)
    for (TilePipeline &pipeline : group.pipelines)
      pipeline.initialize(start, threads / kWarp);
  NVVM::FenceMbarrierInitOp::create(start);
  showToWarpgroups(start);
  NVVM::Barrier0Op::create(top); // waits for all threads; gpu.barrier waits for consumers only

  // The consumers run all other code.
  auto branch = scf::IfOp::create(top, top.isLess(thread, producer), /*withElseRegion=*/true);
  Block &consumers = *branch.thenBlock();
  consumers.getOperations().splice(consumers.begin(), function.front().getOperations(),
                                   first->getIterator(), end->getIterator());
  ThreadBuilder consumer(function.getLoc(), OpBuilder::atBlockBegin(&consumers)),
      others(function.getLoc(), OpBuilder::atBlockBegin(branch.elseBlock()));
  int64_t warpgroups = threads / kWarp / kWarpgroupWarps;
  if (warpgroups > 1) { // otherwise, every thread may have the largest number of registers
    NVVM::SetMaxRegisterOp::create(others, kProducerRegisters,
                                   NVVM::SetMaxRegisterAction::decrease);
    NVVM::SetMaxRegisterOp::create(
        consumer, (kRegisters - kProducerRegisters) / warpgroups / kRegisterUnit * kRegisterUnit,
        NVVM::SetMaxRegisterAction::increase);
  }
  tests = llvm::any_of(
      order, [&](auto entry) { return bool(findCopyTest(dyn_cast<scf::ForOp>(entry.first))); });
  auto works = scf::IfOp::create(
      others, tests ? others.isLess(thread, others.constant(threads + kWarp)) : isProducer);
  ThreadBuilder one(function.getLoc(), OpBuilder::atBlockBegin(works.thenBlock()));
  produce(one);
  for (auto [op, number] : order)
    consume(op, groups[number]);
}

namespace {
struct ProduceTiles : attn::impl::ProduceTilesBase<ProduceTiles> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto launch = function->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
    if (function.isDeclaration() || !launch)
      return;
    SmallVector<Chain> chains = findChains(function.front());
    Producing producing(function, chains);
    for (Chain &chain : chains)
      if (failed(chain.verify()))
        return signalPassFailure();
    if (!producing.applies())
      return;
    producing.run();
    function->setAttr(AttnDialect::kLaunchAttr,
                      LaunchAttr::get(&getContext(), launch.getThreads(), kWarpgroupWarps * kWarp));
  }
};
} // namespace
