//===- Ranges.h - the integers that a tensor can hold -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_RANGES_H
#define ATTN_FRONTEND_PT2_RANGES_H

#include "frontend/pt2/Call.h"

namespace attn::pt2 {

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

/// Returns the range of the elements of `tensor`, which are integers. For example, torch.arange(S) has the elements 0
/// to S - 1.
ElementRange rangeOf(const TensorBuilder &b, const Values &values, const Tensor &tensor);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_RANGES_H
