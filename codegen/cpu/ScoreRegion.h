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
/// Where the unit of max is the scale, products stay unchanged, and the scale is folded into the factor of the exponent,
/// at no cost. Otherwise the scores are computed as the op defines them. `attn.online_step` and
/// `attn.online_probabilities` of one attention have the same region and scale, and therefore the same units.
class ScoreRegion {
public:
  template <typename OpTy>
  explicit ScoreRegion(OpTy op)
      : op(op), captures(op.getCaptures()), origin(op.getOrigin()), region(op.getScore()),
        scale(op.getScale().convertToDouble()), unit(op.getUnit()) {
    for (unsigned i = 0; i < captures.size(); ++i)
      captureMaps.push_back(op.getCaptureMap(i));
    if (MaskInterface mask = op.getMaskAttr())
      kept = mask.kept(op.getNumBatch());
  }

  /// Reports an error for a mask that cannot be computed on vectors.
  llvm::LogicalResult verify() const;

  /// Converts scores to exponents of two relative to `max`, which has the same units.
  Exponents createExponents(mlir::OpBuilder &builder, mlir::Value max, CpuAttr cpu) const;

  /// Whether products need no change to be scores.
  bool isIdentity() const { return isRaw() && kept.empty(); }

  /// Whether scores of -inf are expected, from hidden pairs or from a region.
  bool canHide() const { return !kept.empty() || !region.empty(); }

  /// Values that a vector of queries needs at every key. They are loaded once.
  struct Queries {
    Lanes lanes;
    mlir::Value index;                       // absolute query index of lane 0
    llvm::SmallVector<mlir::Value> captures; // null where the captured tile varies with k
  };
  Queries createQueries(mlir::OpBuilder &builder, const Lanes &lanes) const;

  /// The scores of key `k` of the tile, -inf where the pair is hidden.
  mlir::Value createScores(mlir::OpBuilder &builder, mlir::Value products, mlir::Value k,
                           const Queries &queries) const;

private:
  bool isRaw() const { return region.empty() && unit == scale; }
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
  double scale, unit;
  llvm::SmallVector<mlir::AffineMap> captureMaps;
  llvm::SmallVector<KeptSet> kept;
};

} // namespace attn

#endif // ATTN_CODEGEN_CPU_SCOREREGION_H
