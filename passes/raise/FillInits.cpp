//===- FillInits.cpp - reductions start from a linalg.fill -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %z = arith.constant dense<0.0> : tensor<8x16xf32>
//   %s = linalg.contract ... outs(%z : tensor<8x16xf32>)
// becomes
//   %zero = arith.constant 0.0 : f32, %e = tensor.empty() : tensor<8x16xf32>
//   %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>)
//   %s = linalg.contract ... outs(%z : tensor<8x16xf32>)
//
// A linalg.generic that yields a scalar becomes a linalg.fill in the same way. Later passes then need to match only
// this form of a reduction that starts from equal elements.
// Test: test/passes/raise/fill-inits.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace attn {
#define GEN_PASS_DEF_FILLINITS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;

/// The scalar that every element of `init` is equal to, if `init` is a constant or a linalg.generic; otherwise null.
static Value findScalar(OpBuilder &builder, Value init) {
  DenseElementsAttr elements;
  if (matchPattern(init, m_Constant(&elements)) && elements.isSplat())
    return arith::ConstantOp::create(builder, init.getLoc(),
                                     elements.getSplatValue<TypedAttr>());
  if (auto generic = init.getDefiningOp<linalg::GenericOp>())
    return linalg::isaFillOpInterface(generic).value_or(Value());
  return {};
}

namespace {
struct FillInits : attn::impl::FillInitsBase<FillInits> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0)
        return;
      builder.setInsertionPoint(op);
      for (OpOperand &init : op.getDpsInitsMutable()) {
        Value scalar = findScalar(builder, init.get());
        if (!scalar)
          continue;
        Location loc = init.get().getLoc();
        Value empty =
            tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, init.get()),
                                    getElementTypeOrSelf(init.get()));
        init.set(linalg::FillOp::create(builder, loc, scalar, empty).getResult(0));
      }
    });
  }
};
} // namespace
