//===- UnifyDims.cpp - one value for each symbolic size --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @f(%x: tensor<?x4xf32> {attn.dims = ["n", ""]}, %mask: tensor<?xi1> {attn.dims = ["n"]})
//     %n = tensor.dim %mask, %c0
// becomes
//     %n = tensor.dim %x, %c0
//
// Dimensions with the same symbol are equal: the runtime refuses a call where they are not. The pass reads each such
// size from the first argument that has the symbol, so equal sizes become one value and later passes need not prove
// them equal. Sizes without a symbol stay unchanged.
//
//===----------------------------------------------------------------------===//

#include "dialect/Symbols.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace attn {
#define GEN_PASS_DEF_UNIFYDIMS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;

namespace {

struct UnifyDims : attn::impl::UnifyDimsBase<UnifyDims> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    DenseMap<StringAttr, std::pair<BlockArgument, int64_t>> first;
    for (BlockArgument argument : function.getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType()))
        for (int64_t dim = 0; dim < type.getRank(); ++dim)
          if (StringAttr symbol = attn::symbolOfArgument(function, argument.getArgNumber(), dim))
            first.try_emplace(symbol, argument, dim);

    function.walk([&](tensor::DimOp op) {
      auto argument = dyn_cast<BlockArgument>(op.getSource());
      std::optional<int64_t> dim = op.getConstantIndex();
      if (!argument || argument.getOwner()->getParentOp() != function || !dim)
        return;
      auto it = first.find(attn::symbolOfArgument(function, argument.getArgNumber(), *dim));
      if (it == first.end() || it->second == std::pair(argument, *dim))
        return;
      OpBuilder builder(op);
      op.replaceAllUsesWith(
          tensor::DimOp::create(builder, op.getLoc(), it->second.first, it->second.second)
              .getResult());
      op.erase();
    });
  }
};

} // namespace
