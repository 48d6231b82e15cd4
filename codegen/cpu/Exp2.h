//===- Exp2.h - powers of two and e without a library ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_EXP2_H
#define ATTN_CODEGEN_CPU_EXP2_H

#include "dialect/Attn.h"

#include "mlir/IR/Builders.h"

namespace attn {

/// What becomes of small powers, those of -inf among them.
enum class Underflow {
  Live, // about 2^kLeastWeightExponent at least
  Zero, // 0 below it
};

/// What becomes of powers beyond the greatest number.
enum class Overflow {
  Never, // exponents are known to be small enough
  Large, // 2^100 or more, infinity, or NaN
};

/// How many vectors createExp2 best gets at once: each needs three registers, their constants and
/// what a loop carries about ten.
int64_t exponentialsInFlight(TargetAttr target);

/// 2^(x * factor) of each vector of f32, for a positive factor and, unless overflow is expected,
/// products up to 127, or NaN: the exponential of a softmax. Values are computed stage by stage: one
/// alone waits for its own polynomial.
llvm::SmallVector<mlir::Value> createExp2(mlir::OpBuilder &builder, mlir::Location loc,
                                          llvm::ArrayRef<mlir::Value> xs, double factor,
                                          TargetAttr target, Underflow underflow,
                                          Overflow overflow = Overflow::Never);

/// 2^x and e^x for every x, with infinities and denormals.
mlir::Value createFullExp2(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value createFullExp(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);

/// a * b + c, fused where the machine can; never a call.
mlir::Value createMultiplyAdd(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                              mlir::Value b, mlir::Value c);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_EXP2_H
