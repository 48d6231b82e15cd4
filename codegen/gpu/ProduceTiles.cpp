//===- ProduceTiles.cpp - copy tiles with separate warps -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func private @f.attend(...) attributes {attn.launch = #attn.launch<threads = 256>} {
//     scf.for %j = %lo to %full_hi step %c128 { attn.online_step ins(%q, %k[%j, 128 rows], %v[%j, 128 rows]) ... }
//     scf.for %j = %full_hi to %hi step %c128 { attn.online_step ins(%q, %k[%j, %n rows], %v[%j, %n rows]) .. mask(M) }
// becomes
//   func.func private @f.attend(...) attributes {attn.launch = #attn.launch<threads = 256, producers = 128>} {
//     %map = nvgpu.tma.create.descriptor %k box[128, 64]        // a tensor map; others for %q and %v
//     scf.if %is_producer {                                     // the last four warps, of which one thread copies
//       start to copy a box of %q
//       scf.for %j = %lo to %hi step %c128 {                    // one loop for each of the loops above
//         wait until a tile in shared memory is empty, start to copy a box of %k; the same for %v
//       }
//     } else {
//       wait for %q
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
//       release %q
//     }
//
// The step marked `begin` computes the scores and probabilities of its tile, the step marked `end` adds the products
// with the values of the previous tile, and the steps marked `middle` do both. The softmax of a tile then overlaps with
// products. Masked steps and steps on partial tiles do not overlap. A step reads its keys only for the scores, so their
// tile is released before the softmax, and the next copy starts earlier. A circular buffer has as many tiles as
// `attn.stages` on its steps says, or 2 if no step has this attribute.
//
// If no step has a mask, all tasks take the same time, and one block runs several of them. The task gets an argument, the
// number of tasks, and its first argument becomes the number of the block. The code of the producers and that of the
// consumers become the body of a loop:
//
//   func.func private @f.attend(%task, %worker, ...)
// becomes
//   func.func private @f.attend(%block, %worker, .., %count) attributes {attn.launch = #attn.launch<.., blocks = 1>}
//     scf.if %is_producer {
//       scf.for %task = %block to %count step %blocks { .. }    // %blocks: the blocks of the grid
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
// can compute. If this is not so for queries, the consumers copy them. StageTiles rewrites all other tasks. Copies
// fill rows and columns outside of a tensor with zeros.
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
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PRODUCETILES
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The largest number of rows of the box that TMA copies.
static constexpr int64_t kMostRowsOfBox = 256;

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

/// A circular buffer of tiles, the tensor map of the tensor from which they are copied, and the turn of this thread.
struct CopiedTile {
  std::optional<TilePipeline> pipeline;
  Value map, turn;
};

/// A loop, or another op with steps.
struct Reader {
  Operation *op;
  unsigned group;
  /// Whether the previous op of the group has other queries, or is in another task.
  bool readsNewQueries;
};

/// Loops, and other ops with steps, whose tiles have the same shapes and come from the same tensors.
struct Group {
  SmallVector<Operation *> ops;
  StepTiles first;                        ///< the first step
  int64_t keys;                           ///< the largest number of keys of a tile
  int64_t stages;                         ///< the largest number of stages of a step
  SmallVector<CopiedTile, 2> tiles;       ///< of keys, and of values
  /// Has no pipeline if the producer cannot copy the queries. The consumers then copy them.
  CopiedTile queries;
  StagedTile queriesOfConsumers;
  Value stagedQuery = {}; ///< the view of the queries of the last op
};

/// The number of the task that an iteration of a loop over tasks computes, and its code.
struct Repetition {
  Value task;
  Block *body;
};

class Producing {
public:
  Producing(func::FuncOp function, SmallVector<Chain> &chains)
      : function(function), chains(chains), threads(getThreads(function)),
        top(function.getLoc(), OpBuilder::atBlockBegin(&function.front())) {}

