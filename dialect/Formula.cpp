//===- Formula.cpp - sizes and conditions as text --------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Formula.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace attn;

// The text comes from files that may be hostile, so formulas that exceed these limits are rejected.
static constexpr size_t kMaxOperations = 255, kMaxPower = 16;

namespace {
/// A recursive-descent parser. It has one function for each precedence, from the lowest to the highest. Each function
/// returns none if the text is not a formula.
class Parser {
public:
  explicit Parser(StringRef text) : rest(text) {}

  std::optional<Formula> parseAll() {
    std::optional<Formula> formula = parseOr();
    return formula && rest.trim().empty() ? formula : std::nullopt;
  }

private:
  using Op = Formula::Op;
  using Level = std::optional<Formula> (Parser::*)();

  bool consume(StringRef token) {
    rest = rest.ltrim();
    StringRef after = rest;
    if (!after.consume_front(token))
      return false;
    // The token "or" must not match the beginning of a name such as "order".
    if (isAlpha(token.back()) && !after.empty() && (isAlnum(after.front()) || after.front() == '_'))
      return false;
    rest = after;
    return true;
  }

  std::optional<Formula> make(Op op, std::vector<Formula> operands) {
    bool wantsConditions = op >= Op::Not;
    if (++numOperations > kMaxOperations || any_of(operands, [&](const Formula &operand) {
          return operand.isCondition() != wantsConditions;
        }))
      return std::nullopt;
    Formula formula;
    formula.op = op;
    formula.operands = std::move(operands);
    return formula;
  }

  /// Parses operands with the function `next`. The operators of `operations` join the operands from left to right.
  std::optional<Formula> parseBinary(Level next, ArrayRef<std::pair<StringRef, Op>> operations) {
    std::optional<Formula> formula = (this->*next)();
    while (formula) {
      const auto *found =
          find_if(operations, [&](const auto &operation) { return consume(operation.first); });
      if (found == operations.end())
        return formula;
      std::optional<Formula> operand = (this->*next)();
      if (!operand)
        return std::nullopt;
      formula = make(found->second, {std::move(*formula), std::move(*operand)});
    }
    return std::nullopt;
  }

  std::optional<Formula> parseOr() { return parseBinary(&Parser::parseAnd, {{"or", Op::Or}}); }
  std::optional<Formula> parseAnd() { return parseBinary(&Parser::parseNot, {{"and", Op::And}}); }

  std::optional<Formula> parseNot() {
    if (!consume("not"))
      return parseComparison();
    if (++depth > kMaxOperations)
      return std::nullopt;
    std::optional<Formula> operand = parseNot();
    --depth;
    return operand ? make(Op::Not, {std::move(*operand)}) : std::nullopt;
  }

  /// Parses comparisons. As in Python, a < b <= c means a < b and b <= c.
  std::optional<Formula> parseComparison() {
    std::optional<Formula> left = parseSum(), all;
    while (left) {
      static constexpr StringLiteral kComparisons[] = {"==", "!=", "<=", ">=", "<", ">"};
      const auto *found =
          find_if(kComparisons, [&](StringRef comparison) { return consume(comparison); });
      if (found == std::end(kComparisons))
        return all ? all : left;
      StringRef comparison = *found;
      std::optional<Formula> right = parseSum();
      if (!right)
        return std::nullopt;
      // a > b becomes not (a <= b), and a >= b becomes not (a < b).
      Op op = comparison == "==" || comparison == "!="   ? Op::Equal
              : comparison == "<" || comparison == ">=" ? Op::Less
                                                        : Op::AtMost;
      std::optional<Formula> one = make(op, {std::move(*left), *right});
      if (one && (comparison == "!=" || comparison.front() == '>'))
        one = make(Op::Not, {std::move(*one)});
      if (!one)
        return std::nullopt;
      all = all ? make(Op::And, {std::move(*all), std::move(*one)}) : std::move(one);
      if (!all)
        return std::nullopt;
      left = std::move(right);
    }
    return std::nullopt;
  }

  std::optional<Formula> parseSum() {
    return parseBinary(&Parser::parseProduct, {{"+", Op::Add}, {"-", Op::Subtract}});
  }

  std::optional<Formula> parseProduct() {
    return parseBinary(&Parser::parseFactor,
                       {{"*", Op::Multiply}, {"//", Op::Divide}, {"%", Op::Modulo}});
  }

  std::optional<Formula> parseFactor() {
    if (++depth > kMaxOperations)
      return std::nullopt;
    std::optional<Formula> formula;
    if (consume("-")) {
      formula = parseFactor();
      if (formula && formula->op == Op::Number)
        formula->number = -formula->number;
      else if (formula)
        formula = make(Op::Subtract, {Formula(), std::move(*formula)});
    } else {
      formula = parsePower();
    }
    --depth;
    return formula;
  }

