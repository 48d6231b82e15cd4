//===- Size.h - symbolic sizes, known only at the call ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_SIZE_H
#define ATTN_DIALECT_SIZE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace attn {

/// A size: a polynomial with integer coefficients over symbols and functions of sizes. Two sizes are equal in every
/// call if their polynomials are the same. Readers of files rely on this when they prove that a view is possible or that a
/// condition holds.
class Size {
public:
  /// Functions of two sizes. A quotient is rounded down; a remainder has the sign of the divisor.
  enum class Function { Quotient, Remainder, Max, Min };

  /// A symbol, or a function of sizes. Two functions are equal if their texts are; a symbol is not equal to a function,
  /// even if a file gives it the name of one. Formula::parse (dialect/Formula.h) reads the texts.
  struct Factor {
    std::string text;
    Function function = Function::Quotient;
    std::shared_ptr<const std::pair<Size, Size>> operands = nullptr; ///< null for a symbol

    friend bool operator<(const Factor &a, const Factor &b) {
      return a.text != b.text ? a.text < b.text : !a.operands && b.operands;
    }
    friend bool operator==(const Factor &a, const Factor &b) {
      return a.text == b.text && !a.operands == !b.operands;
    }
  };

  /// The sorted factors of a product, with repetitions; empty for the constant term.
  using Monomial = std::vector<Factor>;

  Size(int64_t constant = 0);
  static Size symbol(llvm::StringRef name);
  static Size product(Monomial factors, int64_t coefficient);

  std::optional<int64_t> constant() const;
  std::optional<llvm::StringRef> symbol() const;
  bool isOne() const { return constant() == 1; }
  /// Whether the form of the polynomial proves that it is never negative. A symbol is a size, so it is not negative.
  bool isNonNegative() const;
  const std::map<Monomial, int64_t> &terms() const { return polynomial; }
  /// The names of all symbols, including those in the operands of functions.
  std::set<std::string> symbols() const;

  /// This size with each symbol replaced by `sizeOf(symbol)`; none on overflow, or if `sizeOf` returns none.
  std::optional<Size>
  substitute(llvm::function_ref<std::optional<Size>(llvm::StringRef symbol)> sizeOf) const;
  /// This size without the maxima and minima that `isAtMost` can decide: each of them is replaced by the operand that
  /// it equals.
  Size decide(llvm::function_ref<bool(const Size &a, const Size &b)> isAtMost) const;

  /// This size divided by the greatest common factor of its terms, which is a product of a number and symbols.
  Size primitive() const;

  friend bool operator==(const Size &a, const Size &b) { return a.polynomial == b.polynomial; }
  friend bool operator!=(const Size &a, const Size &b) { return !(a == b); }

  std::string str() const;

private:
  using Combine = llvm::function_ref<std::optional<Size>(Function, const Size &, const Size &)>;
  std::optional<Size>
  rebuild(llvm::function_ref<std::optional<Size>(llvm::StringRef symbol)> sizeOf,
          Combine combine) const;

  friend std::optional<Size> add(const Size &a, const Size &b);
  friend std::optional<Size> multiply(const Size &a, const Size &b);

  std::map<Monomial, int64_t> polynomial; // no coefficient is 0
};

/// Whether a == b is proved. Unlike operator==, this knows that x + -x % n is a multiple of n.
bool areEqual(const Size &a, const Size &b);

/// Whether the form of both sizes proves a <= b.
bool isAtMost(const Size &a, const Size &b);

/// The greatest size of a dynamic dimension, even if a file allows a greater one or gives no range.
inline constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();

/// The numbers from `min` to `max`. The least and the greatest int64 stand for all numbers beyond them; a sum with such
/// a bound keeps the bound.
struct SizeRange {
  static constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(),
                           kMost = std::numeric_limits<int64_t>::max();
  int64_t min = kLeast, max = kMost;
};

/// A range that contains `size` in every call, from the ranges of its symbols.
SizeRange rangeOf(const Size &size, llvm::function_ref<SizeRange(llvm::StringRef symbol)> ofSymbol);

// These functions return none on overflow, or if the result is too complex.
std::optional<Size> add(const Size &a, const Size &b);
std::optional<Size> subtract(const Size &a, const Size &b);
std::optional<Size> multiply(const Size &a, const Size &b);
/// divideDown(), divideUp() and remainder() also return none if the divisor is a constant below 1.
std::optional<Size> divideDown(const Size &a, const Size &b);
std::optional<Size> divideUp(const Size &a, const Size &b);
std::optional<Size> remainder(const Size &a, const Size &b);
std::optional<Size> maximum(const Size &a, const Size &b);
std::optional<Size> minimum(const Size &a, const Size &b);

using Sizes = llvm::SmallVector<Size>;

std::string str(llvm::ArrayRef<Size> sizes);

} // namespace attn

#endif // ATTN_DIALECT_SIZE_H
