//===- Size.cpp - symbolic sizes, known only at the call -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Size.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

using namespace llvm;
using namespace attn;

// Sizes of real models are sums of a few products. A size beyond these limits comes from a hostile file, or is too
// complex to prove anything about.
static constexpr size_t kMaxTerms = 256, kMaxDegree = 16, kMaxOperands = 8, kMaxText = 2048;

Size::Size(int64_t constant) {
  if (constant != 0)
    polynomial[{}] = constant;
}

Size Size::symbol(StringRef name) { return product({Factor{name.str()}}, 1); }

Size Size::product(Monomial factors, int64_t coefficient) {
  Size size;
  if (coefficient != 0)
    size.polynomial[std::move(factors)] = coefficient;
  return size;
}

std::optional<int64_t> Size::constant() const {
  if (polynomial.empty())
    return 0;
  if (polynomial.size() == 1 && polynomial.begin()->first.empty())
    return polynomial.begin()->second;
  return std::nullopt;
}

std::optional<StringRef> Size::symbol() const {
  if (polynomial.size() != 1 || polynomial.begin()->first.size() != 1 ||
      polynomial.begin()->second != 1 || polynomial.begin()->first.front().operands)
    return std::nullopt;
  return polynomial.begin()->first.front().text;
}

static bool isNonNegative(const Size::Factor &factor) {
  if (!factor.operands)
    return true;
  const auto &[a, b] = *factor.operands;
  switch (factor.function) {
  case Size::Function::Quotient:
    return a.isNonNegative() && b.isNonNegative();
  case Size::Function::Remainder:
    return b.isNonNegative();
  case Size::Function::Max:
    return a.isNonNegative() || b.isNonNegative();
  case Size::Function::Min:
    return a.isNonNegative() && b.isNonNegative();
  }
  llvm_unreachable("every function returns");
}

bool Size::isNonNegative() const {
  return all_of(polynomial, [](const auto &term) {
    return term.second > 0 &&
           all_of(term.first, [](const Factor &factor) { return ::isNonNegative(factor); });
  });
}

std::set<std::string> Size::symbols() const {
  std::set<std::string> names;
  for (const auto &[monomial, coefficient] : polynomial)
    for (const Factor &factor : monomial) {
      if (!factor.operands)
        names.insert(factor.text);
      else
        for (const Size &operand : {factor.operands->first, factor.operands->second})
          names.merge(operand.symbols());
    }
  return names;
}

static std::optional<Size> compute(Size::Function function, const Size &a, const Size &b) {
  switch (function) {
  case Size::Function::Quotient:
    return divideDown(a, b);
  case Size::Function::Remainder:
    return remainder(a, b);
  case Size::Function::Max:
    return attn::maximum(a, b);
  case Size::Function::Min:
    return attn::minimum(a, b);
  }
  llvm_unreachable("every function returns");
}

std::optional<Size> Size::rebuild(function_ref<std::optional<Size>(StringRef symbol)> sizeOf,
                                  Combine combine) const {
  std::optional<Size> sum = Size();
  for (const auto &[monomial, coefficient] : polynomial) {
    std::optional<Size> product = Size(coefficient);
    for (const Factor &factor : monomial) {
      std::optional<Size> size;
      if (!factor.operands) {
        size = sizeOf(factor.text);
      } else {
        std::optional<Size> a = factor.operands->first.rebuild(sizeOf, combine),
                            b = factor.operands->second.rebuild(sizeOf, combine);
        if (a && b)
          size = combine(factor.function, *a, *b);
      }
      if (!product || !size)
        return std::nullopt;
      product = multiply(*product, *size);
    }
    sum = product ? add(*sum, *product) : std::nullopt;
    if (!sum)
      return std::nullopt;
  }
  return sum;
}

std::optional<Size>
Size::substitute(function_ref<std::optional<Size>(StringRef symbol)> sizeOf) const {
  return rebuild(sizeOf, compute);
}

Size Size::decide(function_ref<bool(const Size &, const Size &)> isAtMost) const {
  if (none_of(polynomial, [](const auto &term) {
        return any_of(term.first, [](const Factor &factor) { return bool(factor.operands); });
      }))
    return *this;
  auto combine = [&](Function function, const Size &a, const Size &b) {
    bool isMax = function == Function::Max;
    if (isMax || function == Function::Min) {
      if (isAtMost(a, b))
        return std::optional(isMax ? b : a);
      if (isAtMost(b, a))
        return std::optional(isMax ? a : b);
    }
    return compute(function, a, b);
  };
  return rebuild([](StringRef name) { return symbol(name); }, combine).value_or(*this);
}

