//===- Size.h - symbolic sizes, known only at the call ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_GRAPH_SIZE_H
#define ATTN_FRONTEND_GRAPH_SIZE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace attn::graph {

/// A size: a polynomial with integer coefficients over symbols and functions of sizes. Two sizes are equal in every
/// call if their polynomials are the same. The importer relies on this when it proves that a view is possible or that a
/// guard holds.
class Size {
public:
  /// Functions of two sizes. A quotient is rounded down; a remainder has the sign of the divisor.
  enum class Function { Quotient, Remainder, Max, Min };

  /// A symbol, or a function of sizes. Factors are compared by their text, which Formula::parse (dialect/Formula.h)
  /// reads.
  struct Factor {
    std::string text;
    Function function = Function::Quotient;
    std::shared_ptr<const std::pair<Size, Size>> operands = nullptr; ///< null for a symbol

    friend bool operator<(const Factor &a, const Factor &b) { return a.text < b.text; }
    friend bool operator==(const Factor &a, const Factor &b) { return a.text == b.text; }
  };

  /// The sorted factors of a product, with repetitions; empty for the constant term.
  using Monomial = std::vector<Factor>;

  Size(int64_t constant = 0);
  static Size symbol(llvm::StringRef name);
  static Size product(Monomial factors, int64_t coefficient);

  /// Reads the sympy text that torch writes: Symbol('s77', ...), Integer(3), Add, Mul and so on. An unknown expression
  /// becomes a symbol whose name is its text.
  static std::optional<Size> parse(llvm::StringRef sympy);

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

/// Whether the form of both sizes proves a <= b.
bool isAtMost(const Size &a, const Size &b);

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

/// A group of neighbouring dimensions that a view reshapes: `from` dimensions of the source have the
/// same elements, in the same order, as `to` dimensions of the result.
struct ViewGroup {
  unsigned from, to;
};

/// Splits the dimensions of `source` and of its view `result` into as many groups as possible. Returns none if it
/// cannot prove that the two shapes have the same number of elements in every call.
std::optional<llvm::SmallVector<ViewGroup>> matchView(llvm::ArrayRef<Size> source,
                                                      llvm::ArrayRef<Size> result);

} // namespace attn::graph

#endif // ATTN_FRONTEND_GRAPH_SIZE_H
