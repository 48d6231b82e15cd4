//===- DotProducts.h - contractions with lanes along the sum -----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_DOTPRODUCTS_H
#define ATTN_CODEGEN_CPU_DOTPRODUCTS_H

#include "codegen/cpu/Contraction.h"

namespace attn {

/// A contraction whose inputs are both contiguous along the sum, such as the scores of few queries, for which
/// transposing the keys does not pay. The code computes L dot products at a time, with the L lanes of vectors along the
/// sum. Shuffles like those of a transposition then add up the lanes of all L sums together; the lanes of a few sums
/// are added up one sum after the other.
struct DotProducts {
  /// Returns `contraction` as dot products. Returns none if no loop can be n: a loop that only one input has and that
  /// is contiguous in the output, or else a loop of one iteration.
  static std::optional<DotProducts> match(const Contraction &contraction);

  mlir::linalg::LinalgOp op;
  const MultiplyAdd &instruction;
  unsigned rows;      // the input with a row for each of L products; the other input has one row for all
  unsigned n;         // the loop over the products
  unsigned reduction; // the loop of the sum
  /// The other loops. The loops in `outer` select the L rows. The loops in `inner` do not, so that these rows come from
  /// memory only once for all iterations of `inner`.
  llvm::SmallVector<unsigned> outer, inner;
};

/// Emits `products` as loops over vectors.
void createDotProducts(mlir::OpBuilder &builder, const DotProducts &products, const Start &start,
                       CpuAttr cpu);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_DOTPRODUCTS_H
