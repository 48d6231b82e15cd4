//===- VerifyBuffers.cpp - no copy, no stray memory, nothing done twice ----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Tiling and bufferization keep working when one of the rules that make them free of copies is broken: the result is
// right and slow. This pass turns each way to go wrong into an error at the source location:
//   * a memref.copy: a result without an out parameter, inits merged by CSE, a call that was not inlined;
//   * a func.call: its buffers are copied at the boundary;
//   * a buffer that is written and never read: a producer left whole beside its fused copy (a tensor.dim held it);
//   * a contraction with the inputs of another one outside its loops: a producer computed twice;
//   * a contraction that its innermost loop repeats unchanged: a producer fused one level too deep;
//   * an elementwise op that adds a broadcast to what a contraction wrote: the bias belongs in the contraction's init.
// It runs after bufferization and changes nothing. Test: test/passes/bufferize/verify-buffers.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_VERIFYBUFFERS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The buffer that `value` is a view of.
static Value rootOf(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

static bool isContraction(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalg::isaContractionOpInterface(linalgOp);
}

/// Uses of a buffer through any chain of views.
static void forEachUse(Value buffer, function_ref<void(OpOperand &)> visit) {
  for (OpOperand &use : buffer.getUses()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(use.getOwner()))
      forEachUse(view->getResult(0), visit);
    else
      visit(use);
  }
}

/// True if `use` may read the buffer. A contraction or update reads its own output only to add to it.
static bool reads(OpOperand &use) {
  auto dps = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
  return !dps || !dps.isDpsInit(&use) || isa<OnlineUpdateOp, OnlineStepOp>(use.getOwner());
}

/// The innermost loop around `op` below `scope`.
static LoopLikeOpInterface loopOf(Operation *op) { return op->getParentOfType<LoopLikeOpInterface>(); }

static LogicalResult verifyFunction(func::FuncOp function) {
  LogicalResult result = success();
  auto fail = [&](Operation *op) {
    result = failure();
    return op->emitError();
  };
  SmallVector<linalg::LinalgOp> contractions;
  function.walk([&](Operation *op) {
    if (isa<memref::CopyOp>(op))
      fail(op) << "expected no copy after bufferization, got '" << op->getName() << "'";
    if (isa<func::CallOp>(op))
      fail(op) << "expected calls to be inlined, got '" << op->getName() << "'";
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      bool isRead = false;
      forEachUse(alloc, [&](OpOperand &use) { isRead |= reads(use); });
      if (!isRead)
        fail(op) << "expected every buffer to be read, got one that is only written";
    }
    if (isContraction(op))
      contractions.push_back(cast<linalg::LinalgOp>(op));
  });
  auto rootsOf = [](linalg::LinalgOp op) {
    return llvm::map_to_vector(op.getDpsInputs(), [](Value input) { return rootOf(input); });
  };
  for (linalg::LinalgOp op : contractions) {
    LoopLikeOpInterface loop = loopOf(op);
    bool isInvariant = loop && isa<scf::ForOp>(loop) && llvm::all_of(op->getOperands(), [&](Value operand) {
      // A view made in the loop from values outside is the same view each time; its own output may be local.
      if (op.isDpsInit(&*llvm::find_if(op->getOpOperands(), [&](OpOperand &o) { return o.get() == operand; })))
        return true;
      Operation *view = operand.getDefiningOp();
      while (view && loop->isAncestor(view)) {
        if (!isa<ViewLikeOpInterface>(view) ||
            !llvm::all_of(view->getOperands().drop_front(), [&](Value v) { return loop.isDefinedOutsideOfLoop(v); }))
          return false;
        view = view->getOperand(0).getDefiningOp();
      }
      return true;
    });
    Value out = rootOf(op.getDpsInits()[0]);
    if (isInvariant && out.getDefiningOp<memref::AllocOp>() && loop->isAncestor(out.getDefiningOp()))
      fail(op) << "expected a contraction that changes with its loop, got one that every iteration repeats";
    for (linalg::LinalgOp other : contractions) {
      bool besideLoops = other->getBlock() != op->getBlock() && other->getLoc() == op->getLoc() &&
                         (!loop || !loop->isAncestor(other)) && loop &&
                         loop->getBlock()->getParent()->isAncestor(other->getParentRegion()) &&
                         !other->isAncestor(op);
      if (op != other && besideLoops && rootsOf(op) == rootsOf(other))
        fail(op) << "expected each product to be computed once, got a copy of one outside its loops";
    }
  }
  function.walk([&](linalg::LinalgOp op) {
    if (op.getNumReductionLoops() || op.getNumDpsInputs() < 2 || !op->getBlock())
      return;
    bool addsBroadcast = llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
      return op.getMatchingIndexingMap(operand).getNumResults() < op.getNumLoops();
    });
    bool isSum = llvm::any_of(*op.getBlock(), [](Operation &inner) { return isa<arith::AddFOp>(inner); }) &&
                 op.getBlock()->getOperations().size() == 2;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Value buffer = operand->get();
      bool fromContraction = llvm::any_of(buffer.getUsers(), [&](Operation *user) {
        return isContraction(user) && cast<linalg::LinalgOp>(user).getDpsInits()[0] == buffer;
      });
      if (addsBroadcast && isSum && fromContraction)
        fail(op) << "expected the bias as the init of its contraction, got a pass of its own";
    }
  });
  return result;
}

namespace {
struct VerifyBuffers : attn::impl::VerifyBuffersBase<VerifyBuffers> {
  void runOnOperation() override {
    bool failedAny = false;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      failedAny |= failed(verifyFunction(function));
    if (failedAny)
      signalPassFailure();
  }
};
} // namespace
