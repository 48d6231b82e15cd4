//===- SizeFacts.h - what is known of the sizes of a call --------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A reader of files adds the symbols of a file with their ranges, the sizes that must be equal, and the sizes that must
// not be negative. Equalities replace symbols by other sizes, inequalities narrow the ranges of symbols:
//   4*context.0 == 4*x.0       context.0 is x.0 from now on
//   x.1 % 4 == 0               x.1 is 4 times a new symbol
//   0 <= x.1 - 2               x.1 is at least 2
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_CHECKS_SIZEFACTS_H
#define ATTN_FRONTEND_CHECKS_SIZEFACTS_H

#include "dialect/Size.h"

namespace attn {

class SizeFacts {
public:
  /// Adds a symbol with its range. If an equation makes two symbols equal, the one that was added first replaces the other.
  void addSymbol(llvm::StringRef name, SizeRange range);

  /// `size` in terms of symbols that no equality replaces; none if it is too complex.
  std::optional<Size> reduced(const Size &size) const;
  /// `size` in terms of the symbols that were added, without the new symbols of multiples.
  std::optional<Size> expanded(const Size &size) const;
  /// `size` without the maxima and minima that the ranges decide: each of them is replaced by the operand that it
  /// equals.
  Size decided(const Size &size) const;

  SizeRange rangeOf(llvm::StringRef symbol) const;
  SizeRange rangeOf(const Size &size) const;

  /// Whether a == b, or a <= b, in every call (true) or in no call (false); none if neither is proved. The sizes must be
  /// reduced. `ofSymbol` gives the ranges of symbols.
  using RangeOfSymbol = llvm::function_ref<SizeRange(llvm::StringRef symbol)>;
  static std::optional<bool> areEqual(const Size &a, const Size &b, RangeOfSymbol ofSymbol);
  static std::optional<bool> isAtMost(const Size &a, const Size &b, RangeOfSymbol ofSymbol);
  std::optional<bool> areEqual(const Size &a, const Size &b) const;
  std::optional<bool> isAtMost(const Size &a, const Size &b) const;

  /// Uses a == b to replace a symbol that occurs in one term only, if the ranges of both sizes have a number in common.
  /// Returns whether it replaced a symbol.
  bool equate(const Size &a, const Size &b);

  enum class Outcome {
    Holds,  ///< in every call, perhaps because the range of a symbol was narrowed
    Open,   ///< in some calls; a condition of the call can say so
    Refuted ///< in no call
  };
  /// Requires a == b or a <= b in every call.
  Outcome requireEqual(const Size &a, const Size &b);
  Outcome requireAtMost(const Size &a, const Size &b);

  /// The size that replaces each symbol, in terms of symbols that are not replaced.
  const std::map<std::string, Size> &replacements() const { return equal; }

private:
  bool replace(const std::string &symbol, const Size &by);
  size_t positionOf(const std::string &symbol) const;

  std::map<std::string, size_t> positions;
  std::map<std::string, SizeRange> ranges;
  std::map<std::string, Size> equal;
  /// The new symbols of multiples: s/4 is s // 4.
  std::map<std::string, Size> quotients;
};

} // namespace attn

#endif // ATTN_FRONTEND_CHECKS_SIZEFACTS_H
