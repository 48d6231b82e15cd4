//===- DoubleMath.h - functions of f32 computed in f64 -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// These functions are for code outside the inner loops of fused kernels. In f64, simple algorithms are enough for an
// error of at most 1 ulp of f32. Each function takes and returns f32 or a vector of f32, and calls no library.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_DOUBLEMATH_H
#define ATTN_CODEGEN_CPU_DOUBLEMATH_H

#include "mlir/IR/Builders.h"

namespace attn {

/// Whether ExpandMath.cpp replaces `op` by one of the functions below.
bool isComputedInDouble(mlir::Operation *op);

// Unless stated otherwise, errors are at most 1 ulp for all arguments, including infinities, denormal numbers and NaN.
mlir::Value createLog(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value createLog2(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value createLog1p(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value createExpM1(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value createPow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value y);

/// The result is NaN for |x| > 2^30: reducing such an angle would need pi to more than 80 bits.
mlir::Value createSin(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value createCos(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_DOUBLEMATH_H
