//===- EmptyRow.cpp - masks that can hide every key ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(%q, %k, %v) captures(%hidden) mask(#attn.dense<0>) {empty_row = nan}   // warning
//   attn.attention ins(%q, %k, %v) captures(%hidden) mask(#attn.dense<0>) {empty_row = zero}
//   attn.attention ins(%q, %k, %v) mask(#attn.causal) {empty_row = nan}
//
// Without a key the softmax that a graph spelled out gives NaN. Silent where every query is proved to have one,
// where there is no key at all, where an empty row gives 0, on finite fills, and on what the score region
// hides. Parts of a mask that follow from weights, a stored triangle say, are trusted to leave a key.
// Test: test/passes/lint/empty-row.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/KeyBounds.h"
#include "passes/Passes.h"
#include "passes/plan/Weights.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {
#define GEN_PASS_DEF_LINTEMPTYROW
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Whether the pairs that `part` keeps are known when weights are, and not from its sets alone.
static bool isOfWeights(MaskInterface part, AttentionOp op) {
  bool ofWeights = false, ofCall = false;
  auto read = [&](unsigned capture) {
    (dependsOnWeightsOnly(op.getCaptures()[capture]) ? ofWeights : ofCall) = true;
  };
  for (const KeptSet &set : part.kept(op.getNumBatch())) {
    llvm::for_each(set.symbols, read);
    for (DenseTest test : set.tests)
      read(test.capture);
  }
  return ofWeights && !ofCall;
}

namespace {
struct LintEmptyRow : attn::impl::LintEmptyRowBase<LintEmptyRow> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    getOperation().walk([&](AttentionOp op) {
      if (op.getMaskAttr() && !op.getSink() && op.getEmptyRow() == EmptyRow::NaN && mayBeEmpty(op))
        emitWarning(locationOf(op, op.getMaskAttrName()))
            << "the mask can hide every key of a query, whose row is NaN then; keep a key for "
               "every "
               "query, or call scaled_dot_product_attention, which gives 0";
    });
  }

  bool mayBeEmpty(AttentionOp op) {
    Attribute mask = op.getMaskAttr();
    SmallVector<Attribute> parts = {mask};
    if (auto both = dyn_cast<AndAttr>(mask))
      parts = llvm::to_vector(both.getMasks());
    llvm::erase_if(parts,
                   [&](Attribute part) { return isOfWeights(cast<MaskInterface>(part), op); });
    PairCounts counts = countPairs(op);
    counts.someKey = true; // a sum over none is 0, not NaN
    return mayHaveEmptyRow(AndAttr::get(op.getContext(), parts), op.getNumBatch(), counts);
  }
};
} // namespace
