//===- DotProducts.h - contractions along their sums --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_DOTPRODUCTS_H
#define ATTN_CODEGEN_CPU_DOTPRODUCTS_H

#include "codegen/cpu/Contraction.h"

namespace attn {

/// A contraction whose inputs are both contiguous along its sum: scores of few queries, for which
/// keys are not worth transposing. L dot products at a time, the lanes along the sum; their lanes
/// are added up by a transposition, or one by one where they are few.
struct DotProducts {
  /// `contraction` as dot products, or none: no loop of one input alone is contiguous in the output,
  /// and none has a single step.
  static std::optional<DotProducts> match(const Contraction &contraction);

  mlir::linalg::LinalgOp op;
  unsigned rows;      // the input with a row for each of L products; the other has one for all
  unsigned n;         // their loop
  unsigned reduction; // the sum
  /// The other loops: L rows come from memory once, for all of those that do not choose rows.
  llvm::SmallVector<unsigned> outer, inner;
};

/// Emits `products` as loops over vectors.
void createDotProducts(mlir::OpBuilder &builder, const DotProducts &products, const Start &start,
                       TargetAttr target);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_DOTPRODUCTS_H
