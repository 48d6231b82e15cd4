//===- AssignThreads.cpp - choose the number of threads of tasks -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.parallel_for @f.attend(...) count(%n)
//   func.func private @f.attend(...) {
//     %acc = memref.alloca() : memref<64x64xf32, #gpu.address_space<private>>
//     attn.online_step ... outs(.., %acc) {attn.blocks = {scores = #attn.block<rows = 16, ...>}}
// becomes
//   func.func private @f.attend(...) attributes {attn.launch = #attn.launch<threads = 128>} {  // 4 warps of 16 queries
//
// Test: test/codegen/gpu/assign-threads.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/WarpgroupMultiply.h"
#include "passes/Product.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_ASSIGNTHREADS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The number of threads of a task with a matrix product, and of a task with neither products nor attention.
static constexpr int64_t kThreadsOfProduct = kWarpsOfProduct * kWarp, kTypicalThreads = 256;

static FailureOr<int64_t> countThreads(func::FuncOp task) {
  int64_t threads = 0;
  WalkResult walk = task.walk([&](OnlineStepOp op) -> WalkResult {
    auto blocks = op->getAttrOfType<DictionaryAttr>(AttnDialect::kBlocksAttr);
    auto block = blocks ? blocks.getAs<BlockAttr>("scores") : BlockAttr();
    Value acc = op.getAcc();
    while (auto view = acc.getDefiningOp<memref::SubViewOp>())
      acc = view.getSource();
    int64_t queries = cast<MemRefType>(acc.getType()).getDimSize(0);
    if (!block || queries % block.getRows() != 0)
      return op.emitOpError() << "expected a block whose rows divide the " << queries
                              << " queries of a tile, got " << block;
    threads = std::max(threads, queries / block.getRows() * kWarp);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  if (threads)
    return threads;
  WalkResult products = task.walk([](linalg::LinalgOp op) {
    return isProduct(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return products.wasInterrupted() ? kThreadsOfProduct : kTypicalThreads;
}

namespace {
struct AssignThreads : attn::impl::AssignThreadsBase<AssignThreads> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    auto assign = [&](attn::ParallelForOp loop) -> WalkResult {
      auto task = symbols.lookup<func::FuncOp>(loop.getTask());
      if (task->hasAttr(AttnDialect::kLaunchAttr))
        return WalkResult::advance();
      FailureOr<int64_t> threads = countThreads(task);
      if (failed(threads))
        return WalkResult::interrupt();
      task->setAttr(AttnDialect::kLaunchAttr, LaunchAttr::get(&getContext(), *threads, 0));
      return WalkResult::advance();
    };
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.walk(assign).wasInterrupted())
        return signalPassFailure();
  }
};
} // namespace