/// Returns a / b, or none if the quotient is not a polynomial, on overflow, or if the leading coefficient of `b` is
/// negative.
static std::optional<Size> divideExactly(Size a, const Size &b);

/// Returns the greatest common factor of the terms of all `sizes`, which is a product of a number and symbols.
static Size commonFactor(ArrayRef<Size> sizes) {
  std::optional<Size::Monomial> common;
  uint64_t number = 0;
  for (const Size &size : sizes)
    for (const auto &[monomial, coefficient] : size.terms()) {
      Size::Monomial both;
      if (common)
        std::set_intersection(common->begin(), common->end(), monomial.begin(), monomial.end(),
                              std::back_inserter(both));
      else
        copy_if(monomial, std::back_inserter(both),
                [](const Size::Factor &factor) { return !factor.operands; });
      common = both;
      number = std::gcd(number, AbsoluteValue(coefficient));
    }
  // The absolute value of the least int64_t does not fit into an int64_t.
  bool fits = number != 0 && number <= uint64_t(std::numeric_limits<int64_t>::max());
  return Size::product(common.value_or(Size::Monomial()), fits ? number : 1);
}

Size Size::primitive() const { return divideExactly(*this, commonFactor(*this)).value_or(*this); }

std::optional<Size> attn::add(const Size &a, const Size &b) {
  Size sum = a;
  for (const auto &[monomial, coefficient] : b.polynomial) {
    int64_t &term = sum.polynomial[monomial];
    if (AddOverflow(term, coefficient, term))
      return std::nullopt;
    if (term == 0)
      sum.polynomial.erase(monomial);
  }
  if (sum.polynomial.size() > kMaxTerms)
    return std::nullopt;
  return sum;
}

/// Whether `whole` has each term of `part`, with a coefficient of the same sign that is at least as large.
static bool hasTerms(const Size &whole, const Size &part) {
  return all_of(part.terms(), [&](const auto &term) {
    auto found = whole.terms().find(term.first);
    if (found == whole.terms().end())
      return false;
    return term.second > 0 ? found->second >= term.second : found->second <= term.second;
  });
}

/// `size` with the terms of `part` and `remainder` replaced by `whole`; none on overflow, or if it lacks these terms.
static std::optional<Size> replaceTerms(const Size &size, const std::optional<Size> &part,
                                        const Size &remainder, const std::optional<Size> &whole) {
  std::optional<Size> old = part && hasTerms(size, *part) ? add(*part, remainder) : std::nullopt;
  std::optional<Size> rest = old && whole ? subtract(size, *old) : std::nullopt;
  return rest ? add(*rest, *whole) : std::nullopt;
}

/// If `size` contains a remainder by a number n together with what it is a remainder of, replaces both by a multiple of n:
///   x - x % n is n * (x // n), and x + -x % n is n * ((x + n - 1) // n).
/// Returns none if there is no such remainder.
static std::optional<Size> withoutRemainder(const Size &size) {
  for (const auto &[monomial, coefficient] : size.terms())
    for (auto [i, factor] : enumerate(monomial)) {
      if (!factor.operands || factor.function != Size::Function::Remainder)
        continue;
      const Size &dividend = factor.operands->first, &divisor = factor.operands->second;
      std::optional<int64_t> n = divisor.constant();
      if (!n)
        continue;
      Size::Monomial others = monomial;
      others.erase(others.begin() + i);
      Size unit = Size::product(others, coefficient), remainder = Size::product(monomial, coefficient);
      auto multipleOf = [&](const std::optional<Size> &quotient) {
        std::optional<Size> whole = quotient ? multiply(*quotient, divisor) : std::nullopt;
        return whole ? multiply(*whole, unit) : std::nullopt;
      };
      // Here the coefficient of x is negative, as the one of x % n is positive.
      std::optional<Size> down = multipleOf(divideDown(dividend, divisor)),
                          negative = multiply(unit, dividend);
      negative = negative ? multiply(*negative, Size(-1)) : negative;
      down = down ? multiply(*down, Size(-1)) : down;
      if (std::optional<Size> simpler = replaceTerms(size, negative, remainder, down))
        return simpler;
      // -x % n has coefficients in [0, n), so those of x are n less them.
      Size x;
      for (const auto &[factors, number] : dividend.terms())
        x = add(x, Size::product(factors, *n - number)).value_or(x);
      if (std::optional<Size> simpler =
              replaceTerms(size, multiply(unit, x), remainder, multipleOf(divideUp(x, divisor))))
        return simpler;
    }
  return std::nullopt;
}

