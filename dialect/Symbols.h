//===- Symbols.h - sizes that are known only at the call ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_SYMBOLS_H
#define ATTN_DIALECT_SYMBOLS_H

#include "dialect/Attn.h"

namespace attn {

/// The symbol that `attn.dims` gives dimension `axis` of argument `number`, or null.
mlir::StringAttr symbolOfArgument(mlir::FunctionOpInterface function, unsigned number,
                                  int64_t axis);

/// Calls `visit` for each dimension of an argument that has a symbol.
void forEachSymbol(
    mlir::FunctionOpInterface function,
    llvm::function_ref<void(mlir::StringAttr symbol, mlir::BlockArgument argument, int64_t axis)>
        visit);

/// A symbol of a dimension of an argument, if the size of this dimension is proved to equal that of dimension `axis` of
/// `value`; null if there is no such dimension.
mlir::StringAttr symbolOf(mlir::FunctionOpInterface function, mlir::Value value, int64_t axis);

/// Attaches the interface ValueBoundsOpInterface to ops that lack it upstream.
void attachSizes(mlir::MLIRContext *context);

} // namespace attn

#endif // ATTN_DIALECT_SYMBOLS_H
