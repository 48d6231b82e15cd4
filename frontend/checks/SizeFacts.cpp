//===- SizeFacts.cpp - what is known of the sizes of a call ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Test: test/frontend/pt2/guards.test, test/frontend/mlir/sizes.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/checks/SizeFacts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace attn;

void SizeFacts::addSymbol(StringRef name, SizeRange range) {
  if (ranges.try_emplace(name.str(), range).second)
    positions.try_emplace(name.str(), positions.size());
}

/// The number of symbols that were added before `symbol`. A new symbol of a multiple comes last.
size_t SizeFacts::positionOf(const std::string &symbol) const {
  auto found = positions.find(symbol);
  return found == positions.end() ? positions.size() : found->second;
}

SizeRange SizeFacts::rangeOf(StringRef symbol) const {
  auto found = ranges.find(symbol.str());
  return found == ranges.end() ? SizeRange{0, kMaxDim} : found->second;
}

SizeRange SizeFacts::rangeOf(const Size &size) const {
  return attn::rangeOf(size, [&](StringRef symbol) { return rangeOf(symbol); });
}

/// `size` with each symbol of `sizes` replaced by its size.
static std::optional<Size> substitute(const Size &size, const std::map<std::string, Size> &sizes) {
  if (sizes.empty())
    return size;
  return size.substitute([&](StringRef symbol) -> std::optional<Size> {
    auto found = sizes.find(symbol.str());
    return found == sizes.end() ? Size::symbol(symbol) : found->second;
  });
}

std::optional<Size> SizeFacts::reduced(const Size &size) const { return substitute(size, equal); }

std::optional<Size> SizeFacts::expanded(const Size &size) const {
  return substitute(size, quotients);
}

Size SizeFacts::decided(const Size &size) const {
  return size.decide([&](const Size &a, const Size &b) { return isAtMost(a, b) == true; });
}

std::optional<bool> SizeFacts::areEqual(const Size &a, const Size &b, RangeOfSymbol ofSymbol) {
  std::optional<Size> gap = subtract(b, a);
  if (!gap)
    return std::nullopt;
  SizeRange range = attn::rangeOf(*gap, ofSymbol);
  if (range.min > 0 || range.max < 0)
    return false;
  // A product is 0 if one of its factors is 0.
  SizeRange rest = attn::rangeOf(gap->primitive(), ofSymbol);
  return rest.min == 0 && rest.max == 0 ? std::optional(true) : std::nullopt;
}

std::optional<bool> SizeFacts::isAtMost(const Size &a, const Size &b, RangeOfSymbol ofSymbol) {
  std::optional<Size> gap = subtract(b, a);
  if (!gap)
    return std::nullopt;
  SizeRange range = attn::rangeOf(*gap, ofSymbol);
  if (range.min >= 0 || attn::isAtMost(a, b))
    return true;
  return range.max < 0 ? std::optional(false) : std::nullopt;
}

std::optional<bool> SizeFacts::areEqual(const Size &a, const Size &b) const {
  return areEqual(a, b, [&](StringRef symbol) { return rangeOf(symbol); });
}

std::optional<bool> SizeFacts::isAtMost(const Size &a, const Size &b) const {
  return isAtMost(a, b, [&](StringRef symbol) { return rangeOf(symbol); });
}

/// Replaces `symbol` by `size` everywhere. Returns false if a result exceeds the limits of Size, or if no size is in the
/// ranges of both.
bool SizeFacts::replace(const std::string &symbol, const Size &by) {
  SizeRange mine = rangeOf(StringRef(symbol)), known = rangeOf(by);
  SizeRange both = {std::max(mine.min, known.min), std::min(mine.max, known.max)};
  if (both.min > both.max)
    return false;
  std::vector<std::pair<std::string, Size>> replaced;
  for (const auto &[other, old] : equal) {
    if (!old.symbols().count(symbol))
      continue;
    std::optional<Size> changed = old.substitute([&](StringRef name) -> std::optional<Size> {
      return name == symbol ? by : Size::symbol(name);
    });
    if (!changed)
      return false;
    replaced.emplace_back(other, *changed);
  }
  for (auto &[other, size] : replaced)
    equal[other] = std::move(size);
  equal[symbol] = by;
  if (std::optional<StringRef> other = by.symbol())
    ranges[other->str()] = both;
  return true;
}

