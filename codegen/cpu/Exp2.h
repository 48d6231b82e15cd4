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

/// The result for small powers, including 2^-inf.
enum class Underflow {
  Live, // at least about 2^kLeastProbabilityExponent
  Zero, // 0 below 2^kLeastProbabilityExponent
};

/// The result for powers beyond the greatest finite number.
enum class Overflow {
  Never, // exponents are known to be small enough
  Large, // 2^100 or more, infinity, or NaN
};

/// Converts scores to exponents of two relative to their maximum: (s - max) * factor.
///
/// For one factor, an exponent depends only on the score and on the maximum, not on the tile of the score. The rounding
/// error of an exponent is relative to the exponent, not to the scores. If multiply-adds are fused and |max * factor|
/// is less than 2^12, the exponent is s * factor - c, where c is max * factor, rounded. This takes one instruction. The
/// rounding error of c is the same for all scores of a row, so it cancels in the division by the sum of the row.
/// Otherwise max is subtracted first, so that no finite score overflows and no rounding error grows with the scores.
class Exponents {
public:
  /// `max` holds the maximum of each lane, -inf for a lane that has none yet.
  Exponents(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value max, double factor,
            CpuAttr cpu);

  /// The exponent of any finite score.
  mlir::Value of(mlir::OpBuilder &builder, mlir::Value score) const;

  /// Returns the same bits as `of`, computed by one instruction. needsExact() must be false in every lane.
  mlir::Value ofModerate(mlir::OpBuilder &builder, mlir::Value score) const;

  /// True in lanes where the maximum is -inf, and in lanes where `ofModerate` may differ from `of`, because the maximum
  /// is large or NaN.
  mlir::Value needsExact() const { return isLarge; }

  /// The exponent of the factor that rescales powers relative to this maximum to powers relative to `next`.
  mlir::Value changeTo(mlir::OpBuilder &builder, const Exponents &next) const;

private:
  mlir::Location loc;
  mlir::Value factor;
  bool isFused;
  mlir::Value isLarge;
  mlir::Value offset; // -max * factor, rounded
  // `of` subtracts `subtracted` from a score, multiplies by the factor, and adds `added`. If multiply-adds are not
  // fused, `subtracted` is max in all lanes, and `added` and `offset` are null.
  mlir::Value subtracted; // max in large lanes, 0 elsewhere
  mlir::Value added;      // 0 in large lanes, the offset elsewhere
};

/// The number of vectors to pass to one call of createExp2. Each vector needs three registers; the constants and the
/// values that a loop carries need about ten.
int64_t exponentialsInFlight(CpuAttr cpu);

/// 2^x of each vector of f32: the exponential of a softmax. x is NaN or, unless overflow is expected, at most 127. The
/// vectors are computed together, step by step, because each step of a single vector would wait for its previous step.
llvm::SmallVector<mlir::Value> createExp2(mlir::OpBuilder &builder, mlir::Location loc,
                                          llvm::ArrayRef<mlir::Value> xs, CpuAttr cpu,
                                          Underflow underflow, Overflow overflow = Overflow::Never);

/// 2^x and e^x for every x, including infinities and denormals.
mlir::Value createFullExp2(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value createFullExp(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);

/// a * b + c. On vectors, this is one instruction if the CPU has it. The code never calls a library.
mlir::Value createMultiplyAdd(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                              mlir::Value b, mlir::Value c);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_EXP2_H