  /// Whether the pass rewrites the task.
  bool applies();
  /// Whether one block runs several tasks. If a mask hides tiles, tasks take different times, and the GPU balances them
  /// better: it starts a block as soon as another one ends. If a single warpgroup multiplies, several blocks may fit on
  /// a multiprocessor.
  bool repeats();
  /// Rewrites the task. `count` is the number of all tasks if a block runs several of them, and null otherwise.
  void run(Value count);

private:
  bool canProduce(Operation *op);
  bool canProduce(Value tile, scf::ForOp loop);
  bool canProduceQueries(const Group &group);
  scf::IfOp findCopyTest(scf::ForOp loop);
  Value createMap(const Box &box, const SharedTile &tile);
  void makeGroups();
  CopiedTile createTile(Value tile, int64_t rows, int64_t stages);
  void produce(ThreadBuilder &b, IRMapping mapping);
  void copyTile(ThreadBuilder &b, Value tile, CopiedTile &copied, IRMapping &mapping);
  void copyTiles(ThreadBuilder &b, Operation *op, Group &group, IRMapping mapping);
  void consumeQueries(ThreadBuilder &b, Operation *op, Group &group);
  void consume(const Reader &reader);
  Repetition repeat(ThreadBuilder &b);
  int64_t countQueryStages();
  void consumeOp(Operation *op, Group &group, ThreadBuilder &first, ThreadBuilder &last);
  void overlap(scf::ForOp loop, Group &group);

  func::FuncOp function;
  SmallVector<Chain> &chains;
  int64_t threads;
  Value count;        ///< the number of tasks, or null if a block runs one task
  Value isProducer;   ///< whether this thread starts copies
  bool tests = false; ///< whether a warp of producers tests which tiles to copy
  ThreadBuilder top; ///< inserts before the branch between producers and consumers
  SmallVector<Group, 0> groups;
  SmallVector<Reader> order;
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

/// Whether the producers can copy `tile`, which depends on no loop but `loop`, which may be null.
bool Producing::canProduce(Value tile, scf::ForOp loop) {
  std::optional<Box> box = Box::find(function, tile);
  if (!box || !findConstantArgument(function, box->tensor))
    return false;
  for (ArrayRef<OpFoldResult> offsets : box->offsets)
    for (OpFoldResult offset : offsets)
      if (auto value = dyn_cast<Value>(offset); value && !canClone(function, value, loop))
        return false;
  return true;
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
    return llvm::all_of(step.keyAndValue(),
                        [&](OpOperand *operand) { return canProduce(operand->get(), loop); });
  });
}

