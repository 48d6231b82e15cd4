//===- RoundFactors.cpp - products of f32 that round their factors --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// In a module with attn.compute = bf16, for a machine with an instruction that adds products of pairs of bf16:
//   %y = linalg.contract ins(%x, %w : tensor<128x768xf32>, tensor<768x64xf32>) outs(%init : tensor<128x64xf32>)
//   %o = attn.attention ins(%q, %k, %v : tensor<...xf32>, ...) outs(%e : tensor<...xf32>)
// becomes
//   %xr = linalg.generic { arith.truncf } ins(%x)   %wr = linalg.generic { arith.truncf } ins(%w)
//   %y = linalg.contract ins(%xr, %wr : tensor<128x768xbf16>, tensor<768x64xbf16>) outs(%init : tensor<128x64xf32>)
//   %o = attn.attention ins(%qr, %kr, %vr : tensor<...xbf16>, ...) outs(%e : tensor<...xf32>)
//
// Sums, scores and the softmax stay f32. The function gets the attribute attn.compute too, which the report and the
// manifest show. A value is rounded once, even if several ops read it.
//
// The factors of a product are rounded if the machine has an instruction for such factors, and if the group of this
// instruction divides the length of the sum. The factors of an attention are rounded if the attention is then predicted
// to be faster, including the time for rounding, or if it already has a plan with groups. With few queries, rounding is
// slower, because most of the time is spent on reading keys and values, and rounding reads them once more. A function
// stays unchanged if no module around it has attn.compute.
// Test: test/passes/plan/round-factors.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/plan/Planner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_ROUNDFACTORS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
struct RoundFactors : attn::impl::RoundFactorsBase<RoundFactors> {
  using RoundFactorsBase::RoundFactorsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    FloatType type = findComputeType(function);
    if (!type)
      return;
    PlannerInterface planner = getPlanner(function);
    if (!planner)
      return signalPassFailure();
    Rounder rounder{type};
    bool any = false;
    function.walk([&](AttentionOp op) {
      if (!areF32({op.getQuery(), op.getKey(), op.getValue()}))
        return;
      bool rounds = op.getPlan() ? op.getPlan()->getGroup() > 1
                                 : planner.isFasterRounded(AttentionShape::get(op), type,
                                                           symbolizeSchedule(schedule));
      if (!rounds)
        return;
      for (OpOperand *factor : {&op.getQueryMutable(), &op.getKeyMutable(), &op.getValueMutable()})
        factor->set(rounder.round(factor->get()));
      any = true;
    });
    SmallVector<linalg::LinalgOp> products;
    function.walk([&](linalg::LinalgOp op) {
      if (isProduct(op) && areF32(op.getDpsInputs()) && areF32(op.getDpsInits()) &&
          planner.multipliesFaster(type, ProductShape::getDepth(op).value_or(ShapedType::kDynamic)))
        products.push_back(op);
    });
    for (linalg::LinalgOp op : products) {
      OpBuilder builder(op);
      Value a = rounder.round(op.getDpsInputs()[0]), b = rounder.round(op.getDpsInputs()[1]);
      linalg::LinalgOp rounded =
          createProduct(builder, op.getLoc(), a, b, op.getDpsInits()[0], op.getIndexingMapsArray());
      op->replaceAllUsesWith(rounded);
      op->erase();
      any = true;
    }
    if (any)
      function->setAttr(AttnDialect::kComputeAttr, TypeAttr::get(type));
  }

private:
  static bool areF32(ValueRange values) {
    return llvm::all_of(values,
                        [](Value value) { return getElementTypeOrSelf(value.getType()).isF32(); });
  }

  struct Rounder {
    FloatType type;
    llvm::DenseMap<Value, Value> rounded = llvm::DenseMap<Value, Value>();

    /// Returns `value` rounded to `type`.
    Value round(Value value) {
      Value &result = rounded[value];
      if (result)
        return result;
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      Location loc = value.getLoc();
      int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
      SmallVector<OpFoldResult> sizes;
      for (int64_t dim = 0; dim < rank; ++dim)
        sizes.push_back(dimOf(builder, loc, value, dim));
      Value empty = tensor::EmptyOp::create(builder, loc, sizes, type);
      return result = createConverted(builder, loc, value, empty);
    }
  };

  /// Returns the type of attn.compute on a module around `function`, or null if no module has the attribute.
  static FloatType findComputeType(func::FuncOp function) {
    for (auto module = function->getParentOfType<ModuleOp>(); module;
         module = module->getParentOfType<ModuleOp>())
      if (auto compute = module->getAttrOfType<TypeAttr>(AttnDialect::kComputeAttr))
        return cast<FloatType>(compute.getValue());
    return nullptr;
  }
};
} // namespace