bool attn::areEqual(const Size &a, const Size &b) {
  if (a == b)
    return true;
  std::optional<Size> gap = subtract(a, b);
  for (size_t i = 0; gap && *gap != Size(0) && i < kMaxOperands; ++i)
    gap = withoutRemainder(*gap);
  return gap && *gap == Size(0);
}

std::optional<Size> attn::multiply(const Size &a, const Size &b) {
  if (a.polynomial.size() * b.polynomial.size() > kMaxTerms)
    return std::nullopt;
  std::optional<Size> sum = Size();
  for (const auto &[left, leftCoefficient] : a.polynomial) {
    for (const auto &[right, rightCoefficient] : b.polynomial) {
      Size product;
      Size::Monomial monomial;
      std::merge(left.begin(), left.end(), right.begin(), right.end(),
                 std::back_inserter(monomial));
      if (monomial.size() > kMaxDegree ||
          MulOverflow(leftCoefficient, rightCoefficient, product.polynomial[monomial]))
        return std::nullopt;
      sum = add(*sum, product);
      if (!sum)
        return std::nullopt;
    }
  }
  return sum;
}

std::optional<Size> attn::subtract(const Size &a, const Size &b) {
  std::optional<Size> negative = multiply(b, Size(-1));
  return negative ? add(a, *negative) : std::nullopt;
}

std::string Size::str() const {
  if (polynomial.empty())
    return "0";
  std::vector<std::string> sum;
  for (const auto &[monomial, coefficient] : polynomial) {
    std::vector<std::string> product;
    if (coefficient != 1 || monomial.empty())
      product.push_back(std::to_string(coefficient));
    for (const Factor &factor : monomial)
      product.push_back(factor.text);
    sum.push_back(llvm::join(product, "*"));
  }
  return llvm::join(sum, " + ");
}

