//===- DropDeadOutputs.cpp - weights that nobody reads are not computed ----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %o:2 = attn.attention ... outs(%e, %w)          only %o#0 has uses
// becomes
//   %o = attn.attention ... outs(%e)
//
// Left alone: attentions whose weights are read.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {
#define GEN_PASS_DEF_DROPDEADOUTPUTS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

struct DropDeadOutputs : attn::impl::DropDeadOutputsBase<DropDeadOutputs> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) {
      if (op->getNumResults() != 2 || !op.getResult(1).use_empty())
        return;
      OpBuilder builder(op);
      ArrayAttr maps = builder.getArrayAttr(op.getIndexingMaps().getValue().drop_back());
      auto kept = AttentionOp::create(builder, op.getLoc(), op.getOuts()[0].getType(), op.getQuery(),
                                      op.getKey(), op.getValue(), op.getCaptures(), op.getOuts().take_front(),
                                      op.getOrigin(), op.getMaskAttr(), op.getPlanAttr(), maps,
                                      op.getScaleAttr(), op.getEmptyRowAttr(), op.getAccTypeAttr());
      kept->setDiscardableAttrs(op->getDiscardableAttrDictionary());
      kept.getScore().takeBody(op.getScore());
      op.getResult(0).replaceAllUsesWith(kept.getResult(0));
      op.erase();
    });
  }
};

} // namespace
