//===- Symbols.cpp - sizes that are known only at the call -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Symbols.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace attn;

StringAttr attn::symbolOfArgument(FunctionOpInterface function, unsigned number, int64_t axis) {
  auto dims = function.getArgAttrOfType<ArrayAttr>(number, AttnDialect::kDimsAttr);
  auto symbol = dims && axis < int64_t(dims.size()) ? dyn_cast<StringAttr>(dims[axis]) : nullptr;
  return symbol && !symbol.empty() ? symbol : nullptr;
}

void attn::forEachSymbol(
    FunctionOpInterface function,
    llvm::function_ref<void(StringAttr symbol, BlockArgument argument, int64_t axis)> visit) {
  for (BlockArgument argument : function.getArguments())
    if (auto dims =
            function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), AttnDialect::kDimsAttr))
      for (auto [axis, symbol] : llvm::enumerate(dims.getAsRange<StringAttr>()))
        if (!symbol.empty())
          visit(symbol, argument, axis);
}

StringAttr attn::symbolOf(FunctionOpInterface function, Value value, int64_t axis) {
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<ShapedType>(argument.getType());
    for (int64_t i = 0; type && i < type.getRank(); ++i) {
      StringAttr symbol = symbolOfArgument(function, argument.getArgNumber(), i);
      if (!symbol)
        continue;
      FailureOr<bool> isEqual = ValueBoundsConstraintSet::areEqual({value, axis}, {argument, i});
      if (succeeded(isEqual) && *isEqual)
        return symbol;
    }
  }
  return nullptr;
}

namespace {
/// The sizes of a concatenation, for which upstream has no model.
struct ConcatSizes : ValueBoundsOpInterface::ExternalModel<ConcatSizes, tensor::ConcatOp> {
  void populateBoundsForShapedValueDim(Operation *op, Value value, int64_t axis,
                                       ValueBoundsConstraintSet &bounds) const {
    auto concat = cast<tensor::ConcatOp>(op);
    AffineExpr size = bounds.getExpr(concat.getInputs().front(), axis);
    if (axis == int64_t(concat.getDim()))
      for (Value input : concat.getInputs().drop_front())
        size = size + bounds.getExpr(input, axis);
    bounds.bound(value)[axis] == size;
  }
};
} // namespace

void attn::attachSizes(MLIRContext *context) {
  tensor::ConcatOp::attachInterface<ConcatSizes>(*context);
}
