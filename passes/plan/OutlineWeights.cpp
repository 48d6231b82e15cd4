//===- OutlineWeights.cpp - pack weights when they are set, not per call ---===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @forward(%x: tensor<?x768xf32>, %w: tensor<768x768xf32> {attn.weight}) -> ... {
//     %p = attn.pack ins(%w) outs(%e : tensor<12x768x64xf32>)
//     ... uses %p
//   }
// becomes
//   func.func @forward(%x: tensor<?x768xf32>, %p: tensor<12x768x64xf32> {attn.packed = 0}) -> ... { ... uses %p }
//   func.func @forward.pack(%w: tensor<768x768xf32>) -> tensor<12x768x64xf32> { attn.pack ... }
//
// The pass moves an op if its result depends on weights alone and is no larger than its operands. A broadcast stays,
// because it would replace a small weight with a large one. An op whose result another op overwrites stays too, because
// every call reads the same packed weights. A weight that is used unchanged is copied, because a program may free its
// tensors after they were packed. A function without weights stays unchanged. Test: test/passes/plan/outline-weights.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Memory.h"
#include "passes/Passes.h"
#include "passes/plan/Weights.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_OUTLINEWEIGHTS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The values that `op` reads: its operands, and the values that its body captures from outside.
static SmallVector<Value> valuesOf(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  SetVector<Value> taken;
  getUsedValuesDefinedAbove(op->getRegions(), taken);
  llvm::append_range(values, taken);
  return values;
}

static bool isWeight(Value value) {
  return isa<BlockArgument>(value) && dependsOnWeightsOnly(value);
}

/// True if `value` has memory of its own: it is the result of a destination-style op, which writes all of it, or a
/// reshape of such a result.
static bool isFresh(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      return isa<DestinationStyleOpInterface>(op);
    value = op->getOperand(0);
  }
  return false;
}

/// True if `op` may run when weights are set, as the comment at the top of this file explains.
static bool isMovable(Operation *op) {
  if (op->getNumResults() != 1 || !dependsOnWeightsOnly(op->getResult(0)))
    return false;
  auto elements = [](Value value) -> int64_t {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() ? type.getNumElements() : 0;
  };
  int64_t inputs = 0;
  for (Value operand : op->getOperands())
    if (dependsOnWeightsOnly(operand))
      inputs += elements(operand);
  int64_t result = elements(op->getResult(0));
  return result > 0 && result <= inputs;
}

static bool isElementwise(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalg::isElementwise(linalgOp);
}

/// The op whose result is `value`, or whose result `value` is a view of; null for a weight.
static DestinationStyleOpInterface computedBy(Value value) {
  Operation *source = value.getDefiningOp();
  while (source && !isa<DestinationStyleOpInterface>(source) && source->getNumOperands())
    source = source->getOperand(0).getDefiningOp();
  return dyn_cast_or_null<DestinationStyleOpInterface>(source);
}

/// Whether `op` reads a result of another op and cannot fuse with that op. The function that packs weights cannot
/// contain such an op, because it has no memory for intermediate results. Two elementwise ops fuse if no view is
/// between them.
static bool readsComputed(Operation *op) {
  auto dps = dyn_cast<DestinationStyleOpInterface>(op);
  return dps && llvm::any_of(valuesOf(op), [&](Value input) {
           DestinationStyleOpInterface source = computedBy(input);
           bool fuses = source == input.getDefiningOp() && isElementwise(op) &&
                        llvm::is_contained(op->getOperands(), input);
           return source && !llvm::is_contained(dps.getDpsInits(), input) &&
                  !(fuses && isElementwise(source));
         });
}

/// Whether an op outside `moved` overwrites the result of `op` or a view of it. A loop overwrites its inits.
static bool isOverwritten(Operation *op, const llvm::SetVector<Operation *> &moved) {
  return llvm::any_of(op->getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (moved.contains(user))
      return false;
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp, tensor::ExtractSliceOp>(
            user))
      return isOverwritten(user, moved);
    if (auto loop = dyn_cast<LoopLikeOpInterface>(user))
      return loop.getTiedLoopRegionIterArg(&use) != nullptr;
    auto dps = dyn_cast<DestinationStyleOpInterface>(user);
    return dps && dps.isDpsInit(&use);
  });
}

/// Removes from `moved` each op whose result an op outside `moved` overwrites, and each op that depends on such an op.
static void keepInits(func::FuncOp function, llvm::SetVector<Operation *> &moved) {
  auto dependsOnKept = [&](Operation *op) {
    return llvm::any_of(valuesOf(op), [&](Value operand) {
      Operation *source = operand.getDefiningOp();
      return source && dependsOnWeightsOnly(operand) && !moved.contains(source);
    });
  };
  bool changes = true;
  while (changes)
    changes = moved.remove_if(
        [&](Operation *op) { return isOverwritten(op, moved) || dependsOnKept(op); });
}

