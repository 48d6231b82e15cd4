//===- ShareTasks.cpp - equal tasks become one function --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.parallel_for @f.attend(%x, %w0, %y) ...      attn.parallel_for @f.attend_1(%y, %w1, %z) ...
//   func.func private @f.attend(...) { body }         func.func private @f.attend_1(...) { the same body }
// becomes
//   attn.parallel_for @f.attend(%x, %w0, %y) ...      attn.parallel_for @f.attend(%y, %w1, %z) ...
//   func.func private @f.attend(...) { body }
//
// Layers of a model often differ only in their weights, which are arguments of their tasks, so these layers share the
// compiled tasks. The first of several equal functions stays, with its source locations. The pass does not use MLIR's
// duplicate-function-elimination, because that pass also merges public functions, and entries must stay separate
// functions.
// Test: test/passes/bufferize/share-tasks.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/bufferize/Outlining.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_SHARETASKS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
struct ShareTasks : attn::impl::ShareTasksBase<ShareTasks> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> distinct;
    llvm::SetVector<Operation *> repeated;
    auto share = [&](attn::ParallelForOp loop) {
      auto task = symbols.lookup<func::FuncOp>(loop.getTask());
      auto *first = llvm::find_if(distinct, [&](func::FuncOp other) { return areEqual(other, task); });
      if (first == distinct.end()) {
        distinct.push_back(task);
        return;
      }
      loop.setTask(first->getName());
      if (*first != task)
        repeated.insert(task);
    };
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk(share);
    for (Operation *task : repeated)
      symbols.erase(task);
  }
};
} // namespace
