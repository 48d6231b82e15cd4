//===- ScoreRegion.h - scores of L queries at a time -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_SCOREREGION_H
#define ATTN_CODEGEN_CPU_SCOREREGION_H

#include "codegen/cpu/Exp2.h"
#include "codegen/cpu/Lanes.h"
#include "dialect/Attn.h"

namespace attn {

/// How one tile step turns products K Q^T into scores, a vector of queries at a time.
///
/// Without a region and with a positive scale, unless it is huge, the greatest product is the greatest score: products
/// then stay as they are, max is in units of products, and the scale is part of the factor of the exponent, at
/// no cost. Otherwise scores are what the definition says. `attn.online_update` and `attn.online_weights`
/// of one attention have the same region and scale, hence the same units.
class ScoreRegion {
public:
  template <typename OpTy>
  explicit ScoreRegion(OpTy op)
      : op(op), captures(op.getCaptures()), origin(op.getOrigin()), region(op.getScore()),
        scale(op.getScale().convertToDouble()) {
    for (unsigned i = 0; i < captures.size(); ++i)
      captureMaps.push_back(op.getCaptureMap(i));
    if (MaskInterface mask = op.getMaskAttr())
      kept = mask.kept(op.getNumBatch());
  }

  /// Reports what cannot be computed on vectors.
  llvm::LogicalResult verify() const;

  /// Scores relative to `max`, in the units of both, as exponents of two.
  Exponents createExponents(mlir::OpBuilder &builder, mlir::Value max, TargetAttr target) const;

  /// Whether products are scores as they are.
  bool isIdentity() const { return isRaw() && kept.empty(); }

  /// Whether scores of -inf are expected: hidden pairs, or what a region gives.
  bool canHide() const { return !kept.empty() || !region.empty(); }

  /// What a vector of queries needs at every key: loaded once.
  struct Queries {
    Lanes lanes;
    mlir::Value index;                       // of lane 0, absolute
    llvm::SmallVector<mlir::Value> captures; // null where the captured tile varies with k
  };
  Queries createQueries(mlir::OpBuilder &builder, const Lanes &lanes) const;

  /// The scores of key `k` of the tile, -inf where the pair is hidden.
  mlir::Value createScores(mlir::OpBuilder &builder, mlir::Value products, mlir::Value k,
                           const Queries &queries) const;

private:
  /// The factor of the exponent, scale * log2(e), of a larger scale might overflow.
  static constexpr double kGreatestRawScale = 0x1p126;
  bool isRaw() const { return region.empty() && scale > 0 && scale <= kGreatestRawScale; }
  mlir::Value createCapture(mlir::OpBuilder &builder, unsigned capture, mlir::Value k,
                            const Lanes &lanes) const;
  mlir::Value createRegion(mlir::OpBuilder &builder, mlir::Value score, mlir::Value k,
                           mlir::ValueRange elements, const Queries &queries) const;
  mlir::Value createConstraint(mlir::OpBuilder &builder, const KeptSet &set, unsigned constraint,
                               mlir::Value k, mlir::ValueRange elements,
                               const Queries &queries) const;
  mlir::Value createKept(mlir::OpBuilder &builder, mlir::Value k, mlir::ValueRange elements,
                         const Queries &queries) const;

  mlir::Operation *op;
  mlir::ValueRange captures, origin;
  mlir::Region &region;
  double scale;
  llvm::SmallVector<mlir::AffineMap> captureMaps;
  llvm::SmallVector<KeptSet> kept;
};

} // namespace attn

#endif // ATTN_CODEGEN_CPU_SCOREREGION_H
