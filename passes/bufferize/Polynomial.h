//===- Polynomial.h - sizes in terms of the symbols of a call ----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A sum of products of symbols, such as 256 * x.0 * x.1 + 1024: what a buffer's size is when
// dimensions are known at the call only. No coefficient is negative, so that sums bound each other;
// one beyond 2^64 - 1 stays there.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_BUFFERIZE_POLYNOMIAL_H
#define ATTN_PASSES_BUFFERIZE_POLYNOMIAL_H

#include "dialect/Attn.h"

#include <map>

namespace attn {

class Polynomial {
public:
  Polynomial(uint64_t constant = 0) {
    if (constant)
      terms[{}] = constant;
  }
  static Polynomial symbol(unsigned index) {
    Polynomial result;
    result.terms[{index}] = 1;
    return result;
  }

  Polynomial operator+(const Polynomial &other) const;
  Polynomial operator*(const Polynomial &other) const;

  /// What is needed whatever the symbols are.
  uint64_t constant() const {
    auto term = terms.find({});
    return term == terms.end() ? 0 : term->second;
  }

  bool isMultipleOf(uint64_t divisor) const;

  /// This size and what it takes to place buffers one behind the other, each at the sum of the
  /// padded sizes before it, rounded down to a multiple of `alignment`.
  Polynomial padded(uint64_t alignment) const;

  /// The smallest polynomial known that is nowhere below either.
  static Polynomial maximum(const Polynomial &a, const Polynomial &b);

  /// "256*x.0*x.1 + 1024"
  std::string print(mlir::ArrayRef<mlir::StringRef> symbolNames) const;

  /// The value, given that of each symbol, as an index; where it `saturates`, 2^64 - 1 for all
  /// beyond.
  mlir::Value build(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::function_ref<mlir::Value(unsigned symbol)> valueOf,
                    bool saturates = false) const;

private:
  /// Sorted symbols of a product -> its coefficient.
  std::map<llvm::SmallVector<unsigned, 2>, uint64_t> terms;
};

} // namespace attn

#endif // ATTN_PASSES_BUFFERIZE_POLYNOMIAL_H
