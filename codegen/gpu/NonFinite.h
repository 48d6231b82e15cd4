//===- NonFinite.h - find infinities and NaN in factors -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_NONFINITE_H
#define ATTN_CODEGEN_GPU_NONFINITE_H

#include "codegen/gpu/MatrixMultiply.h"

namespace attn {

/// Finds infinities and NaN in the registers of factors, by integer arithmetic on all elements of a register at once.
class NonFinite {
public:
  explicit NonFinite(mlir::FloatType element);

  /// An i32 that is negative, or has bit 15 set, if an element of `bits` is not finite.
  mlir::Value test(ThreadBuilder &b, mlir::Value bits) const;
  /// An i1: whether one of several calls of test() found an element that is not finite. `tests` is the bitwise or of
  /// the results of these calls.
  mlir::Value any(ThreadBuilder &b, mlir::Value tests) const;

  struct Parts {
    Factor finite;   ///< the finite elements, 0 for the others
    Factor positive; ///< 1 for infinity and NaN, 0 for the others
    Factor negative; ///< 1 for minus infinity and NaN, 0 for the others
  };
  Parts split(ThreadBuilder &b, const Factor &factor) const;

private:
  mlir::Type element;
  uint32_t signs, exponents, leastExponents, aboveInfinity, one, all;
  unsigned signBit;
};

} // namespace attn

#endif // ATTN_CODEGEN_GPU_NONFINITE_H
