//===- ScoreRegion.h - scores of L pairs at a time ---------------*- C++ -*-===//
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

/// Turns the products K Q^T of a tile into scores, one vector at a time. A vector has the pairs of L neighbouring
/// queries with one key or, if the op has queries in rows, of L neighbouring keys with one query. L is the number of
/// lanes.
///
/// If the `unit` of max (see attn.online_step) is the scale, products stay unchanged, and the scale is folded into the
/// factor of the exponent, at no cost. Otherwise the scores are computed as the op defines them. `attn.online_step` and
/// `attn.online_probabilities` of one attention have the same region and scale, and therefore the same units.
class ScoreRegion {
public:
  template <typename OpTy>
  explicit ScoreRegion(OpTy op)
      : op(op), captures(op.getCaptures()), origin(op.getOrigin()), region(op.getScore()),
        laneDim(op.getRows() ? 0 : 1), scale(op.getScale().convertToDouble()), unit(op.getUnit()) {
    for (unsigned i = 0; i < captures.size(); ++i)
      captureMaps.push_back(op.getCaptureMap(i));
    if (MaskInterface mask = op.getMaskAttr())
      kept = mask.kept(op.getNumBatch());
  }

  /// Reports an error for a mask that cannot be computed on vectors.
  llvm::LogicalResult verify() const;

  /// Returns the conversion of scores to exponents of two relative to `max`, which has the same unit as the scores.
  Exponents createExponents(mlir::OpBuilder &builder, mlir::Value max, CpuAttr cpu) const;

  /// Whether the products are the scores, without any change.
  bool isIdentity() const { return isRaw() && kept.empty(); }

  /// Whether scores of -inf are expected, from hidden pairs or from a region.
  bool canHide() const { return !kept.empty() || !region.empty(); }

  /// The lanes of a vector, along the queries or, if queries are in rows, along the keys. A span also holds the values
  /// that all vectors with these lanes need, so that they are loaded only once.
  struct Span {
    Lanes lanes;
    mlir::Value index; // absolute index of lane 0
    llvm::SmallVector<mlir::Value>
        captures; // null where the captured tile varies with the other dimension
  };
  Span createSpan(mlir::OpBuilder &builder, const Lanes &lanes) const;

  /// The scores of `span` with key `other` of the tile or, if queries are in rows, with query `other`. The score of a
  /// hidden pair is -inf.
  mlir::Value createScores(mlir::OpBuilder &builder, mlir::Value products, mlir::Value other,
                           const Span &span) const;

private:
  bool isRaw() const { return region.empty() && unit == scale; }
  /// The coordinate of the origin (q or k) along the lanes, and the coordinate along the other dimension.
  mlir::Value originOfLanes() const {
    return laneDim == 1 ? origin.drop_back().back() : origin.back();
  }
  mlir::Value originOfOther() const {
    return laneDim == 1 ? origin.back() : origin.drop_back().back();
  }
  /// The coordinates (batch..., q, k) of pairs.
  llvm::SmallVector<mlir::Value> coordinates(mlir::Value ofLanes, mlir::Value ofOther) const;

  mlir::Value createCapture(mlir::OpBuilder &builder, unsigned capture, mlir::Value other,
                            const Lanes &lanes) const;
  mlir::Value createRegion(mlir::OpBuilder &builder, mlir::Value score, mlir::Value other,
                           mlir::ValueRange elements, const Span &span) const;
  mlir::Value createConstraint(mlir::OpBuilder &builder, const KeptSet &set, unsigned constraint,
                               mlir::Value other, mlir::ValueRange elements,
                               const Span &span) const;
  mlir::Value createKept(mlir::OpBuilder &builder, mlir::Value other, mlir::ValueRange elements,
                         const Span &span) const;

  mlir::Operation *op;
  mlir::ValueRange captures, origin;
  mlir::Region &region;
  unsigned laneDim; // the position in (k, q) of the dimension along the lanes
  double scale, unit;
  llvm::SmallVector<mlir::AffineMap> captureMaps;
  llvm::SmallVector<KeptSet> kept;
};

} // namespace attn

#endif // ATTN_CODEGEN_CPU_SCOREREGION_H
