//===- ValueSizes.h - numbers and sizes in a function ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_CHECKS_VALUESIZES_H
#define ATTN_FRONTEND_CHECKS_VALUESIZES_H

#include "dialect/Size.h"

#include "mlir/IR/OpDefinition.h"

namespace attn {

/// What a reader of files knows of the integers and of the tensors in a function, in terms of the symbols of the file.
class ValueSizes {
public:
  virtual ~ValueSizes() = default;

  /// The value of an integer; none if it is not known, for example because it depends on elements of a tensor.
  virtual std::optional<Size> numberOf(mlir::OpFoldResult integer) = 0;

  /// The size of a dimension; none if it is not known.
  std::optional<Size> sizeOf(mlir::Value tensor, int64_t dim);

  /// The number of elements of a group of dimensions; none if it is not known.
  std::optional<Size> countOf(mlir::Value tensor, llvm::ArrayRef<int64_t> dims);

  /// The least and the greatest element of an argument, if its elements are known integers; none otherwise.
  virtual std::optional<std::pair<int64_t, int64_t>> endsOf(mlir::BlockArgument) {
    return std::nullopt;
  }

  /// The size of the dimension in which the elements of `tensor` are positions, as those of an argmax; none if they are
  /// not known to be positions.
  virtual std::optional<Size> positionsOf(mlir::Value tensor) { return std::nullopt; }

  /// A range that contains `size` in every call.
  virtual SizeRange rangeOf(const Size &size) = 0;

protected:
  /// The size of a dynamic dimension that no op states: of an argument, or of the result of an op such as scf.if.
  virtual std::optional<Size> unstatedSizeOf(mlir::Value tensor, int64_t dim) = 0;
  /// The value of an integer that is the size of a tensor.
  virtual std::optional<Size> statedSizeOf(mlir::OpFoldResult size) { return numberOf(size); }
};

} // namespace attn

#endif // ATTN_FRONTEND_CHECKS_VALUESIZES_H
