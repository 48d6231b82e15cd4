//===- Chains.cpp - loops over tiles of keys and values --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Chains.h"
#include "codegen/gpu/WarpgroupMultiply.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn;

/// The number of keys of a tile in shared memory is a multiple of this number, because matrix instructions read 16 keys
/// at a time.
static constexpr int64_t kKeysOfProduct = 16;

int64_t StepTiles::getTileQueries() const {
  Value max = isa<OnlineStepOp>(op) ? cast<OnlineStepOp>(op).getMax()
                                    : cast<OnlineProbabilitiesOp>(op).getMax();
  while (auto view = max.getDefiningOp<memref::SubViewOp>())
    max = view.getSource();
  return cast<MemRefType>(max.getType()).getDimSize(0);
}

SmallVector<StepTiles> attn::findSteps(Operation *op) {
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

int64_t Chain::getTileKeys() {
  if (hasLoops())
    return llvm::alignTo(*getConstantIntValue(loop(0).getStep()), kKeysOfProduct);
  auto type = cast<MemRefType>(steps.front().key->get().getType());
  return llvm::alignTo(type.getDimSize(0), kKeysOfProduct);
}

bool Chain::isByWarpgroups(int64_t threads) {
  auto gpu = dyn_cast_if_present<GpuAttr>(getTarget(ops.front()));
  const StepTiles &first = steps.front();
  int64_t warps = threads / kWarp, columns = getTileKeys();
  if (first.value)
    columns = std::max(columns, cast<MemRefType>(first.value->get().getType()).getDimSize(1));
  return multipliesByWarpgroups(gpu, getElementTypeOrSelf(first.key->get().getType()), warps,
                                first.getTileQueries() / warps, columns);
}

LogicalResult Chain::verify() {
  for (const StepTiles &step : steps) {
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
      if (hasLoops() && !operand->get().getDefiningOp<memref::SubViewOp>())
        return step.op->emitOpError() << "expected keys and values that are views of buffers, got "
                                      << operand->get().getType();
  }
  return success();
}

SmallVector<Chain> attn::findChains(Block &block) {
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

Value attn::cloneSlice(ThreadBuilder &b, Value value, Operation *scope, IRMapping &mapping) {
  Operation *definition = value.getDefiningOp();
  if (mapping.contains(value) || !definition || !scope->isProperAncestor(definition))
    return mapping.lookupOrDefault(value);
  for (Value operand : definition->getOperands())
    (void)cloneSlice(b, operand, scope, mapping);
  b.clone(*definition, mapping);
  return mapping.lookup(value);
}

BlockArgument attn::findConstantArgument(func::FuncOp task, Value buffer) {
  auto root = [](Value buffer) {
    while (auto view = buffer.getDefiningOp<memref::SubViewOp>())
      buffer = view.getSource();
    return buffer;
  };
  auto argument = dyn_cast<BlockArgument>(root(buffer));
  if (!argument || argument.getOwner() != &task.front())
    return {};
  auto isArgument = [&](Value buffer) { return root(buffer) == argument; };
  WalkResult walk = task.walk([&](Operation *op) {
    auto store = dyn_cast<memref::StoreOp>(op);
    auto destination = dyn_cast<DestinationStyleOpInterface>(op);
    bool writes = (store && isArgument(store.getMemRef())) ||
                  (destination && llvm::any_of(destination.getDpsInits(), isArgument));
    return writes ? WalkResult::interrupt() : WalkResult::advance();
  });
  return walk.wasInterrupted() ? BlockArgument() : argument;
}

bool attn::canClone(func::FuncOp task, Value value, scf::ForOp loop) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == &task.front() || (loop && argument == loop.getInductionVar());
  Operation *op = value.getDefiningOp();
  if (op->getNumRegions() != 0)
    return false;
  auto load = dyn_cast<memref::LoadOp>(op);
  auto test = dyn_cast<TestMaskOp>(op);
  if (load || test ? !findConstantArgument(task, load ? load.getMemRef() : test.getWords())
                   : !isPure(op))
    return false;
  return llvm::all_of(op->getOperands(),
                      [&](Value operand) { return canClone(task, operand, loop); });
}

scf::IfOp attn::findTileTest(scf::ForOp loop) {
  scf::IfOp test;
  for (const StepTiles &step : findSteps(loop)) {
    auto branch = dyn_cast<scf::IfOp>(loop.getBody()->findAncestorOpInBlock(*step.op));
    if (!branch || (test && branch != test) ||
        !branch.getThenRegion().isAncestor(step.op->getParentRegion()))
      return {};
    test = branch;
  }
  return test;
}

StagedTile StagedTile::create(ThreadBuilder &top, ThreadBuilder &b, Value operand, int64_t rows,
                              int64_t stages, bool isSwizzled, int64_t threads) {
  auto type = cast<MemRefType>(operand.getType());
  SharedTile tile = {rows, type.getDimSize(1), type.getElementType(), isSwizzled};
  Value buffer = tile.allocate(top, stages);
  tile.clearPadding(b, buffer, stages, threads);
  return {tile, buffer};
}

Value attn::copyQueries(ThreadBuilder &b, Value query, const StagedTile &staged, int64_t threads) {
  Value zero = b.constant(0);
  staged.tile.copy(b, query, memref::DimOp::create(b, query, 0), /*validColumns=*/{},
                   hasAlignedRows(query), staged.buffer, zero, threads);
  return staged.tile.view(b, staged.buffer, zero, memref::getMixedSize(b, b.getLoc(), query, 0));
}
