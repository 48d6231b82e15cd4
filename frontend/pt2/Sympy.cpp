//===- Sympy.cpp - sizes as sympy writes them -----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/Sympy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace attn;

// An expression beyond these limits comes from a hostile file.
static constexpr size_t kMaxDepth = 64;
static constexpr int64_t kMaxExponent = 16;

/// Splits the text of arguments at the commas that are not inside parentheses or quotes.
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

static std::optional<Size> parseAt(StringRef text, size_t depth) {
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
  // Ignore the assumptions after the name (positive=True, ...), because every symbol is treated as a size.
  if (function == "Symbol" && first.size() > 2 && first.consume_front("'") &&
      first.consume_back("'"))
    return Size::symbol(first);
  if (function == "Pow" && arguments->size() == 2) {
    std::optional<Size> base = parseAt(first, depth + 1),
                        exponent = parseAt((*arguments)[1], depth + 1);
    std::optional<int64_t> count = exponent ? exponent->constant() : std::nullopt;
    if (base && count && *count >= 1 && *count <= kMaxExponent) {
      std::optional<Size> power = base;
      for (int64_t i = 1; i < *count && power; ++i)
        power = multiply(*power, *base);
      return power;
    }
  }
  using Combine = std::optional<Size> (*)(const Size &, const Size &);
  auto combine = StringSwitch<Combine>(function)
                     .Case("Add", add)
                     .Case("Mul", multiply)
                     .Case("Max", attn::maximum)
                     .Case("Min", attn::minimum)
                     .Cases({"FloorDiv", "CleanDiv"}, divideDown)
                     .Cases({"Mod", "PythonMod"}, remainder)
                     .Default(nullptr);
  if (combine) {
    std::optional<Size> result = parseAt(first, depth + 1);
    for (StringRef argument : ArrayRef(*arguments).drop_front()) {
      std::optional<Size> operand = parseAt(argument, depth + 1);
      if (!result || !operand)
        return std::nullopt;
      result = combine(*result, *operand);
    }
    return result;
  }
  // Functions that round an exact quotient, such as ceil(a / b).
  auto round = StringSwitch<Combine>(function)
                   .Case("CeilToInt", divideUp)
                   .Cases({"FloorToInt", "TruncToInt"}, divideDown)
                   .Default(nullptr);
  if (round && arguments->size() == 1) {
    StringRef operand = first;
    if (operand.consume_front("ToFloat(") && operand.consume_back(")"))
      return parseAt(operand, depth + 1);
    operand = first;
    if (operand.consume_front("IntTrueDiv(") && operand.consume_back(")"))
      if (std::optional<SmallVector<StringRef>> sides = splitArguments(operand);
          sides && sides->size() == 2) {
        std::optional<Size> a = parseAt(sides->front(), depth + 1),
                            b = parseAt(sides->back(), depth + 1);
        return a && b ? round(*a, *b) : std::nullopt;
      }
  }
  return Size::symbol(text);
}

std::optional<Size> attn::pt2::parseSympy(StringRef text) { return parseAt(text.trim(), 0); }
