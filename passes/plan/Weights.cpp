//===- Weights.cpp - values that depend on weights only --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/Weights.h"
#include "dialect/Attn.h"

using namespace mlir;
using namespace attn;

bool attn::dependsOnWeightsOnly(Value value) {
  bool sawWeight = false;
  SmallVector<Value> worklist = {value};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
      if (!function || !function.getArgAttr(argument.getArgNumber(), AttnDialect::kWeightAttr))
        return false;
      sawWeight = true;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!isPure(op))
      return false;
    llvm::append_range(worklist, op->getOperands());
    // Values that a body captures from outside count as operands.
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!op->isAncestor(operand.getParentBlock()->getParentOp()))
          worklist.push_back(operand);
    });
  }
  return sawWeight;
}