std::string attn::str(ArrayRef<Size> sizes) {
  std::string text;
  for (const Size &size : sizes)
    text += (text.empty() ? "" : ", ") + size.str();
  return "[" + text + "]";
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static std::optional<Size> apply(Size::Function function, const Size &a, const Size &b) {
  auto operand = [](const Size &size) {
    bool isOne = size.symbol() || size.constant().value_or(-1) >= 0;
    return isOne ? size.str() : "(" + size.str() + ")";
  };
  std::string text;
  switch (function) {
  case Size::Function::Quotient:
    text = "(" + operand(a) + " // " + operand(b) + ")";
    break;
  case Size::Function::Remainder:
    text = "(" + operand(a) + " % " + operand(b) + ")";
    break;
  case Size::Function::Max:
    text = "max(" + a.str() + ", " + b.str() + ")";
    break;
  case Size::Function::Min:
    text = "min(" + a.str() + ", " + b.str() + ")";
    break;
  }
  // The text contains the text of both operands, so each level of nesting can double its length.
  if (text.size() > kMaxText)
    return std::nullopt;
  return Size::product({{text, function, std::make_shared<std::pair<Size, Size>>(a, b)}}, 1);
}

static std::optional<Size> divideExactly(Size a, const Size &b) {
  // Order terms by degree, then by the order of the factors. Multiplying two terms by the same term keeps their order,
  // so the leading term of a product is the product of the leading terms.
  auto leading = [](const Size &size) {
    return *std::max_element(
        size.terms().begin(), size.terms().end(), [](const auto &x, const auto &y) {
          return std::pair(x.first.size(), x.first) < std::pair(y.first.size(), y.first);
        });
  };
  std::optional<Size> quotient = Size();
  if (b == Size(0))
    return std::nullopt;
  auto [factorsOfB, numberOfB] = leading(b);
  while (a != Size(0)) {
    auto [factors, number] = leading(a);
    Size::Monomial rest;
    std::set_difference(factors.begin(), factors.end(), factorsOfB.begin(), factorsOfB.end(),
                        std::back_inserter(rest));
    if (numberOfB < 1 || number % numberOfB != 0 ||
        rest.size() + factorsOfB.size() != factors.size())
      return std::nullopt;
    Size term = Size::product(rest, number / numberOfB);
    std::optional<Size> product = multiply(term, b);
    std::optional<Size> less = product ? subtract(a, *product) : std::nullopt;
    quotient = less ? add(*quotient, term) : std::nullopt;
    if (!quotient)
      return std::nullopt;
    a = *less;
  }
  return quotient;
}

/// Splits `a` into a multiple of the number `divisor` and a rest, whose constant term lies in [0, divisor).
static std::optional<std::pair<Size, Size>> split(const Size &a, int64_t divisor) {
  Size whole;
  for (const auto &[factors, number] : a.terms()) {
    int64_t modulus = (number % divisor + divisor) % divisor, multiple;
    if (modulus != 0 && !factors.empty())
      continue;
    if (SubOverflow(number, modulus, multiple))
      return std::nullopt;
    whole = *add(whole, Size::product(factors, multiple));
  }
  std::optional<Size> rest = subtract(a, whole);
  return rest ? std::optional(std::pair(whole, *rest)) : std::nullopt;
}

std::optional<Size> attn::divideDown(const Size &a, const Size &b) {
  if (std::optional<Size> quotient = divideExactly(a, b))
    return quotient;
  if (std::optional<Size> simpler = withoutRemainder(a))
    if (std::optional<Size> quotient = divideExactly(*simpler, b))
      return quotient;
  std::optional<int64_t> number = b.constant();
  if (number && *number < 1)
    return std::nullopt;
  Size whole, rest = a;
  if (number) {
    std::optional<std::pair<Size, Size>> parts = split(a, *number);
    if (!parts)
      return std::nullopt;
    whole = *divideExactly(parts->first, b);
    rest = parts->second;
    if (rest.constant())
      return whole;
  }
  // If no symbol has a positive coefficient, divide the negated sum, rounding up: -s // 2 is -((s + 1) // 2).
  if (all_of(rest.terms(),
             [](const auto &term) { return term.second < 0 || term.first.empty(); })) {
    std::optional<Size> negative = multiply(rest, Size(-1));
    std::optional<Size> up = negative ? divideUp(*negative, b) : std::nullopt;
    return up ? subtract(whole, *up) : std::nullopt;
  }
  Size common = commonFactor({rest, b});
  std::optional<Size> quotient =
      common.isOne() ? apply(Size::Function::Quotient, rest, b)
                     : divideDown(*divideExactly(rest, common), *divideExactly(b, common));
  return quotient ? add(whole, *quotient) : std::nullopt;
}

std::optional<Size> attn::divideUp(const Size &a, const Size &b) {
  std::optional<Size> most = subtract(b, Size(1));
  std::optional<Size> sum = most ? add(a, *most) : std::nullopt;
  return sum ? divideDown(*sum, b) : std::nullopt;
}

std::optional<Size> attn::remainder(const Size &a, const Size &b) {
  if (divideExactly(a, b))
    return Size(0);
  std::optional<int64_t> number = b.constant();
  if (number && *number < 1)
    return std::nullopt;
  Size rest = a;
  if (number) {
    // A remainder of x by a multiple of the divisor has the same remainder as x.
    for (const auto &[factors, coefficient] : a.terms()) {
      const Size::Factor *inner = factors.size() == 1 ? &factors.front() : nullptr;
      if (!inner || !inner->operands || inner->function != Size::Function::Remainder ||
          inner->operands->second.constant().value_or(1) % *number != 0)
        continue;
      std::optional<Size> less = subtract(a, Size::product(factors, coefficient)),
                          more = multiply(inner->operands->first, Size(coefficient)),
                          same = less && more ? add(*less, *more) : std::nullopt;
      if (same)
        return remainder(*same, b);
    }
    std::optional<std::pair<Size, Size>> parts = split(a, *number);
    if (!parts || parts->second.constant())
      return parts ? std::optional(parts->second) : std::nullopt;
    // The remainder stays the same if each coefficient is replaced by its own remainder in [0, number).
    rest = Size();
    for (const auto &[factors, coefficient] : parts->second.terms()) {
      int64_t modulus = coefficient % *number;
      rest = *add(rest, Size::product(factors, modulus < 0 ? modulus + *number : modulus));
    }
  }
  Size common = commonFactor({rest, b});
  if (common.isOne())
    return apply(Size::Function::Remainder, rest, b);
  std::optional<Size> smaller = remainder(*divideExactly(rest, common), *divideExactly(b, common));
  return smaller ? multiply(common, *smaller) : std::nullopt;
}

/// Collects the operands of nested maxima, or of nested minima. If `size` is not such a function, `size` is the only
/// operand.
static void flatten(Size::Function function, const Size &size,
                    std::map<std::string, Size> &operands) {
  const auto &terms = size.terms();
  if (terms.size() == 1 && terms.begin()->second == 1 && terms.begin()->first.size() == 1) {
    const Size::Factor &factor = terms.begin()->first.front();
    if (factor.operands && factor.function == function) {
      flatten(function, factor.operands->first, operands);
      flatten(function, factor.operands->second, operands);
      return;
    }
  }
  operands.try_emplace(size.str(), size);
}

bool attn::isAtMost(const Size &a, const Size &b) {
  std::optional<Size> gap = subtract(b, a);
  if (gap && gap->isNonNegative())
    return true;
  std::map<std::string, Size> least, most;
  flatten(Size::Function::Min, a, least);
  flatten(Size::Function::Max, b, most);
  return least.size() + most.size() > 2 && any_of(make_second_range(least), [&](const Size &x) {
           return any_of(make_second_range(most), [&](const Size &y) { return isAtMost(x, y); });
         });
}

/// The maximum or minimum of `a` and `b`. Nested operands are flattened, operands that never decide the result are left
/// out, and the others are sorted by text, so that equal maxima or minima have equal texts.
static std::optional<Size> extreme(Size::Function function, const Size &a, const Size &b) {
  std::map<std::string, Size> operands;
  flatten(function, a, operands);
  flatten(function, b, operands);
  auto exceeds = [&](const Size &x, const Size &y) {
    return function == Size::Function::Max ? isAtMost(y, x) : isAtMost(x, y);
  };
  std::vector<Size> kept;
  for (const Size &size : make_second_range(operands)) {
    if (any_of(kept, [&](const Size &other) { return exceeds(other, size); }))
      continue;
    erase_if(kept, [&](const Size &other) { return exceeds(size, other); });
    kept.push_back(size);
  }
  if (kept.size() > kMaxOperands)
    return std::nullopt;
  std::optional<Size> result = kept.front();
  for (const Size &size : ArrayRef(kept).drop_front())
    result = result ? apply(function, *result, size) : std::nullopt;
  return result;
}

std::optional<Size> attn::maximum(const Size &a, const Size &b) {
  return extreme(Size::Function::Max, a, b);
}

std::optional<Size> attn::minimum(const Size &a, const Size &b) {
  return extreme(Size::Function::Min, a, b);
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

static int64_t saturate(__int128 value) {
  return value < SizeRange::kLeast  ? SizeRange::kLeast
         : value > SizeRange::kMost ? SizeRange::kMost
                                    : int64_t(value);
}

static SizeRange operator+(SizeRange a, SizeRange b) {
  SizeRange sum;
  if (a.min != SizeRange::kLeast && b.min != SizeRange::kLeast)
    sum.min = saturate(__int128(a.min) + b.min);
  if (a.max != SizeRange::kMost && b.max != SizeRange::kMost)
    sum.max = saturate(__int128(a.max) + b.max);
  return sum;
}

static SizeRange operator*(SizeRange a, SizeRange b) {
  auto [least, most] = std::minmax({__int128(a.min) * b.min, __int128(a.min) * b.max,
                                    __int128(a.max) * b.min, __int128(a.max) * b.max});
  return {saturate(least), saturate(most)};
}

using RangeOfSymbol = function_ref<SizeRange(StringRef)>;

static SizeRange rangeOfFactor(const Size::Factor &factor, RangeOfSymbol ofSymbol) {
  if (!factor.operands)
    return ofSymbol(factor.text);
  const auto &[first, second] = *factor.operands;
  SizeRange a = rangeOf(first, ofSymbol), b = rangeOf(second, ofSymbol);
  switch (factor.function) {
  case Size::Function::Quotient:
    if (a.min < 0 || b.min < 1)
      return {};
    return {a.min / b.max, a.max == SizeRange::kMost ? a.max : a.max / b.min};
  case Size::Function::Remainder: {
    if (b.min < 1)
      return {};
    std::optional<Size> gap = subtract(second, first);
    if (a.min >= 0 && gap && rangeOf(*gap, ofSymbol).min >= 1)
      return a;
    return {0, b.max == SizeRange::kMost ? b.max : b.max - 1};
  }
  case Size::Function::Max:
    return {std::max(a.min, b.min), std::max(a.max, b.max)};
  case Size::Function::Min:
    return {std::min(a.min, b.min), std::min(a.max, b.max)};
  }
  llvm_unreachable("every function returns");
}

SizeRange attn::rangeOf(const Size &size, RangeOfSymbol ofSymbol) {
  SizeRange sum = {0, 0};
  for (const auto &[factors, number] : size.terms()) {
    SizeRange product = {number, number};
    for (const Size::Factor &factor : factors)
      product = product * rangeOfFactor(factor, ofSymbol);
    sum = sum + product;
  }
  return sum;
}