bool SizeFacts::equate(const Size &a, const Size &b) {
  std::optional<Size> gap = subtract(a, b);
  if (!gap)
    return false;
  gap = gap->primitive();
  // Replace the symbol that was added last, so that later symbols follow from earlier ones. The replacement must not be
  // a difference of symbols, which may be negative.
  std::optional<std::pair<std::string, Size>> best;
  for (const auto &[factors, number] : gap->terms()) {
    if (factors.size() != 1 || factors.front().operands || (number != 1 && number != -1))
      continue;
    const std::string &symbol = factors.front().text;
    std::optional<Size> rest = subtract(*gap, Size::product(factors, number));
    std::optional<Size> size = rest ? multiply(*rest, Size(-number)) : std::nullopt;
    if (!size || size->symbols().count(symbol) || !(size->isNonNegative() || size->constant()))
      continue;
    if (!best || positionOf(symbol) > positionOf(best->first))
      best = {symbol, *size};
  }
  // If s - 4*(s // 4) == 0 or s % 4 == 0, s is a multiple of 4. Replace s by 4 times a new symbol, which is not the
  // size of any input.
  for (const auto &[factors, number] : gap->terms()) {
    const Size::Factor *function = factors.size() == 1 ? &factors.front() : nullptr;
    if (best || !function || !function->operands)
      continue;
    const auto &[dividend, divisor] = *function->operands;
    std::optional<StringRef> symbol = dividend.symbol();
    std::optional<Size> rest = remainder(dividend, divisor),
                        quotient = divideDown(dividend, divisor),
                        whole = multiply(Size::product(factors, 1), divisor),
                        difference = whole ? subtract(dividend, *whole) : std::nullopt;
    bool isRest = *gap == rest ||
                  (difference && (*gap == *difference || *gap == multiply(*difference, Size(-1))));
    if (!symbol || !divisor.constant() || !isRest || !quotient)
      continue;
    std::string name = (*symbol + "/" + divisor.str()).str();
    quotients[name] = *quotient;
    best = {symbol->str(), *multiply(divisor, Size::symbol(name))};
  }
  return best && replace(best->first, best->second);
}

SizeFacts::Outcome SizeFacts::requireEqual(const Size &a, const Size &b) {
  std::optional<bool> known = areEqual(a, b);
  return !known ? Outcome::Open : *known ? Outcome::Holds : Outcome::Refuted;
}

SizeFacts::Outcome SizeFacts::requireAtMost(const Size &a, const Size &b) {
  if (std::optional<bool> known = isAtMost(a, b))
    return *known ? Outcome::Holds : Outcome::Refuted;
  std::optional<Size> gap = subtract(b, a);
  // The last term has a symbol, because the range of the gap is not a number.
  if (!gap || gap->terms().size() > 2)
    return Outcome::Open;
  const auto &[factors, number] = *gap->terms().rbegin();
  std::optional<Size> others = subtract(*gap, Size::product(factors, number));
  std::optional<int64_t> constant = others ? others->constant() : std::nullopt;
  if (!constant || factors.size() != 1 || factors.front().operands || *constant <= -kMaxDim ||
      *constant >= kMaxDim || number <= -kMaxDim)
    return Outcome::Open;
  // number * symbol + constant >= 0
  SizeRange range = rangeOf(StringRef(factors.front().text));
  if (number > 0)
    range.min = std::max(range.min, divideCeilSigned(-*constant, number));
  else
    range.max = std::min(range.max, divideFloorSigned(*constant, -number));
  if (range.min > range.max)
    return Outcome::Refuted;
  ranges[factors.front().text] = range;
  return Outcome::Holds;
}
