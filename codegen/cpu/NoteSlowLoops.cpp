//===- NoteSlowLoops.cpp - say which ops become slow loops -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Emits a remark at each op that makes a loop slow, with the share of the loop in the predicted time of the function.
// If the body of an op reads memory at indices that are data, the op becomes a loop over scalars. If the body computes
// a function in f64 (DoubleMath.h), the vectors of the loop have half as many lanes. If a sum compares positions, as
// that of a sort or a cumulative sum does, it takes a number of steps for each element of its operands. The report
// lists the remarks. The pass does not change the IR. Test: test/codegen/cpu/note-slow-loops.mlir,
// test/tools/report-json.test
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/DoubleMath.h"
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/PredictOps.h"
#include "dialect/Finding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_NOTESLOWLOOPS
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

/// A sum compares positions if its body reads them and it takes at least this many steps for each element of any
/// operand.
static constexpr int64_t kMinSteps = 8;

/// The number of steps that `op` takes for each element of an operand, if it is a sum that compares positions. It is
/// the number of iterations of the loops that do not index the operand.
static std::optional<int64_t> findRepetitions(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0 || op.getBlock()->getOps<linalg::IndexOp>().empty())
    return std::nullopt;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  std::optional<int64_t> least;
  for (AffineMap map : op.getIndexingMapsArray()) {
    int64_t steps = 1;
    for (auto [loop, range] : llvm::enumerate(ranges))
      if (!map.isFunctionOfDim(loop) &&
          (ShapedType::isDynamic(range) || llvm::MulOverflow(steps, range, steps)))
        return std::nullopt;
    least = std::min(least.value_or(steps), steps);
  }
  return least && *least >= kMinSteps ? least : std::nullopt;
}

/// The time of `op` in all iterations of the loops around it, in the unit of Cost.h.
static std::optional<double> predictInLoops(Operation *op, CpuAttr cpu) {
  std::optional<double> time = predictOp(op, cpu);
  for (Operation *parent = op->getParentOp(); time && parent; parent = parent->getParentOp()) {
    std::optional<double> iterations = countIterations(parent);
    time = iterations ? std::optional(*time * *iterations) : std::nullopt;
  }
  return time;
}

namespace {
struct NoteSlowLoops : attn::impl::NoteSlowLoopsBase<NoteSlowLoops> {
  void runOnOperation() override {
    CpuAttr cpu = getCpu(getOperation());
    // The predicted times of the loops that are slow for one reason. Ops of several source lines may be fused into one
    // op, whose inner ops have the locations of these lines.
    llvm::MapVector<std::pair<Location, StringAttr>, std::optional<double>> loops;
    getOperation().walk([&](Operation *op) {
      if (!isa<AttentionOp, linalg::LinalgOp>(op))
        return;
      std::optional<double> time = cpu ? predictInLoops(op, cpu) : std::nullopt;
      llvm::SmallSetVector<std::pair<Location, StringAttr>, 2> reasons;
      auto add = [&](Operation *at, const Twine &reason) {
        reasons.insert({at->getLoc(), StringAttr::get(&getContext(), reason)});
      };
      op->walk([&](Operation *inner) {
        if (isa<tensor::ExtractOp>(inner))
          add(inner, "loop over scalars: reads memory at indices that are data");
        if (isComputedInDouble(inner))
          add(inner, "loop in f64: computes " + inner->getName().getStringRef());
      });
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      if (std::optional<int64_t> steps = linalgOp ? findRepetitions(linalgOp) : std::nullopt)
        add(op, "loop over positions: takes " + Twine(*steps) + " steps for each element");
      for (const auto &reason : reasons) {
        auto [entry, isNew] = loops.try_emplace(reason, time);
        if (!isNew)
          entry->second =
              entry->second && time ? std::optional(*entry->second + *time) : std::nullopt;
      }
    });
    if (loops.empty())
      return;
    // A function that packs weights does not run in a call.
    auto role = getOperation()->getAttrOfType<StringAttr>(AttnDialect::kKernelAttr);
    bool runsInCall = !role || role.getValue() != "pack";
    std::optional<double> total = cpu && runsInCall ? predictOp(getOperation(), cpu) : std::nullopt;
    for (auto &[reason, time] : loops)
      emitFinding(reason.first, Finding::SlowLoop,
                  time && total && *total > 0 ? std::optional(*time / *total) : std::nullopt)
          << reason.second.getValue();
  }
};
} // namespace
