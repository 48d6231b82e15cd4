//===- Formula.h - sizes and conditions as text ------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// If a symbol of a function is not a dimension of an argument, its name is the formula that computes it:
//   2*x.1 + 1
//   x.0 == 1 or x.0 == mask.0
// Syntax, integer division and remainder are those of Python.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_FORMULA_H
#define ATTN_DIALECT_FORMULA_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace attn {

struct Formula {
  enum class Op {
    Number,
    Name,
    Add,
    Subtract,
    Multiply,
    Divide, // rounds down
    Modulo, // has the sign of the divisor
    Max,
    Min,
    Equal,
    Less,
    AtMost,
    Not,
    And,
    Or
  };

  Op op = Op::Number;
  int64_t number = 0;
  std::string name;
  std::vector<Formula> operands;

  /// Parses a formula of numbers, names, + - * // % ** max min, comparisons, not, and, or. A name may have brackets, as
  /// in "L['x'][0].size()[1]". Returns none for any other text.
  static std::optional<Formula> parse(llvm::StringRef text);

  /// Whether the value of the formula is true or false rather than a number.
  bool isCondition() const { return op >= Op::Equal; }

  /// The formula as text that parse() reads, with newName(name) in place of each name.
  std::string str(llvm::function_ref<std::string(llvm::StringRef name)> newName) const;
};

} // namespace attn

#endif // ATTN_DIALECT_FORMULA_H
