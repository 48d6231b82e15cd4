//===- KeyBounds.h - which keys a tile of queries needs ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_KEYBOUNDS_H
#define ATTN_DIALECT_KEYBOUNDS_H

#include "dialect/Attn.h"

namespace attn {

/// What attn.key_range computes, derived from the sets of a mask: the keys [lo, hi) that some row
/// of a tile keeps and the keys [full_lo, full_hi) that every row keeps.
///
/// Bounds are affine functions of the op's operands, in their order: batch..., q, rows, keys, then
/// the least and the greatest value of each symbol.
class KeyBounds {
public:
  /// The bounds of `mask`, of everything if it is null.
  static KeyBounds get(mlir::MLIRContext *context, MaskInterface mask, unsigned numBatch,
                       int64_t step);
  static KeyBounds get(mlir::MLIRContext *context, llvm::ArrayRef<KeptSet> kept, unsigned numBatch,
                       int64_t step);

  /// lo, full_lo, full_hi, hi of one tile.
  std::array<int64_t, 4> evaluate(llvm::ArrayRef<int64_t> operands) const;

  /// The same four as operations; what is constant folds.
  std::array<mlir::OpFoldResult, 4> build(mlir::OpBuilder &builder, mlir::Location loc,
                                          llvm::ArrayRef<mlir::OpFoldResult> operands) const;

  /// Whether a bound depends on the value of operand `operand`.
  bool isFunctionOf(unsigned operand) const;

private:
  /// Of one set. A lower bound is the greatest result of its map, an upper bound the least and
  /// exclusive.
  struct Disjunct {
    mlir::AffineMap lo, hi;
    /// Beyond lo and hi, what keeps a key from being kept by every row.
    mlir::AffineMap fullLo, fullHi;
    /// False where no affine bound on the keys hides pairs: dense tests, conditions on q alone,
    /// strides.
    bool hasFull;
    /// Whether the stated bounds can be negative whatever the tile: those need a clamp.
    bool hiMayBeNegative, fullMayBeNegative;
  };

  template <typename Algebra>
  std::array<typename Algebra::Value, 4>
  compute(Algebra &algebra, llvm::ArrayRef<typename Algebra::Value> operands) const;

  mlir::MLIRContext *context;
  int64_t step;
  llvm::SmallVector<Disjunct, 1> disjuncts;
};

/// How many queries or keys there are; unknown is ShapedType::kDynamic.
struct PairCounts {
  int64_t queries, keys;
  /// Known to be equal although neither is known.
  bool equal = false;
  /// Known to be keys although it is not known how many.
  bool someKey = false;
};

/// How many queries and keys `op` has; equal where one symbol of its function names both sizes.
PairCounts countPairs(AttentionOp op);

/// Whether a row may be without a kept key: false is a proof that every row keeps one.
bool mayHaveEmptyRow(MaskInterface mask, unsigned numBatch, PairCounts counts);

/// Whether the mask is proved to keep every pair.
bool keepsAll(MaskInterface mask, unsigned numBatch, PairCounts counts);

} // namespace attn

#endif // ATTN_DIALECT_KEYBOUNDS_H
