//===- DistributeLoops.cpp - split loops among the threads of a task -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func private @f.map(...) attributes {attn.launch = #attn.launch<threads = 256>} {
//     scf.parallel (%i, %j) = (0, 0) to (%n, 768) step (1, 1) { ... }
//     linalg.generic {iterator_types = ["reduction"]} ... outs(%sum : memref<f32>)
// becomes
//   func.func private @f.map(...) attributes {attn.launch = #attn.launch<threads = 256>} {
//     scf.for %k = %thread to %n * 768 step 256 {
//       %i, %j = affine.delinearize_index %k into (%n, 768)
//       ...
//     }
//     gpu.barrier                                                             // later ops may read all elements
//     scf.if %thread == 0 { scf.for ... the sum }
//     gpu.barrier
//
// Neighbouring threads run neighbouring iterations of the last loop, so that they access neighbouring elements.
// Test: test/codegen/gpu/distribute-loops.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_DISTRIBUTELOOPS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Splits the iterations of `parallel` among the threads.
static void distribute(IRRewriter &rewriter, scf::ParallelOp parallel, int64_t threads) {
  ThreadBuilder b(parallel.getLoc(), parallel);
  SmallVector<OpFoldResult> counts;
  AffineExpr lower, upper, step;
  bindSymbols(b.getContext(), lower, upper, step);
  Value total = b.constant(1);
  for (auto [from, to, by] :
       llvm::zip_equal(parallel.getLowerBound(), parallel.getUpperBound(), parallel.getStep())) {
    counts.push_back(affine::makeComposedFoldedAffineApply(
        b, b.getLoc(), (upper - lower).ceilDiv(step),
        {OpFoldResult(from), OpFoldResult(to), OpFoldResult(by)}));
    total = b.createOrFold<arith::MulIOp>(total, b.toValue(counts.back()));
  }
  auto loop = scf::ForOp::create(b, b.thread(), total, b.constant(threads));
  ThreadBuilder in(parallel.getLoc(), OpBuilder::atBlockBegin(loop.getBody()));
  auto position = affine::AffineDelinearizeIndexOp::create(in, loop.getInductionVar(), counts);
  SmallVector<Value> variables;
  for (auto [i, from, by] :
       llvm::zip_equal(position.getResults(), parallel.getLowerBound(), parallel.getStep()))
    variables.push_back(in.add(from, in.createOrFold<arith::MulIOp>(i, by)));
  rewriter.eraseOp(parallel.getBody()->getTerminator());
  rewriter.inlineBlockBefore(parallel.getBody(), loop.getBody()->getTerminator(), variables);
  gpu::BarrierOp::create(b);
  rewriter.eraseOp(parallel);
}

namespace {
struct DistributeLoops : attn::impl::DistributeLoopsBase<DistributeLoops> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!isTaskOfThreads(function))
      return;
    IRRewriter rewriter(function);
    SmallVector<linalg::LinalgOp> ops;
    function.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops) {
      rewriter.setInsertionPoint(op);
      if (op.getNumParallelLoops() == 0) {
        oneThread(rewriter, op);
      } else {
        if (failed(linalg::linalgOpToParallelLoops(rewriter, op))) {
          op.emitError() << "expected an op that runs on a GPU, got one without loops";
          return signalPassFailure();
        }
        rewriter.eraseOp(op);
      }
    }
    SmallVector<scf::ParallelOp> loops;
    function.walk<WalkOrder::PreOrder>([&](scf::ParallelOp loop) {
      loops.push_back(loop);
      return WalkResult::skip();
    });
    for (scf::ParallelOp loop : loops)
      distribute(rewriter, loop, getThreads(function));
  }

  /// Lets only the first thread run `op`, which has no parallel loop.
  static void oneThread(IRRewriter &rewriter, linalg::LinalgOp op) {
    ThreadBuilder b(op->getLoc(), op);
    auto isFirst = scf::IfOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.thread(), b.constant(0)));
    rewriter.setInsertionPoint(isFirst.thenYield());
    (void)linalg::linalgOpToLoops(rewriter, op);
    rewriter.eraseOp(op);
    b.setInsertionPointAfter(isFirst);
    gpu::BarrierOp::create(b);
  }
};
} // namespace
