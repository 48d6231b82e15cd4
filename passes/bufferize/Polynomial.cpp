//===- Polynomial.cpp - sizes in terms of the symbols of a call ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/bufferize/Polynomial.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

Polynomial Polynomial::operator+(const Polynomial &other) const {
  Polynomial result = *this;
  for (const auto &[symbols, coefficient] : other.terms)
    result.terms[symbols] += coefficient;
  return result;
}

Polynomial Polynomial::operator*(const Polynomial &other) const {
  Polynomial result;
  for (const auto &[symbolsA, coefficientA] : terms) {
    for (const auto &[symbolsB, coefficientB] : other.terms) {
      SmallVector<unsigned, 2> symbols(symbolsA);
      llvm::append_range(symbols, symbolsB);
      llvm::sort(symbols);
      result.terms[symbols] += coefficientA * coefficientB;
    }
  }
  return result;
}

Polynomial Polynomial::alignedTo(int64_t alignment) const {
  Polynomial result;
  for (const auto &[symbols, coefficient] : terms)
    result.terms[symbols] = llvm::alignTo(coefficient, alignment);
  return result;
}

Polynomial Polynomial::maximum(const Polynomial &a, const Polynomial &b) {
  Polynomial result = a;
  for (const auto &[symbols, coefficient] : b.terms) {
    int64_t &mine = result.terms[symbols];
    mine = std::max(mine, coefficient);
  }
  return result;
}

std::string Polynomial::print(ArrayRef<StringRef> symbolNames) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  // Products first, the constant last.
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

Value Polynomial::build(OpBuilder &builder, Location loc, function_ref<Value(unsigned)> valueOf) const {
  Value sum;
  for (const auto &[symbols, coefficient] : terms) {
    Value product = arith::ConstantIndexOp::create(builder, loc, coefficient);
    for (unsigned symbol : symbols)
      product = arith::MulIOp::create(builder, loc, product, valueOf(symbol));
    sum = sum ? arith::AddIOp::create(builder, loc, sum, product).getResult() : product;
  }
  return sum ? sum : arith::ConstantIndexOp::create(builder, loc, 0).getResult();
}
