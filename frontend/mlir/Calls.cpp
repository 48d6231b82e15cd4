//===- Calls.cpp - functions without calls ---------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Upstream's inliner replaces each call with the body of the function. Test: test/frontend/mlir/calls.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/mlir/Calls.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;

static constexpr uint64_t kMostOps = 1'000'000;

namespace {
/// Counts the ops that functions have after their calls are inlined. A function may call another one twice, which calls a
/// third one twice, and so on, so the count may be exponential in the size of the file.
class OpCounts {
public:
  explicit OpCounts(ModuleOp module) : module(module) {}

  uint64_t of(func::FuncOp function) {
    auto [it, isNew] = counts.try_emplace(function, 0);
    if (!isNew)
      return it->second; // 0 for a function that calls itself, which is not inlined
    uint64_t count = 0;
    function.walk([&](Operation *op) {
      ++count;
      if (auto call = dyn_cast<func::CallOp>(op))
        if (auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee()))
          count = std::min(count + of(callee), kMostOps + 1);
    });
    return counts[function] = count;
  }

private:
  ModuleOp module;
  llvm::DenseMap<Operation *, uint64_t> counts;
};
} // namespace

LogicalResult attn::inlineCalls(ModuleOp module) {
  OpCounts counts(module);
  for (auto function : module.getOps<func::FuncOp>())
    if (counts.of(function) > kMostOps)
      return function.emitError() << "expected at most " << kMostOps
                                  << " ops after calls were inlined, got more";
  bool isNeeded = module
                      .walk([](Operation *op) {
                        auto symbol = dyn_cast<SymbolOpInterface>(op);
                        return isa<func::CallOp>(op) || (symbol && symbol.isPrivate())
                                   ? WalkResult::interrupt()
                                   : WalkResult::advance();
                      })
                      .wasInterrupted();
  if (!isNeeded)
    return success();
  PassManager manager(module.getContext());
  manager.addPass(createInlinerPass({}, [](OpPassManager &) {})); // without simplifications
  manager.addPass(createSymbolDCEPass());
  return manager.run(module);
}
