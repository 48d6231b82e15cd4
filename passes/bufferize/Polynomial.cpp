//===- Polynomial.cpp - sizes in terms of the symbols of a call ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/bufferize/Polynomial.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace attn;

Polynomial Polynomial::operator+(const Polynomial &other) const {
  Polynomial result = *this;
  for (const auto &[symbols, coefficient] : other.terms)
    result.terms[symbols] = llvm::SaturatingAdd(result.terms[symbols], coefficient);
  return result;
}

Polynomial Polynomial::operator*(const Polynomial &other) const {
  Polynomial result;
  for (const auto &[symbolsA, coefficientA] : terms) {
    for (const auto &[symbolsB, coefficientB] : other.terms) {
      SmallVector<unsigned, 2> symbols(symbolsA);
      llvm::append_range(symbols, symbolsB);
      llvm::sort(symbols);
      uint64_t &sum = result.terms[symbols];
      sum = llvm::SaturatingMultiplyAdd(coefficientA, coefficientB, sum);
    }
  }
  return result;
}

std::optional<std::pair<unsigned, uint64_t>> Polynomial::getShiftedSymbol() const {
  std::optional<unsigned> symbol;
  for (const auto &[symbols, coefficient] : terms) {
    if (symbols.empty())
      continue;
    if (symbol || symbols.size() != 1 || coefficient != 1)
      return std::nullopt;
    symbol = symbols.front();
  }
  return symbol ? std::optional(std::pair(*symbol, constant())) : std::nullopt;
}

bool Polynomial::isMultipleOf(uint64_t divisor) const {
  return llvm::all_of(terms, [&](const auto &term) { return term.second % divisor == 0; });
}

Polynomial Polynomial::padded(uint64_t alignment) const {
  // For all values of the symbols, the size is `constant` plus a multiple of `unit`.
  uint64_t unit = alignment, constant = 0;
  for (const auto &[symbols, coefficient] : terms) {
    if (symbols.empty())
      constant = coefficient;
    else
      unit = std::gcd(unit, coefficient);
  }
  uint64_t padding = (unit - constant % unit) % unit + alignment - unit;
  return *this + Polynomial(padding);
}

Polynomial Polynomial::maximum(const Polynomial &a, const Polynomial &b) {
  Polynomial result = a;
  for (const auto &[symbols, coefficient] : b.terms) {
    uint64_t &mine = result.terms[symbols];
    mine = std::max(mine, coefficient);
  }
  return result;
}

std::string Polynomial::print(ArrayRef<StringRef> symbolNames) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  // Print products first, and the constant last.
  llvm::interleave(
      llvm::reverse(terms), os,
      [&](const auto &term) {
        os << term.second;
        for (unsigned symbol : term.first)
          os << '*' << symbolNames[symbol];
      },
      " + ");
  return terms.empty() ? "0" : text;
}

Value Polynomial::build(OpBuilder &builder, Location loc, function_ref<Value(unsigned)> valueOf,
                        bool saturates) const {
  auto constant = [&](uint64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto unless = [&](arith::CmpIPredicate predicate, Value a, Value b, Value value) -> Value {
    Value overflows = arith::CmpIOp::create(builder, loc, predicate, a, b);
    return arith::SelectOp::create(builder, loc, overflows, constant(UINT64_MAX), value);
  };
  auto multiply = [&](Value a, Value b) -> Value {
    if (!saturates)
      return arith::MulIOp::create(builder, loc, a, b);
    auto product = arith::MulUIExtendedOp::create(builder, loc, a, b);
    return unless(arith::CmpIPredicate::ne, product.getHigh(), constant(0), product.getLow());
  };
  auto add = [&](Value a, Value b) -> Value {
    Value sum = arith::AddIOp::create(builder, loc, a, b);
    return saturates ? unless(arith::CmpIPredicate::ult, sum, a, sum) : sum;
  };

  Value sum = constant(0);
  for (const auto &[symbols, coefficient] : terms) {
    Value product = constant(coefficient);
    for (unsigned symbol : symbols)
      product = multiply(product, valueOf(symbol));
    sum = add(sum, product);
  }
  return sum;
}
