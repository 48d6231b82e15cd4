//===- FunctionSizes.h - numbers and sizes in an MLIR file -------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_MLIR_FUNCTIONSIZES_H
#define ATTN_FRONTEND_MLIR_FUNCTIONSIZES_H

#include "frontend/checks/SizeFacts.h"
#include "frontend/checks/ValueSizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// The integers and sizes of a function, in terms of the symbols that attn.dims gives to dimensions of its arguments.
/// Follows integer arithmetic, comparisons and selections that decide between known numbers.
class FunctionSizes : public ValueSizes {
public:
  explicit FunctionSizes(mlir::func::FuncOp function);

  mlir::func::FuncOp function;
  SizeFacts facts;

  std::optional<Size> numberOf(mlir::OpFoldResult integer) override;
  SizeRange rangeOf(const Size &size) override { return facts.rangeOf(size); }

  /// Like numberOf() and sizeOf(), but an integer or a size that is not known becomes a symbol of its own. isKnown() is
  /// false for results with such symbols, and str() writes them as "an unknown size".
  Size namedNumberOf(mlir::OpFoldResult integer);
  Size namedSizeOf(mlir::Value tensor, int64_t dim);
  static bool isKnown(const Size &size);
  std::string str(const Size &size) const;

  /// The symbol for a dimension of an argument that has `name` in attn.dims.
  std::string keyOf(llvm::StringRef name) const;

  /// `size` after all equalities, in terms of the symbols of the function.
  Size reduced(const Size &size) const;

  /// Whether a condition on sizes is true or false in every call; none if neither is proved.
  std::optional<bool> truthOf(mlir::Value condition);

  /// Requires a == b, or a <= b, in every call: narrows the range of a symbol or adds a condition to the function. The
  /// sizes must be reduced. Returns false if no call meets the requirement, or if it needs a condition on a symbol whose
  /// name conditions cannot have.
  bool requireEqual(const Size &a, const Size &b);
  bool requireAtMost(const Size &a, const Size &b);

  /// Replaces symbols of the function that equal other symbols, and adds a condition for each symbol that equals another
  /// size.
  mlir::LogicalResult mergeSymbols();
  /// Writes the ranges of symbols to the function.
  void setRanges();
  /// The symbol of the function for `size`, which is reduced and known: that of a dimension of an argument or, if there is
  /// none, a new one that is computed. Null if it needs a symbol whose name formulas cannot have.
  mlir::StringAttr symbolFor(const Size &size);

  /// Computes numbers again when they are asked for next, because the facts have changed.
  void forgetNumbers() {
    known.clear();
    needed.clear();
  }

  /// What known numbers need not to be negative, each with the op that needs it: a divisor less 1, and the distance of a
  /// number from the ends of its type. Beyond these, the op would compute something else.
  llvm::ArrayRef<std::pair<mlir::Operation *, Size>> needs() const { return needed; }

protected:
  std::optional<Size> unstatedSizeOf(mlir::Value tensor, int64_t dim) override;
  std::optional<Size> statedSizeOf(mlir::OpFoldResult size) override { return namedNumberOf(size); }

private:
  Size unknown(mlir::Value value, int64_t dim);
  std::optional<Size> compute(mlir::Value integer);
  bool holdsWithoutOverflow(const Size &size) const;
  std::optional<Size> fitted(mlir::Operation *op, std::optional<Size> number);
  std::optional<bool> decide(mlir::Operation *op);
  bool addComputed(const std::string &formula, llvm::ArrayRef<Size> of, int64_t min, int64_t max);

  llvm::DenseMap<mlir::Value, Size> known;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, Size> unknowns;
  std::vector<std::pair<mlir::Operation *, Size>> needed;
  /// The names in attn.dims of the arguments, by their symbols.
  std::map<std::string, std::string> names;
  /// The symbols of the dimensions of each argument, and the greatest number of elements along them.
  std::vector<std::pair<std::vector<std::string>, int64_t>> arguments;
};

} // namespace attn

#endif // ATTN_FRONTEND_MLIR_FUNCTIONSIZES_H
