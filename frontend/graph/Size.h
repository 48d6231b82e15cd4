//===- Size.h - sizes that are known at the call only -------------*- C++ -*-===//
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

/// A size: a polynomial with integer coefficients over symbols and functions of sizes. Two sizes are equal for every
/// call if their polynomials are the same, which is how views and guards are proved.
class Size {
public:
  /// What functions there are; they take two sizes. A quotient is rounded down, a remainder has the sign of the divisor.
  enum class Function { Quotient, Remainder, Max, Min };

  /// A symbol, or a function of sizes. The text, which Formula reads, tells them apart.
  struct Factor {
    std::string text;
    Function function = Function::Quotient;
    std::shared_ptr<const std::pair<Size, Size>> operands = nullptr; ///< null: a symbol

    friend bool operator<(const Factor &a, const Factor &b) { return a.text < b.text; }
    friend bool operator==(const Factor &a, const Factor &b) { return a.text == b.text; }
  };

  /// Factors of a product, sorted, as often as they occur; none for the constant term.
  using Monomial = std::vector<Factor>;

  Size(int64_t constant = 0);
  static Size symbol(llvm::StringRef name);
  static Size product(Monomial factors, int64_t coefficient);

  /// Reads what torch writes, sympy's Symbol('s77', ...), Integer(3), Add, Mul and so on. Whatever is unknown becomes a
  /// symbol of its own, named by its text.
  static std::optional<Size> parse(llvm::StringRef sympy);

  std::optional<int64_t> constant() const;
  std::optional<llvm::StringRef> symbol() const;
  bool isOne() const { return constant() == 1; }
  /// Whether that follows from its form alone: symbols are sizes.
  bool isNonNegative() const;
  const std::map<Monomial, int64_t> &terms() const { return polynomial; }
  /// The names of all symbols, those that functions take included.
  std::set<std::string> symbols() const;

  /// This size with others in place of symbols; none on overflow and where `sizeOf` gives none.
  std::optional<Size>
  substitute(llvm::function_ref<std::optional<Size>(llvm::StringRef symbol)> sizeOf) const;
  /// This size with one operand in place of each maximum and minimum where `isAtMost` tells which.
  Size decide(llvm::function_ref<bool(const Size &a, const Size &b)> isAtMost) const;

  /// This size without what divides every term, numbers and symbols.
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

/// Whether that follows from the form of both.
bool isAtMost(const Size &a, const Size &b);

// None on overflow.
std::optional<Size> add(const Size &a, const Size &b);
std::optional<Size> subtract(const Size &a, const Size &b);
std::optional<Size> multiply(const Size &a, const Size &b);
/// None too where the divisor is the number 0.
std::optional<Size> divideDown(const Size &a, const Size &b);
std::optional<Size> divideUp(const Size &a, const Size &b);
std::optional<Size> remainder(const Size &a, const Size &b);
std::optional<Size> maximum(const Size &a, const Size &b);
std::optional<Size> minimum(const Size &a, const Size &b);

using Sizes = llvm::SmallVector<Size>;

std::string str(llvm::ArrayRef<Size> sizes);

/// Runs of dimensions that a view merges into runs of others: `from` dimensions of the source are
/// as many elements, in the same order, as `to` dimensions of the result.
struct ViewGroup {
  unsigned from, to;
};

/// The view of `source` as `result`, in as many groups as possible; none where it cannot be proved.
std::optional<llvm::SmallVector<ViewGroup>> matchView(llvm::ArrayRef<Size> source,
                                                      llvm::ArrayRef<Size> result);

} // namespace attn::graph

#endif // ATTN_FRONTEND_GRAPH_SIZE_H
