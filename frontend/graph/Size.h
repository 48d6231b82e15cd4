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
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attn::graph {

/// A size: a polynomial with integer coefficients over symbols. Two sizes are equal for every call
/// if and only if their polynomials are the same, which is how views and guards are proved.
class Size {
public:
  /// Symbols of a product, sorted, as often as they occur; none for the constant term.
  using Monomial = std::vector<std::string>;

  Size(int64_t constant = 0);
  static Size symbol(llvm::StringRef name);

  /// Reads what torch writes: sympy's Symbol('s77', ...), Integer(3), Add, Mul and Pow of those.
  /// Whatever else it may write (a quotient, a maximum) becomes a symbol of its own, named by its
  /// text.
  static std::optional<Size> parse(llvm::StringRef sympy);

  std::optional<int64_t> constant() const;
  std::optional<llvm::StringRef> symbol() const;
  bool isOne() const { return constant() == 1; }
  const std::map<Monomial, int64_t> &terms() const { return polynomial; }

  /// This size over other symbols; fails where `newName` gives none.
  std::optional<Size>
  rename(llvm::function_ref<std::optional<std::string>(const std::string &)> newName) const;

  /// None on overflow.
  friend std::optional<Size> add(const Size &a, const Size &b);
  friend std::optional<Size> multiply(const Size &a, const Size &b);

  friend bool operator==(const Size &a, const Size &b) { return a.polynomial == b.polynomial; }
  friend bool operator!=(const Size &a, const Size &b) { return !(a == b); }

  std::string str() const;

private:
  std::map<Monomial, int64_t> polynomial; // no coefficient is 0
};

std::optional<Size> add(const Size &a, const Size &b);
std::optional<Size> multiply(const Size &a, const Size &b);

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
