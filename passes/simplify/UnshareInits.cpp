//===- UnshareInits.cpp - every result starts from an init of its own ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %0 = linalg.fill ins(%zero) outs(%empty)
//   %k = linalg.contract ins(%x, %wk) outs(%0)
//   %v = linalg.contract ins(%x, %wv) outs(%0)
//   %y = linalg.contract ins(%v, %wo) outs(%residual)       an argument, or a value with other uses
// becomes
//   %0 = linalg.fill ins(%zero) outs(%empty)
//   %k = linalg.contract ins(%x, %wk) outs(%0)
//   %1 = linalg.fill ins(%zero) outs(%empty.1)
//   %v = linalg.contract ins(%x, %wv) outs(%1)
//   %2 = linalg.copy ins(%residual) outs(%empty.2)
//   %y = linalg.contract ins(%v, %wo) outs(%2)
//
// Results are computed in the memory of their inits, so bufferization would have to copy a shared init, and an argument
// would be overwritten. This pass makes the copy explicit. On CPUs, a copy before a contraction costs nothing, because
// code generation starts the sums of the contraction from the source of the copy. An init whose elements are never read
// becomes an empty tensor. The result of an in-out argument has to overwrite the argument, so the inits through which
// it is computed in place stay, and attn-copy-overwritten copies elements that are still read.
//
// Importers and CSE share inits, so this pass is the last of the stage. Test: test/passes/simplify/unshare-inits.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Memory.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace attn {
#define GEN_PASS_DEF_UNSHAREINITS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;

/// Whether `op` reads elements of `init`, or leaves some of them unchanged.
static bool reads(Operation *op, OpOperand &init) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.payloadUsesValueFromOperand(&init) ||
           !linalgOp.getMatchingIndexingMap(&init).isPermutation();
  return !isa<attn::AttentionOp, attn::PackOp, linalg::SoftmaxOp>(op);
}

/// Whether `value` has memory of its own that only one op reads or writes. An iteration argument of a loop has such
/// memory, because this pass gives the init of the loop memory of its own.
static bool isOwn(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
  while (value.hasOneUse()) {
    Operation *source = value.getDefiningOp();
    if (!source)
      return false;
    if (isa<DestinationStyleOpInterface, LoopLikeOpInterface, tensor::EmptyOp>(source))
      return true;
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(source))
      return false;
    value = source->getOperand(0);
  }
  return false;
}

/// The operands in whose memory `op` computes its results.
static MutableArrayRef<OpOperand> initsOf(Operation *op) {
  if (auto dps = dyn_cast<DestinationStyleOpInterface>(op); dps && dps.hasPureTensorSemantics())
    return dps.getDpsInitsMutable();
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    return loop.getInitsMutable();
  return {};
}

static void unshareInits(Operation *op, const llvm::DenseSet<OpOperand *> &inPlace) {
  OpBuilder builder(op);
  for (OpOperand &init : initsOf(op)) {
    Value value = init.get();
    if (!isa<RankedTensorType>(value.getType()) || isOwn(value) || inPlace.contains(&init))
      continue;
    Operation *source = value.getDefiningOp();
    if (isa_and_nonnull<tensor::EmptyOp, linalg::FillOp, linalg::BroadcastOp>(source)) {
      Operation *own = builder.clone(*source);
      init.set(own->getResult(0));
      unshareInits(own, inPlace);
      continue;
    }
    Location loc = op->getLoc();
    if (reads(op, init)) {
      init.set(attn::copyOf(builder, loc, value));
      continue;
    }
    init.set(tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, value),
                                     getElementTypeOrSelf(value.getType())));
  }
}

namespace {
struct UnshareInits : attn::impl::UnshareInitsBase<UnshareInits> {
  void runOnOperation() override {
    llvm::DenseSet<OpOperand *> inPlace;
    attn::forEachInOut(getOperation(), [&](BlockArgument argument, OpOperand &result) {
      inPlace.insert_range(attn::writesInPlace(argument, result.get()));
    });
    getOperation().walk([&](Operation *op) { unshareInits(op, inPlace); });
  }
};
} // namespace
