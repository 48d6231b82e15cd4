//===- Size.cpp - sizes that are known at the call only --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/graph/Size.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llvm;
using namespace attn::graph;

// Sizes are sums of a few products; what exceeds this is an attack or beyond us.
static constexpr size_t kMaxTerms = 64, kMaxDegree = 16, kMaxDepth = 64;

Size::Size(int64_t constant) {
  if (constant != 0)
    polynomial[{}] = constant;
}

Size Size::symbol(StringRef name) {
  Size size;
  size.polynomial[{name.str()}] = 1;
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
      polynomial.begin()->second != 1)
    return std::nullopt;
  return polynomial.begin()->first.front();
}

std::optional<Size>
Size::rename(function_ref<std::optional<std::string>(const std::string &)> newName) const {
  Size result;
  for (const auto &[monomial, coefficient] : polynomial) {
    Monomial renamed;
    for (const std::string &symbol : monomial) {
      std::optional<std::string> name = newName(symbol);
      if (!name)
        return std::nullopt;
      renamed.push_back(*name);
    }
    llvm::sort(renamed);
    result.polynomial[renamed] = coefficient;
  }
  return result;
}

std::optional<Size> attn::graph::add(const Size &a, const Size &b) {
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

std::optional<Size> attn::graph::multiply(const Size &a, const Size &b) {
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

std::string Size::str() const {
  if (polynomial.empty())
    return "0";
  std::vector<std::string> sum;
  for (const auto &[monomial, coefficient] : polynomial) {
    std::vector<std::string> product(monomial);
    if (coefficient != 1 || monomial.empty())
      product.insert(product.begin(), std::to_string(coefficient));
    sum.push_back(llvm::join(product, "*"));
  }
  return llvm::join(sum, " + ");
}

std::string attn::graph::str(ArrayRef<Size> sizes) {
  std::string text;
  for (const Size &size : sizes)
    text += (text.empty() ? "" : ", ") + size.str();
  return "[" + text + "]";
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// The arguments of a call's text: split at the commas that no parenthesis or quote encloses.
static std::optional<SmallVector<StringRef>> splitArguments(StringRef text) {
  SmallVector<StringRef> arguments;
  size_t start = 0;
  int64_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\'')
      quoted = !quoted;
    else if (!quoted)
      depth += (c == '(') - (c == ')');
    if (depth < 0)
      return std::nullopt;
    if (c == ',' && depth == 0 && !quoted) {
      arguments.push_back(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  if (depth != 0 || quoted)
    return std::nullopt;
  arguments.push_back(text.substr(start).trim());
  return arguments;
}

static std::optional<Size> parseSympy(StringRef text, size_t depth) {
  if (depth > kMaxDepth || text.empty())
    return std::nullopt;
  auto [function, rest] = text.split('(');
  int64_t integer;
  if (!text.getAsInteger(10, integer))
    return Size(integer);
  if (!rest.consume_back(")"))
    return Size::symbol(text);
  std::optional<SmallVector<StringRef>> arguments = splitArguments(rest);
  if (!arguments)
    return std::nullopt;
  StringRef first = arguments->front();
  if (function == "Integer" && !first.getAsInteger(10, integer))
    return Size(integer);
  // The assumptions that follow a name (positive=True, ...) are the same for all sizes.
  if (function == "Symbol" && first.size() > 2 && first.consume_front("'") &&
      first.consume_back("'"))
    return Size::symbol(first);
  if (function == "Pow" && arguments->size() == 2) {
    std::optional<Size> base = parseSympy(first, depth + 1),
                        exponent = parseSympy((*arguments)[1], depth + 1);
    std::optional<int64_t> count = exponent ? exponent->constant() : std::nullopt;
    if (base && count && *count >= 1 && *count <= int64_t(kMaxDegree)) {
      std::optional<Size> power = base;
      for (int64_t i = 1; i < *count && power; ++i)
        power = multiply(*power, *base);
      return power;
    }
  }
  if (function == "Add" || function == "Mul") {
    std::optional<Size> result = parseSympy(first, depth + 1);
    for (StringRef argument : ArrayRef(*arguments).drop_front()) {
      std::optional<Size> operand = parseSympy(argument, depth + 1);
      if (!result || !operand)
        return std::nullopt;
      result = function == "Add" ? add(*result, *operand) : multiply(*result, *operand);
    }
    return result;
  }
  return Size::symbol(text);
}

std::optional<Size> Size::parse(StringRef sympy) { return parseSympy(sympy.trim(), 0); }

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

static std::optional<Size> product(ArrayRef<Size> sizes) {
  std::optional<Size> result = Size(1);
  for (const Size &size : sizes)
    if (result)
      result = multiply(*result, size);
  return result;
}

std::optional<SmallVector<ViewGroup>> attn::graph::matchView(ArrayRef<Size> source,
                                                           ArrayRef<Size> result) {
  auto isUnit = [](const Size &size) { return size.isOne(); };
  SmallVector<ViewGroup> groups;
  while (!source.empty() && !result.empty()) {
    // The smallest run of each side that holds as many elements as the other's.
    std::optional<ViewGroup> next;
    for (unsigned total = 2; total <= source.size() + result.size() && !next; ++total) {
      for (unsigned from = 1; from < total && !next; ++from) {
        unsigned to = total - from;
        if (from > source.size() || to > result.size())
          continue;
        std::optional<Size> a = product(source.take_front(from)),
                            b = product(result.take_front(to));
        if (a && b && *a == *b)
          next = ViewGroup{from, to};
      }
    }
    if (!next)
      return std::nullopt;
    groups.push_back(*next);
    source = source.drop_front(next->from);
    result = result.drop_front(next->to);
  }
  // Unit dimensions may be left on one side: they go with the last group.
  if (!all_of(source, isUnit) || !all_of(result, isUnit))
    return std::nullopt;
  if (!source.empty() || !result.empty()) {
    if (groups.empty())
      groups.push_back({0, 0});
    groups.back().from += source.size();
    groups.back().to += result.size();
  }
  return groups;
}
