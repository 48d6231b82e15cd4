//===- UnshareInits.cpp - every result starts from an init of its own ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %0 = linalg.fill ins(%zero) outs(%empty)
//   %k = linalg.contract ins(%x, %wk) outs(%0)
//   %v = linalg.contract ins(%x, %wv) outs(%0)
// becomes
//   %0 = linalg.fill ins(%zero) outs(%empty)
//   %k = linalg.contract ins(%x, %wk) outs(%0)
//   %1 = linalg.fill ins(%zero) outs(%empty.1)
//   %v = linalg.contract ins(%x, %wv) outs(%1)
//
// Both products want to accumulate in place; of a shared init bufferization would have to copy one. Importers
// and CSE share inits, so this is the last word of the stage.
// Left alone: inits that hold data, such as a residual.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace attn {
#define GEN_PASS_DEF_UNSHAREINITS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;

namespace {

void unshareInits(DestinationStyleOpInterface op) {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    Operation *source = init.get().getDefiningOp();
    if (!isa_and_nonnull<tensor::EmptyOp, linalg::FillOp, linalg::BroadcastOp>(source) ||
        source->hasOneUse())
      continue;
    Operation *own = OpBuilder(op).clone(*source);
    init.set(own->getResult(0));
    if (auto dps = dyn_cast<DestinationStyleOpInterface>(own))
      unshareInits(dps);
  }
}

struct UnshareInits : attn::impl::UnshareInitsBase<UnshareInits> {
  void runOnOperation() override { getOperation().walk(unshareInits); }
};

} // namespace
