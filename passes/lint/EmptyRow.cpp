//===- EmptyRow.cpp - masks that can hide every key ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(%q, %k, %v) captures(%hidden) mask(#attn.dense<0>) {empty_row = nan}   // warning
//   attn.attention ins(%q, %k, %v) captures(%hidden) mask(#attn.dense<0>) {empty_row = zero}
//   attn.attention ins(%q, %k, %v) mask(#attn.causal) {empty_row = nan}
//
// For a query whose keys are all hidden, a softmax that the graph computes op by op gives NaN. The rule does not warn
// if every query is proved to keep a key, if there is no key at all, if there is a sink, or if an empty row gives 0. It
// considers neither finite fills nor pairs that the score region hides. The rule assumes that a part of a mask which
// depends on weights alone, such as a stored triangular mask, keeps a key for every query.
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

/// Whether the pairs that `part` keeps depend on weights, and on no other tensors.
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
      if (op.getMaskAttr() && !op.getFill() && !op.getSink() && op.getEmptyRow() == EmptyRow::NaN &&
          mayBeEmpty(op))
        emitWarning(locationOf(op, op.getMaskAttrName()))
            << "the mask can hide every key of a query, and the row of such a query is NaN; keep "
               "a key for every query, or call scaled_dot_product_attention, which gives 0";
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
    counts.someKey = true; // without any key the output is 0, not NaN
    return mayHaveEmptyRow(AndAttr::get(op.getContext(), parts), op.getNumBatch(), counts);
  }
};
} // namespace