/// Fuses chains of elementwise ops.
static LogicalResult fuseElementwise(func::FuncOp pack) {
  RewritePatternSet patterns(pack.getContext());
  linalg::populateElementwiseOpsFusionPatterns(patterns, [](OpOperand *) { return true; });
  // Each fusion removes an op, so the rewriting terminates.
  auto config = GreedyRewriteConfig().setMaxIterations(GreedyRewriteConfig::kNoLimit);
  return applyPatternsGreedily(pack, std::move(patterns), config);
}

namespace {
struct OutlineWeights : attn::impl::OutlineWeightsBase<OutlineWeights> {
  void runOnOperation() override {
    for (func::FuncOp function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal())
        outline(function);
  }

  void outline(func::FuncOp function) {
    SmallVector<unsigned> weights;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (function.getArgAttr(i, AttnDialect::kWeightAttr))
        weights.push_back(i);
    if (weights.empty())
      return;

    // Find the ops to move, and the crossing values: the weights and the results of moved ops that ops of this function
    // still read.
    llvm::SetVector<Operation *> moved;
    SmallVector<Value> crossing;
    auto crosses = [&](Value value) {
      return llvm::any_of(value.getUsers(), [&](Operation *user) {
        return !moved.contains(function.getBody().findAncestorOpInRegion(*user));
      });
    };
    for (Operation &op : function.getBody().front())
      if (isMovable(&op) && !readsComputed(&op) &&
          llvm::all_of(valuesOf(&op), [&](Value operand) {
            return !dependsOnWeightsOnly(operand) || isWeight(operand) ||
                   moved.contains(operand.getDefiningOp());
          }))
        moved.insert(&op);
    keepInits(function, moved);
    // If a view of a computed result is used outside of the pack function, the view stays outside too. As a result of
    // the pack function, it would have to be copied.
    while (moved.remove_if([&](Operation *op) {
      Value result = op->getResult(0);
      return crosses(result) && !isFresh(result) && computedBy(result);
    }))
      ;
    for (unsigned i : weights)
      if (crosses(function.getArgument(i)))
        crossing.push_back(function.getArgument(i));
    for (Operation *op : moved)
      if (crosses(op->getResult(0)))
        crossing.push_back(op->getResult(0));

    // Create @forward.pack with clones of the moved ops and of the ops that they need.
    Location loc = function.getLoc();
    OpBuilder builder(function);
    builder.setInsertionPointAfter(function);
    SmallVector<Type> weightTypes;
    for (unsigned i : weights)
      weightTypes.push_back(function.getArgument(i).getType());
    auto pack =
        func::FuncOp::create(builder, loc, (function.getName() + ".pack").str(),
                             builder.getFunctionType(weightTypes, ValueRange(crossing).getTypes()));
    pack->setAttr(AttnDialect::kKernelAttr, builder.getStringAttr("pack"));
    builder.setInsertionPointToStart(pack.addEntryBlock());
    IRMapping mapping;
    for (auto [i, weight] : llvm::enumerate(weights)) {
      mapping.map(function.getArgument(weight), pack.getArgument(i));
      pack.setArgAttrs(i, function.getArgAttrDict(weight));
    }
    llvm::SetVector<Operation *> needed;
    BackwardSliceOptions options;
    options.inclusive = true;
    options.omitUsesFromAbove = false;
    for (Value value : crossing)
      if (Operation *op = value.getDefiningOp())
        (void)getBackwardSlice(op, &needed, options);
    for (Operation &op : function.getBody().front())
      if (needed.contains(&op))
        builder.clone(op, mapping);
    SmallVector<Value> results;
    for (Value value : crossing) {
      Value result = mapping.lookup(value);
      results.push_back(isFresh(result) ? result : copyOf(builder, loc, result));
    }
    func::ReturnOp::create(builder, loc, results);
    if (failed(fuseElementwise(pack)))
      return signalPassFailure();

    // The function takes the crossing values instead of the weights.
    for (auto [i, value] : llvm::enumerate(crossing)) {
      unsigned index = function.getNumArguments();
      (void)function.insertArgument(index, value.getType(),
                                    builder.getDictionaryAttr(builder.getNamedAttr(
                                        AttnDialect::kPackedAttr, builder.getI64IntegerAttr(i))),
                                    value.getLoc());
      value.replaceUsesWithIf(function.getArgument(index), [&](OpOperand &use) {
        return !moved.contains(function.getBody().findAncestorOpInRegion(*use.getOwner()));
      });
    }
    for (Operation *op : llvm::reverse(moved))
      op->erase();
    for (unsigned i : llvm::reverse(weights))
      (void)function.eraseArgument(i);
  }
};
} // namespace