/// Whether the producers can copy the queries of all ops of `group` with the tensor map of the first ones.
bool Producing::canProduceQueries(const Group &group) {
  if (group.first.getTileQueries() > kMostRowsOfBox)
    return false;
  std::optional<Box> first = Box::find(function, group.first.query->get());
  return llvm::all_of(group.ops, [&](Operation *op) {
    Value query = findSteps(op).front().query->get();
    if (!canProduce(query, scf::ForOp()))
      return false;
    Box box = *Box::find(function, query);
    return box.tensor == first->tensor && box.rowDim == first->rowDim;
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

bool Producing::repeats() {
  return threads > kWarpgroupWarps * kWarp && llvm::none_of(chains, [](Chain &chain) {
           return llvm::any_of(chain.steps, [](const StepTiles &step) {
             return cast<OnlineStepOp>(step.op).getMaskAttr() != nullptr;
           });
         });
}

void Producing::makeGroups() {
  for (Chain &chain : chains)
    for (Operation *op : chain.ops) {
      StepTiles step = findSteps(op).front();
      auto *found = llvm::find_if(groups, [&](Group &group) {
        return haveSameTiles(group.first, step) && haveSameTensors(function, group.first, step);
      });
      if (found == groups.end())
        found = &groups.emplace_back(Group{{}, step, 0, PlanAttr::kLeastStages, {}, {}, {}});
      bool readsNewQueries = found->ops.empty() ||
                             findSteps(found->ops.back()).front().query->get() != step.query->get();
      found->ops.push_back(op);
      found->keys = std::max(found->keys, chain.getTileKeys());
      if (auto stages = step.op->getAttrOfType<IntegerAttr>(AttnDialect::kStagesAttr))
        found->stages = std::max(found->stages, stages.getInt());
      order.push_back({op, unsigned(found - groups.begin()), readsNewQueries});
    }
}

/// The op of `loop` that skips hidden tiles, if the producers can skip them too. Null otherwise.
scf::IfOp Producing::findCopyTest(scf::ForOp loop) {
  scf::IfOp test = loop ? findTileTest(loop) : scf::IfOp();
  return test && canClone(function, test.getCondition(), loop) ? test : scf::IfOp();
}

/// Emits the copy of `tile`. `mapping` has the replacements for the variables of loops.
void Producing::copyTile(ThreadBuilder &b, Value tile, CopiedTile &copied, IRMapping &mapping) {
  Box box = *Box::find(function, tile);
  SmallVector<Value> coordinates;
  for (ArrayRef<OpFoldResult> offsets : box.offsets) {
    coordinates.push_back(b.constant(0));
    for (OpFoldResult offset : offsets)
      coordinates.back() =
          b.add(coordinates.back(), isa<Attribute>(offset)
                                        ? b.toValue(offset)
                                        : cloneSlice(b, cast<Value>(offset), function, mapping));
  }
  copied.pipeline->produce(b, copied.turn, copied.map, coordinates);
}

/// Emits the copies of the tiles for one iteration of `op`. `mapping` is a copy, because later ops must not use values
/// that are computed in the branch of the producer.
void Producing::copyTiles(ThreadBuilder &b, Operation *op, Group &group, IRMapping mapping) {
  ThreadBuilder::InsertionGuard guard(b);
  if (tests)
    b.setInsertionPointToStart(scf::IfOp::create(b, isProducer).thenBlock());
  for (auto [copied, operand] : llvm::zip_equal(group.tiles, findSteps(op).front().keyAndValue()))
    copyTile(b, operand->get(), copied, mapping);
}

/// Emits the code of the thread that copies tiles, or of its warp if the warp tests the mask, for all ops in order.
void Producing::produce(ThreadBuilder &b, IRMapping mapping) {
  for (const Reader &reader : order) {
    Group &group = groups[reader.group];
    if (reader.readsNewQueries && group.queries.pipeline) {
      ThreadBuilder::InsertionGuard guard(b);
      IRMapping inBranch = mapping;
      if (tests)
        b.setInsertionPointToStart(scf::IfOp::create(b, isProducer).thenBlock());
      copyTile(b, findSteps(reader.op).front().query->get(), group.queries, inBranch);
    }
    auto loop = dyn_cast<scf::ForOp>(reader.op);
    if (!loop) {
      copyTiles(b, reader.op, group, mapping);
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
    copyTiles(in, loop, group, inLoop);
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

static Value viewOf(ThreadBuilder &b, const CopiedTile &tile, Value operand) {
  return tile.pipeline->view(b, tile.turn, memref::getMixedSize(b, b.getLoc(), operand, 0));
}

/// Releases the keys of `step` as soon as it has computed its scores.
static void releaseKeys(OnlineStepOp step, const CopiedTile &keys) {
  ThreadBuilder b(step.getLoc(), step);
  auto after = AfterScoresOp::create(b);
  ThreadBuilder in(step.getLoc(), OpBuilder::atBlockBegin(&after.getBody().emplaceBlock()));
  keys.pipeline->release(in, keys.turn);
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
  for (CopiedTile &tile : group.tiles)
    tile.pipeline->wait(first, tile.turn);
  for (const StepTiles &step : findSteps(op)) {
    ThreadBuilder b(step.op->getLoc(), step.op);
    for (auto [tile, operand] : llvm::zip_equal(group.tiles, step.keyAndValue()))
      operand->assign(viewOf(b, tile, operand->get()));
    step.query->assign(group.stagedQuery);
  }
  // A step releases the keys, unless it is in a branch that may not run.
  if (isa<OnlineStepOp>(op) || runsOneStep(*first.getInsertionBlock()))
    for (const StepTiles &step : findSteps(op))
      releaseKeys(cast<OnlineStepOp>(step.op), group.tiles[0]);
  else
    group.tiles[0].pipeline->release(last, group.tiles[0].turn);
  group.tiles[1].pipeline->release(last, group.tiles[1].turn);
}

/// Rewrites `loop` so that the step of each iteration multiplies the probabilities and values of the previous
/// iteration.
void Producing::overlap(scf::ForOp loop, Group &group) {
  CopiedTile &keys = group.tiles[0], &values = group.tiles[1];
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  // Clones the body for the tile at `first`.
  auto createStep = [&](ThreadBuilder &b, Value first, Overlap overlap) {
    bool computesScores = overlap != Overlap::End, addsValues = overlap != Overlap::Begin;
    if (computesScores)
      keys.pipeline->wait(b, keys.turn);
    if (addsValues)
      values.pipeline->wait(b, values.turn);
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
    Value key = viewOf(at, keys, step.getKey()), value = viewOf(at, values, step.getValue());
    step.getKeyMutable().assign(key);
    step.getValueMutable().assign(value);
    step.getQueryMutable().assign(group.stagedQuery);
    if (computesScores)
      releaseKeys(step, keys);
    if (addsValues)
      values.pipeline->release(b, values.turn);
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

/// Waits for the queries of `op`, or copies them.
void Producing::consumeQueries(ThreadBuilder &b, Operation *op, Group &group) {
  IRMapping mapping;
  Value query = cloneSlice(b, findSteps(op).front().query->get(), op, mapping);
  CopiedTile &queries = group.queries;
  if (!queries.pipeline) {
    if (count || group.stagedQuery)
      gpu::BarrierOp::create(b); // other warps may still read the previous queries
    group.stagedQuery = copyQueries(b, query, group.queriesOfConsumers, threads);
    NVVM::CpAsyncCommitGroupOp::create(b);
    return waitForCopies(b, /*toWarpgroups=*/true);
  }
  if (group.stagedQuery)
    queries.pipeline->release(b, queries.turn);
  queries.pipeline->wait(b, queries.turn);
  group.stagedQuery = viewOf(b, queries, query);
}

void Producing::consume(const Reader &reader) {
  Operation *op = reader.op;
  Group &group = groups[reader.group];
  ThreadBuilder b(function.getLoc(), op), last(op->getLoc(), op->getNextNode());
  if (reader.readsNewQueries)
    consumeQueries(b, op, group);
  bool isLast = op == group.ops.back();
  auto loop = dyn_cast<scf::ForOp>(op);
  if (loop && findPlainStep(loop, group.keys)) {
    overlap(loop, group);
  } else if (loop) {
    scf::IfOp test = findCopyTest(loop);
    Block *body = test ? test.thenBlock() : loop.getBody();
    ThreadBuilder first(op->getLoc(), OpBuilder::atBlockBegin(body)),
        end(op->getLoc(), body->getTerminator());
    consumeOp(op, group, first, end);
  } else {
    consumeOp(op, group, b, last);
  }
  if (isLast && group.queries.pipeline)
    group.queries.pipeline->release(last, group.queries.turn);
}

CopiedTile Producing::createTile(Value tile, int64_t rows, int64_t stages) {
  CopiedTile copied{TilePipeline(top, tile, rows, stages), Value(), TilePipeline::createTurn(top)};
  copied.map = createMap(*Box::find(function, tile), copied.pipeline->getTile());
  return copied;
}

/// Whether consumers that begin a task may overwrite what others still read for the previous task: if an op that is not
/// a part of an attention may use shared memory.
static bool sharesTemporaries(func::FuncOp task) {
  WalkResult walk = task.walk([](Operation *op) {
    bool isOfAttention =
        isa<memref::AllocaOp, OnlineInitOp, OnlineStepOp, OnlineFinishOp, CountTilesOp, TestMaskOp>(
            op);
    bool isControl = op->getNumRegions() > 0 || op->hasTrait<OpTrait::IsTerminator>();
    return isPure(op) || isOfAttention || (isControl && !isa<linalg::LinalgOp>(op))
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return walk.wasInterrupted();
}

Repetition Producing::repeat(ThreadBuilder &b) {
  if (!count)
    return {function.getArgument(0), b.getInsertionBlock()};
  // Numbers of 32 bits take one register. The runtime refuses more than 2^31 - 1 tasks.
  Value blocks = b.toI32(gpu::GridDimOp::create(b, gpu::Dimension::x));
  auto loop = scf::ForOp::create(b, b.toI32(function.getArgument(0)), b.toI32(count), blocks,
                                 ValueRange(), /*bodyBuilder=*/nullptr, /*unsignedCmp=*/true);
  b.setInsertionPointToStart(loop.getBody());
  return {arith::IndexCastUIOp::create(b, b.getIndexType(), loop.getInductionVar()),
          loop.getBody()};
}

/// The number of tiles of queries that fit into shared memory, beside the other tiles.
int64_t Producing::countQueryStages() {
  auto gpu = dyn_cast_if_present<GpuAttr>(getTarget(function));
  int64_t bytes = kBarrierBytes;
  auto add = [&](Value tile, int64_t rows, int64_t stages) {
    auto type = cast<MemRefType>(tile.getType());
    SharedTile shared = {rows, type.getDimSize(1), type.getElementType(), /*isSwizzled=*/true};
    bytes += stages * rows * shared.pitch() * type.getElementTypeBitWidth() / 8;
  };
  for (Group &group : groups) {
    add(group.first.query->get(), group.first.getTileQueries(), kQueryStages);
    for (OpOperand *operand : group.first.keyAndValue())
      add(operand->get(), group.keys, group.stages);
  }
  return bytes <= gpu.getShared() ? kQueryStages : 1;
}

void Producing::run(Value tasks) {
  count = tasks;
  Operation *first = &function.front().front(), *end = function.front().getTerminator();
  bool sharesMemory = sharesTemporaries(function);
  // Before the branch, allocate the barriers and the memory that all threads use.
  makeGroups();
  int64_t queryStages = count ? countQueryStages() : 1;
  for (Group &group : groups) {
    const StepTiles &step = group.first;
    int64_t queries = step.getTileQueries();
    if (canProduceQueries(group)) {
      group.queries = createTile(step.query->get(), queries, queryStages);
    } else {
      ThreadBuilder b(function.getLoc(), group.ops.front());
      group.queriesOfConsumers =
          StagedTile::create(top, b, step.query->get(), queries, /*stages=*/1,
                             /*isSwizzled=*/true, threads);
    }
    for (OpOperand *operand : step.keyAndValue())
      group.tiles.push_back(createTile(operand->get(), group.keys, group.stages));
  }
  Value thread = top.thread(), producer = top.constant(threads);
  isProducer = arith::CmpIOp::create(top, arith::CmpIPredicate::eq, thread, producer);
  auto starts = scf::IfOp::create(top, isProducer);
  ThreadBuilder start(function.getLoc(), OpBuilder::atBlockBegin(starts.thenBlock()));
  for (Group &group : groups)
    for (CopiedTile *tile : {&group.queries, &group.tiles[0], &group.tiles[1]})
      if (tile->pipeline)
        tile->pipeline->initialize(start, threads / kWarp);
  NVVM::FenceMbarrierInitOp::create(start);
  showToWarpgroups(start);
  NVVM::Barrier0Op::create(top); // waits for all threads; gpu.barrier waits for consumers only

  // The consumers run all other code.
  auto branch = scf::IfOp::create(top, top.isLess(thread, producer), /*withElseRegion=*/true);
  ThreadBuilder consumer(function.getLoc(), OpBuilder::atBlockBegin(branch.thenBlock())),
      others(function.getLoc(), OpBuilder::atBlockBegin(branch.elseBlock()));
  int64_t warpgroups = threads / kWarp / kWarpgroupWarps;
  if (warpgroups > 1) {
    NVVM::SetMaxRegisterOp::create(others, countProducerRegisters(warpgroups),
                                   NVVM::SetMaxRegisterAction::decrease);
    NVVM::SetMaxRegisterOp::create(consumer, countConsumerRegisters(warpgroups),
                                   NVVM::SetMaxRegisterAction::increase);
  }
  Repetition repeated = repeat(consumer);
  repeated.body->getOperations().splice(std::prev(repeated.body->end()),
                                        function.front().getOperations(), first->getIterator(),
                                        end->getIterator());
  if (count)
    replaceAllUsesInRegionWith(function.getArgument(0), repeated.task, *repeated.body->getParent());
  if (count && sharesMemory) {
    ThreadBuilder b(function.getLoc(), OpBuilder::atBlockBegin(repeated.body));
    gpu::BarrierOp::create(b);
  }
  tests = llvm::any_of(order, [&](const Reader &reader) {
    return bool(findCopyTest(dyn_cast<scf::ForOp>(reader.op)));
  });
  auto works = scf::IfOp::create(
      others, tests ? others.isLess(thread, others.constant(threads + kWarp)) : isProducer);
  ThreadBuilder one(function.getLoc(), OpBuilder::atBlockBegin(works.thenBlock()));
  Repetition copies = repeat(one);
  ThreadBuilder inTask(function.getLoc(), OpBuilder::atBlockTerminator(copies.body));
  IRMapping mapping;
  if (count)
    mapping.map(repeated.task, copies.task);
  produce(inTask, mapping);
  for (const Reader &reader : order)
    consume(reader);
}

/// Adds an argument to `task`, and returns it: the number of tasks of the loop that runs it.
static Value addCount(func::FuncOp task, ArrayRef<ParallelForOp> loops) {
  Type index = IndexType::get(task.getContext());
  (void)task.insertArgument(task.getNumArguments(), index, {}, task.getLoc());
  for (ParallelForOp loop : loops)
    loop.getArgsMutable().append(loop.getCount());
  return task.getArguments().back();
}

namespace {
struct ProduceTiles : attn::impl::ProduceTilesBase<ProduceTiles> {
  void runOnOperation() override {
    llvm::StringMap<SmallVector<ParallelForOp>> loops;
    getOperation().walk([&](ParallelForOp loop) { loops[loop.getTask()].push_back(loop); });
    for (func::FuncOp task : getOperation().getOps<func::FuncOp>()) {
      auto launch = task->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
      if (task.isDeclaration() || !launch)
        continue;
      SmallVector<Chain> chains = findChains(task.front());
      Producing producing(task, chains);
      for (Chain &chain : chains)
        if (failed(chain.verify()))
          return signalPassFailure();
      if (!producing.applies())
        continue;
      bool repeats = producing.repeats();
      producing.run(repeats ? addCount(task, loops[task.getName()]) : Value());
      task->setAttr(AttnDialect::kLaunchAttr,
                    LaunchAttr::get(&getContext(), launch.getThreads(), kWarpgroupWarps * kWarp,
                                    /*blocks=*/repeats ? 1 : 0));
    }
  }
};
} // namespace
