//===- KeyBounds.h - which keys a tile of queries needs ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_KEYBOUNDS_H
#define ATTN_DIALECT_KEYBOUNDS_H

#include "dialect/Attn.h"

namespace attn {

/// The results of attn.key_range, derived from the sets of a mask: the keys [lo, hi) that some row of a tile keeps, and
/// the keys [full_lo, full_hi) that every row keeps.
///
/// Bounds are affine functions of the op's operands, in this order: batch..., q, rows, keys, then the least and the
/// greatest value of each symbol.
class KeyBounds {
public:
  /// The bounds of `mask`; a null mask keeps every pair.
  static KeyBounds get(mlir::MLIRContext *context, MaskInterface mask, unsigned numBatch,
                       int64_t step);
  static KeyBounds get(mlir::MLIRContext *context, llvm::ArrayRef<KeptSet> kept, unsigned numBatch,
                       int64_t step);

  /// Computes lo, full_lo, full_hi and hi of one tile.
  std::array<int64_t, 4> evaluate(llvm::ArrayRef<int64_t> operands) const;

  /// Builds operations that compute these four bounds; constant bounds fold.
  std::array<mlir::OpFoldResult, 4> build(mlir::OpBuilder &builder, mlir::Location loc,
                                          llvm::ArrayRef<mlir::OpFoldResult> operands) const;

  /// Makes bounds relative to `first`, the first key of a part of the keys. `bounds` are the bounds for all keys before
  /// the end of this part. No result is negative, and the number of keys between full_lo and full_hi is a multiple of
  /// the step.
  std::array<int64_t, 4> relativeTo(int64_t first, std::array<int64_t, 4> bounds) const;
  static std::array<mlir::OpFoldResult, 4> relativeTo(mlir::OpBuilder &builder, mlir::Location loc,
                                                      mlir::OpFoldResult first, int64_t step,
                                                      std::array<mlir::OpFoldResult, 4> bounds);

  /// Whether a bound depends on the value of operand `operand`.
  bool isFunctionOf(unsigned operand) const;

private:
  /// The bounds of one set. A lower bound is the greatest result of its map. An upper bound is the least result of its
  /// map, and is exclusive.
  struct Disjunct {
    mlir::AffineMap lo, hi;
    /// The bounds, in addition to lo and hi, of the keys that every row keeps.
    mlir::AffineMap fullLo, fullHi;
    /// Whether only affine bounds on the keys hide pairs. Dense tests, conditions on q alone and strides are not such
    /// bounds.
    bool hasFull;
    /// Whether hi, or the length of the range from fullLo to fullHi, may be negative for some tile and must be clamped
    /// to 0.
    bool hiMayBeNegative, fullMayBeNegative;
  };

  template <typename Algebra>
  std::array<typename Algebra::Value, 4>
  compute(Algebra &algebra, llvm::ArrayRef<typename Algebra::Value> operands) const;

  mlir::MLIRContext *context;
  int64_t step;
  llvm::SmallVector<Disjunct, 1> disjuncts;
};

/// The numbers of queries and keys; an unknown number is ShapedType::kDynamic.
struct PairCounts {
  int64_t queries, keys;
  /// Whether the two numbers are known to be equal although neither number is known.
  bool equal = false;
  /// Whether the number of keys is known to be at least 1 although the number itself is not known.
  bool someKey = false;
};

/// The numbers of queries and keys of `op`. `equal` is true if one symbol of the function names both sizes.
PairCounts countPairs(AttentionOp op);

/// Whether a row may have no kept key. If the result is false, every row is proved to keep a key.
bool mayHaveEmptyRow(MaskInterface mask, unsigned numBatch, PairCounts counts);

/// Whether the mask is proved to keep every pair.
bool keepsAll(MaskInterface mask, unsigned numBatch, PairCounts counts);

} // namespace attn

#endif // ATTN_DIALECT_KEYBOUNDS_H
