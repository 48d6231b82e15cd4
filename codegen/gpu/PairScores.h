//===- PairScores.h - scores of the pairs that a lane holds -------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_PAIRSCORES_H
#define ATTN_CODEGEN_GPU_PAIRSCORES_H

#include "codegen/gpu/MatrixMultiply.h"

namespace attn {

/// Turns the products of the queries and keys of a step into scores, for the pairs that one lane holds. The rows of
/// accumulators are queries.
///
/// If the `unit` of the op is its scale, the products stay unscaled, and exponentScale() includes the scale. Otherwise,
/// the scores are those that the op defines.
class PairScores {
public:
  /// `columns` is the number of columns of the accumulators of one query. It is at least the number of keys of the
  /// tile.
  template <typename OpTy>
  PairScores(OpTy op, int64_t columns)
      : columns(columns), captures(op.getCaptures()), origin(op.getOrigin()), region(op.getScore()),
        query(op.getQuery()), key(op.getKey()), scale(op.getScale().convertToDouble()),
        unit(op.getUnit()) {
    for (unsigned i = 0; i < captures.size(); ++i)
      captureMaps.push_back(op.getCaptureMap(i));
    if (MaskInterface mask = op.getMaskAttr())
      kept = mask.kept(op.getNumBatch());
  }

  /// The factor that turns a difference of scores into the exponent of a power of 2.
  double exponentScale() const;

  /// Whether some scores can be -inf: those of hidden pairs, of keys beyond the tile, or those that a region computes.
  bool canHide() const { return !kept.empty() || !region.empty() || isPartial(); }
  bool hasMask() const { return !kept.empty(); }
  /// Whether the mask can hide pairs, or some columns can lie beyond the last key. The values of such pairs must not
  /// change the output, even if they are infinite or NaN.
  bool hidesPairs() const { return !kept.empty() || isPartial(); }

  /// Replaces products by scores, or by -inf where a pair is hidden. Each accumulator in `products` holds the products
  /// of 16 queries and 8 keys. The first of the queries is query `row` of the tile.
  void apply(ThreadBuilder &b, mlir::Value row, llvm::MutableArrayRef<Accumulator> products) const;

private:
  bool isRaw() const { return region.empty() && unit == scale; }
  /// Whether the tile may have fewer keys than accumulators have columns.
  bool isPartial() const {
    return mlir::cast<mlir::MemRefType>(key.getType()).getDimSize(0) != columns;
  }

  /// The values for one query of a lane that do not vary with the key.
  struct Row {
    /// The number of the query in the tile. If operands are captured, or if a region computes scores, it is at most the
    /// number of the last query.
    mlir::Value query;
    /// One element of each captured operand; null if the element varies with the key.
    llvm::SmallVector<mlir::Value> captures;
    /// For each constraint of all sets, in order: an i1, whether the constraint holds; null if the constraint varies
    /// with the key.
    llvm::SmallVector<mlir::Value> conditions;
    /// For each constraint of all sets: an i32, with which slope * column is compared; null if the constraint does not
    /// vary with the key, or is evaluated for each pair.
    llvm::SmallVector<mlir::Value> bounds;
  };
  Row createRow(ThreadBuilder &b, mlir::Value row) const;
  mlir::Value createCapture(ThreadBuilder &b, unsigned capture, mlir::Value row,
                            mlir::Value column) const;
  /// The number in the tile of the key in column `column`, counted from the first column of this lane. For a
  /// column beyond the last key, it is the number of the last key.
  mlir::Value keyAt(ThreadBuilder &b, int64_t column) const;
  mlir::Value createRegion(ThreadBuilder &b, mlir::Value score, const Row &row, mlir::Value column,
                           mlir::ValueRange elements) const;
  mlir::Value createKept(ThreadBuilder &b, const Row &row, int64_t column, mlir::Value key,
                         mlir::ValueRange elements) const;
  /// The slope of a constraint in k. None if the constraint is not linear in k, if the slope is too large, or if a
  /// symbol of the constraint varies with k.
  std::optional<int64_t> slopeOf(const KeptSet &set, unsigned constraint) const;

  int64_t columns;
  mlir::ValueRange captures, origin;
  mlir::Region &region;
  mlir::Value query, key;
  double scale, unit;
  llvm::SmallVector<mlir::AffineMap> captureMaps; // over (k, q)
  llvm::SmallVector<KeptSet> kept;
};

} // namespace attn

#endif // ATTN_CODEGEN_GPU_PAIRSCORES_H
