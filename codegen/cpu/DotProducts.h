//===- DotProducts.h - contractions with lanes along the sum -----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_DOTPRODUCTS_H
#define ATTN_CODEGEN_CPU_DOTPRODUCTS_H

#include "codegen/cpu/Contraction.h"

namespace attn {

/// A contraction whose inputs are both contiguous along the sum, such as the scores of so few queries that transposing
/// the keys would take longer. L is the number of lanes of a vector. The code computes L dot products at a time, with
/// the lanes along the sum. Shuffles like those of a transposition then add up the lanes of all L sums together. If
/// there are only a few sums, the code adds up the lanes of one sum after the other.
struct DotProducts {
  /// Returns `contraction` as dot products. Returns none if an input is not contiguous along the sum, or if no loop can
  /// be n. Contractions that skip zeros, have several reductions or use an instruction that adds groups of products are
  /// not supported. A loop can be n if only one input has it and it is contiguous in the output, or if it has one
  /// iteration.
  static std::optional<DotProducts> match(const Contraction &contraction);

  mlir::linalg::LinalgOp op;
  const MultiplyAdd &instruction;
  unsigned rows;      // the input with a row for each of L products; the other input has one row for all
  unsigned n;         // the loop over the products
  unsigned reduction; // the loop of the sum
  /// The other loops. The loops in `outer` select the L rows. The loops in `inner` do not select rows, so the L rows
  /// come from memory only once for all iterations of `inner`.
  llvm::SmallVector<unsigned> outer, inner;
};

/// Emits `products` as loops over vectors.
void createDotProducts(mlir::OpBuilder &builder, const DotProducts &products, const Start &start,
                       CpuAttr cpu);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_DOTPRODUCTS_H