  std::optional<Formula> parsePower() {
    size_t numBefore = numOperations;
    std::optional<Formula> base = parsePrimary();
    size_t numInBase = numOperations - numBefore;
    if (!base || !consume("**"))
      return base;
    rest = rest.ltrim();
    size_t exponent;
    if (rest.consumeInteger(10, exponent) || exponent < 1 || exponent > kMaxPower)
      return std::nullopt;
    std::optional<Formula> power = base;
    for (size_t i = 1; i < exponent && power; ++i) {
      numOperations += numInBase;
      power = make(Op::Multiply, {std::move(*power), *base});
    }
    return power;
  }

  std::optional<Formula> parsePrimary() {
    rest = rest.ltrim();
    Formula formula;
    if (!rest.empty() && isDigit(rest.front())) {
      if (rest.consumeInteger(10, formula.number))
        return std::nullopt;
      return formula;
    }
    if (consume("(")) {
      std::optional<Formula> inside = parseOr();
      return inside && consume(")") ? inside : std::nullopt;
    }
    formula.op = Op::Name;
    formula.name = parseName().str();
    if (formula.name.empty())
      return std::nullopt;
    if (!consume("("))
      return formula;
    StringRef function = formula.name;
    Op op = function == "max" || function == "torch.sym_max" ? Op::Max : Op::Min;
    if (op == Op::Min && function != "min" && function != "torch.sym_min")
      return std::nullopt;
    std::optional<Formula> result = parseSum();
    do {
      if (!result || !consume(","))
        return std::nullopt;
      std::optional<Formula> operand = parseSum();
      result = operand ? make(op, {std::move(*result), std::move(*operand)}) : std::nullopt;
    } while (!consume(")"));
    return result;
  }

  /// Reads a name: letters, digits, underscores and dots, "()", and brackets with their contents.
  StringRef parseName() {
    size_t end = 0;
    if (rest.empty() || !(isAlpha(rest.front()) || rest.front() == '_'))
      return "";
    while (end < rest.size()) {
      char c = rest[end];
      size_t step = isAlnum(c) || c == '_' || c == '.' ? 1 : 0;
      if (rest.substr(end).starts_with("()"))
        step = 2;
      else if (c == '[')
        step = sizeOfBrackets(rest.substr(end));
      if (step == 0)
        break;
      end += step;
    }
    StringRef name = rest.take_front(end);
    rest = rest.drop_front(end);
    return name;
  }

  /// The length of the brackets at the beginning of `text`, which hold a quoted string or digits; 0 if no closing
  /// bracket follows the string or the digits.
  static size_t sizeOfBrackets(StringRef text) {
    size_t end = 1;
    if (end < text.size() && (text[end] == '\'' || text[end] == '"')) {
      end = text.find(text[end], end + 1);
      end = end == StringRef::npos ? text.size() : end + 1;
    } else {
      end += text.drop_front().take_while(isDigit).size();
    }
    return end < text.size() && text[end] == ']' ? end + 1 : 0;
  }

  StringRef rest;
  size_t numOperations = 0, depth = 0;
};
} // namespace

std::optional<Formula> Formula::parse(StringRef text) { return Parser(text).parseAll(); }

/// The precedence of an operation, and its name in Python's syntax.
static std::pair<int, StringRef> spelling(Formula::Op op) {
  using Op = Formula::Op;
  switch (op) {
  case Op::Or:
    return {1, " or "};
  case Op::And:
    return {2, " and "};
  case Op::Not:
    return {3, "not "};
  case Op::Equal:
    return {4, " == "};
  case Op::Less:
    return {4, " < "};
  case Op::AtMost:
    return {4, " <= "};
  case Op::Add:
    return {5, " + "};
  case Op::Subtract:
    return {5, " - "};
  case Op::Multiply:
    return {6, "*"};
  case Op::Divide:
    return {6, " // "};
  case Op::Modulo:
    return {6, " % "};
  case Op::Max:
    return {7, "max"};
  case Op::Min:
    return {7, "min"};
  case Op::Number:
  case Op::Name:
    return {7, ""};
  }
  llvm_unreachable("every operation returns");
}

std::string Formula::str(function_ref<std::string(StringRef)> newName) const {
  if (op == Op::Number)
    return std::to_string(number);
  if (op == Op::Name)
    return newName(name);
  auto [precedence, sign] = spelling(op);
  auto operand = [&](size_t i, int least) {
    std::string text = operands[i].str(newName);
    return spelling(operands[i].op).first < least ? "(" + text + ")" : text;
  };
  if (op == Op::Max || op == Op::Min)
    return (sign + "(" + operand(0, 0) + ", " + operand(1, 0) + ")").str();
  if (op == Op::Not) {
    // Write a negated comparison as the opposite comparison: `a != b` instead of `not a == b`.
    const Formula &comparison = operands.front();
    StringRef opposite = comparison.op == Op::Equal    ? " != "
                         : comparison.op == Op::Less   ? " >= "
                         : comparison.op == Op::AtMost ? " > "
                                                       : "";
    if (opposite.empty())
      return "not " + operand(0, precedence);
    return comparison.operands[0].str(newName) + opposite.str() + comparison.operands[1].str(newName);
  }
  // Operations of one precedence associate to the left, so a right operand of the same precedence needs parentheses.
  return operand(0, precedence) + sign.str() + operand(1, precedence + 1);
}
