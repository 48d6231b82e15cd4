//===- ElementRanges.h - the integers that a tensor can hold ----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_CHECKS_ELEMENTRANGES_H
#define ATTN_FRONTEND_CHECKS_ELEMENTRANGES_H

#include "frontend/checks/ValueSizes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// The integers that a tensor holds. Each of them is the sum of two numbers: an element of `argument`, or 0 if
/// `argument` is null, and a number from `least` to `most`. An end that is not known is none.
struct ElementRange {
  /// How near `least` and `most` are to the numbers of a call.
  enum class Reach {
    Unknown, ///< perhaps no call has a number at an end
    Some,    ///< calls with certain elements of the arguments have a number at both ends
    Every    ///< every call has a number at both ends, whatever its sizes are
  };

  mlir::BlockArgument argument = nullptr;
  std::optional<Size> least = std::nullopt, most = std::nullopt;
  Reach reach = Reach::Unknown;
  /// The dimensions of the tensor, as bits, along which the number or the element of the argument varies.
  uint64_t dims = 0;

  static ElementRange single(const Size &size) { return {nullptr, size, size, Reach::Every}; }
  bool isKnown() const { return least && most; }
  bool isSingle() const { return isKnown() && *least == *most; }
};

/// The greatest absolute value of a number that is added to an argument, and the greatest number of rows of a tensor
/// that the sum indexes. The sum of such a number and an index fits into 32 bits.
inline constexpr int64_t kMostOffset = 1 << 20, kMostRows = 1 << 30;

/// Returns the range of the elements of `tensor`, which are integers. For example, torch.arange(S) has the elements 0
/// to S - 1.
ElementRange rangeOf(ValueSizes &values, mlir::Value tensor, llvm::ArrayRef<Size> sizes);

/// Returns the range of an integer, which may be in the body of a linalg op or of a loop.
ElementRange rangeOf(ValueSizes &values, mlir::Value integer);

/// Returns true if the induction variable of `loop` grows from iteration to iteration, as a signed integer.
bool countsUp(mlir::scf::ForOp loop);

} // namespace attn

#endif // ATTN_FRONTEND_CHECKS_ELEMENTRANGES_H
