//===- Polynomial.h - sizes in terms of the symbols of a call ----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A polynomial is a sum of products of symbols, such as 256 * x.0 * x.1 + 1024. It is the size of a buffer whose
// dimensions are known only at the call. Coefficients and symbols are not negative, so greater coefficients give an
// upper bound. A coefficient saturates at 2^64 - 1.
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

  /// The constant term: the part of the size that does not depend on the symbols.
  uint64_t constant() const {
    auto term = terms.find({});
    return term == terms.end() ? 0 : term->second;
  }

  /// The symbol s and the constant c, if the polynomial is s + c.
  std::optional<std::pair<unsigned, uint64_t>> getShiftedSymbol() const;

  bool isMultipleOf(uint64_t divisor) const;

  /// Adds the padding that a buffer of this size needs. Buffers are placed one after the other. Each buffer begins at
  /// the sum of the padded sizes before it, rounded down to a multiple of `alignment`.
  Polynomial padded(uint64_t alignment) const;

  /// A polynomial that is never less than `a` and never less than `b`: each coefficient is the greater of the two.
  static Polynomial maximum(const Polynomial &a, const Polynomial &b);

  /// The polynomial as text, such as "256*x.0*x.1 + 1024".
  std::string print(mlir::ArrayRef<mlir::StringRef> symbolNames) const;

  /// Builds the value, an index, from the value of each symbol. With `saturates`, a value beyond 2^64 - 1 becomes
  /// 2^64 - 1.
  mlir::Value build(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::function_ref<mlir::Value(unsigned symbol)> valueOf,
                    bool saturates = false) const;

private:
  /// Maps the sorted symbols of each product to its coefficient.
  std::map<llvm::SmallVector<unsigned, 2>, uint64_t> terms;
};

} // namespace attn

#endif // ATTN_PASSES_BUFFERIZE_POLYNOMIAL_H
