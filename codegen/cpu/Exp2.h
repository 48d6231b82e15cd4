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

/// Scores as exponents of two relative to their maximum: (s - max) * factor.
///
/// An exponent depends on the score and on the maximum alone, never on the tile that the score is in, and is rounded
/// at its own size, not at that of the scores. Where multiply-adds are fused and max * factor is moderate, it is
/// s * factor - c with c = max * factor, rounded: one instruction. The rounding error of c is the same for all scores of
/// a row, so that it cancels in the division by their sum. Elsewhere max is subtracted first: no finite score
/// overflows, and no rounding error grows with the scores.
class Exponents {
public:
  /// `max` holds the maximum of each lane, -inf where there is none yet.
  Exponents(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value max, double factor,
            TargetAttr target);

  /// The exponent of any finite score.
  mlir::Value of(mlir::OpBuilder &builder, mlir::Value score) const;

  /// The same bits by one instruction where no lane `needsExact`.
  mlir::Value ofModerate(mlir::OpBuilder &builder, mlir::Value score) const;

  /// Lanes where the maximum is -inf or NaN, or is so large that `ofModerate` is not exact.
  mlir::Value needsExact() const { return isLarge; }

  /// The exponent that takes powers relative to this maximum to powers relative to `next`.
  mlir::Value changeTo(mlir::OpBuilder &builder, const Exponents &next) const;

private:
  mlir::Location loc;
  mlir::Value factor;
  bool isFused;
  mlir::Value isLarge;
  mlir::Value offset; // -max * factor, rounded
  // What `of` subtracts from a score, and what it adds to the product with the factor.
  mlir::Value subtracted; // max in large lanes, 0 elsewhere
  mlir::Value added;      // 0 in large lanes, the offset elsewhere
};

/// How many vectors createExp2 best gets at once: each needs three registers, their constants and
/// what a loop carries about ten.
int64_t exponentialsInFlight(TargetAttr target);

/// 2^x of each vector of f32, for x up to 127 unless overflow is expected, or NaN: the exponential of a
/// softmax. Values are computed stage by stage: one alone waits for its own polynomial.
llvm::SmallVector<mlir::Value> createExp2(mlir::OpBuilder &builder, mlir::Location loc,
                                          llvm::ArrayRef<mlir::Value> xs, TargetAttr target,
                                          Underflow underflow,
                                          Overflow overflow = Overflow::Never);

/// 2^x and e^x for every x, with infinities and denormals.
mlir::Value createFullExp2(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value createFullExp(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);

/// a * b + c, fused where the machine can; never a call.
mlir::Value createMultiplyAdd(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                              mlir::Value b, mlir::Value c);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_EXP2_H
