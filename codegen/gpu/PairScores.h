//===- PairScores.h - scores of the pairs that a lane holds -------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_PAIRSCORES_H
#define ATTN_CODEGEN_GPU_PAIRSCORES_H

#include "codegen/gpu/MatrixMultiply.h"

namespace attn {

/// How a tile step with queries in rows turns products K Q^T into scores, for the pairs that one lane holds.
///
/// Where the unit of max is the scale, products stay unchanged, and the scale is folded into the factor of the
/// exponent. Otherwise the scores are computed as the op defines them.
class PairScores {
public:
  /// `columns` is the number of columns of the accumulators of one query: at least that of the keys.
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

  /// The factor of differences of scores in exponents of two.
  double exponentScale() const;

  /// Whether some scores can be -inf: those of hidden pairs, of keys beyond the tile, or those of a region.
  bool canHide() const { return !kept.empty() || !region.empty() || isPartial(); }
  bool hasMask() const { return !kept.empty(); }
  /// Whether the probability of some pair is 0 whatever its value contains.
  bool hidesPairs() const { return !kept.empty() || isPartial(); }

  /// Replaces products by scores, and by -inf where a pair is hidden. Each accumulator in `products` holds the products of
  /// 16 queries and 8 keys. The first of the queries is query `row` of the tile.
  void apply(ThreadBuilder &b, mlir::Value row, llvm::MutableArrayRef<Accumulator> products) const;

private:
  bool isRaw() const { return region.empty() && unit == scale; }
  /// Whether the tile may have fewer keys than accumulators have columns.
  bool isPartial() const {
    return mlir::cast<mlir::MemRefType>(key.getType()).getDimSize(0) != columns;
  }

  /// One query of a lane: what does not vary with the key.
  struct Row {
    mlir::Value query;                       ///< in the tile, at most the last one
    llvm::SmallVector<mlir::Value> captures; ///< null where the element varies with the key
    llvm::SmallVector<mlir::Value>
        conditions; ///< of the constraints of all sets, in order; null where they vary
    llvm::SmallVector<mlir::Value>
        bounds; ///< i32: such a condition holds if slope * column is at least the bound
  };
  Row createRow(ThreadBuilder &b, mlir::Value row) const;
  mlir::Value createCapture(ThreadBuilder &b, unsigned capture, mlir::Value row,
                            mlir::Value column) const;
  /// The key of the tile in column `column` of the accumulators of this lane, which exists.
  mlir::Value keyAt(ThreadBuilder &b, int64_t column) const;
  mlir::Value createRegion(ThreadBuilder &b, mlir::Value score, const Row &row, mlir::Value column,
                           mlir::ValueRange elements) const;
  mlir::Value createKept(ThreadBuilder &b, const Row &row, int64_t column, mlir::Value key,
                         mlir::ValueRange elements) const;
  /// The slope of a constraint in k; none if one of its symbols varies with k.
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
