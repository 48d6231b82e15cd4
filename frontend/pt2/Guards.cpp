//===- Guards.cpp - what torch assumed of the sizes ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/Guards.h"

using namespace llvm;
using namespace attn::pt2;

/// A number, or L['argument'].size()[axis].
static std::optional<Size> parseSide(StringRef text,
                                     const std::map<std::string, TensorMeta> &arguments) {
  int64_t number;
  if (!text.getAsInteger(10, number))
    return Size(number);
  uint64_t axis;
  StringRef name = text.split("L['").second.split("']").first;
  StringRef rest = text;
  if (!rest.consume_front("L['") || !rest.consume_front(name) ||
      !rest.consume_front("'].size()[") || rest.consumeInteger(10, axis) || rest != "]")
    return std::nullopt;
  auto found = arguments.find(name.str());
  if (found == arguments.end() || axis >= found->second.sizes.size())
    return std::nullopt;
  return found->second.sizes[axis];
}

/// The least and greatest value of a number or symbol.
static std::optional<std::pair<int64_t, int64_t>>
rangeOf(const Size &size, const std::map<std::string, SymbolRange> &ranges) {
  if (std::optional<int64_t> number = size.constant())
    return std::pair(*number, *number);
  if (!size.symbol())
    return std::nullopt;
  auto found = ranges.find(size.symbol()->str());
  SymbolRange range = found == ranges.end() ? SymbolRange() : found->second;
  return std::pair(range.min.value_or(0), range.max.value_or(kMaxDim));
}

static bool isComparisonImplied(StringRef text, const std::map<std::string, TensorMeta> &arguments,
                                const std::map<std::string, SymbolRange> &ranges) {
  for (StringRef comparison : {"==", "<=", ">=", "<", ">"}) {
    if (!text.contains(comparison))
      continue;
    auto [left, right] = text.split(comparison);
    std::optional<Size> a = parseSide(left.trim(), arguments),
                        b = parseSide(right.trim(), arguments);
    if (!a || !b)
      return false;
    if (comparison == "==")
      return *a == *b;
    if (comparison.front() == '>')
      std::swap(a, b);
    auto ofA = rangeOf(*a, ranges), ofB = rangeOf(*b, ranges);
    if (!ofA || !ofB)
      return false;
    return comparison.size() == 2 ? ofA->second <= ofB->first : ofA->second < ofB->first;
  }
  return false;
}

bool attn::pt2::isImplied(StringRef guard, const std::map<std::string, TensorMeta> &arguments,
                          const std::map<std::string, SymbolRange> &ranges) {
  while (!guard.empty()) {
    auto [first, rest] = guard.split(" and ");
    if (!isComparisonImplied(first, arguments, ranges))
      return false;
    guard = rest;
  }
  return true;
}
