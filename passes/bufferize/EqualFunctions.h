//===- EqualFunctions.h - whether two functions compute the same -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {
/// Whether the functions have the same signature and body. Their names and source locations may differ.
inline bool areEqual(mlir::func::FuncOp left, mlir::func::FuncOp right) {
  return left.getFunctionType() == right.getFunctionType() &&
         left.getArgAttrsAttr() == right.getArgAttrsAttr() &&
         mlir::OperationEquivalence::isRegionEquivalentTo(
             &left.getBody(), &right.getBody(), mlir::OperationEquivalence::IgnoreLocations);
}
} // namespace attn
