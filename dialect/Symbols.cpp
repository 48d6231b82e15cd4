//===- Symbols.cpp - sizes that are known only at the call -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Symbols.h"

using namespace mlir;
using namespace attn;

StringAttr attn::symbolOfArgument(FunctionOpInterface function, unsigned number, int64_t axis) {
  auto dims = function.getArgAttrOfType<ArrayAttr>(number, AttnDialect::kDimsAttr);
  auto symbol = dims && axis < int64_t(dims.size()) ? dyn_cast<StringAttr>(dims[axis]) : nullptr;
  return symbol && !symbol.empty() ? symbol : nullptr;
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
