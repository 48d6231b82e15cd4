//===- TensorBuilder.h - tensors of symbolic size in linalg ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_GRAPH_TENSORBUILDER_H
#define ATTN_FRONTEND_GRAPH_TENSORBUILDER_H

#include "frontend/graph/DType.h"
#include "frontend/graph/Size.h"

#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"

namespace attn::graph {

/// A value of the graph.
struct Tensor {
  mlir::Value value;
  DType dtype = DType::F32;
  Sizes sizes;

  int64_t rank() const { return sizes.size(); }
};

/// A tensor as a scalar computation reads it: converted to `as`, through `map` over the dimensions
/// of the result, or broadcast to it as torch does.
struct Operand {
  Tensor tensor;
  DType as;
  mlir::AffineMap map = {};
};

/// Builds the import form: one method an idea, no knowledge of aten. Callers have checked ranks and
/// sizes.
class TensorBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using mlir::ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  using Body = llvm::function_ref<mlir::Value(mlir::ValueRange)>;

  /// Symbol `name` is dimension `dim` of `argument`, a function argument.
  void bindSymbol(llvm::StringRef name, mlir::Value argument, int64_t dim);
  bool isBound(llvm::StringRef symbol) const { return symbols.contains(symbol); }
  /// What sizeOf() took for granted: sizes, and the least that each may be.
  llvm::ArrayRef<std::pair<Size, int64_t>> assumptions() const { return assumed; }

  mlir::RankedTensorType typeOf(llvm::ArrayRef<Size> sizes, DType dtype);
  /// Dimensions of function arguments and arithmetic on them: never a dimension of a producer,
  /// which would keep it alive beside what fusion makes of it.
  mlir::OpFoldResult sizeOf(const Size &size);
  mlir::Value indexOf(const Size &size);
  llvm::SmallVector<mlir::OpFoldResult> sizesOf(llvm::ArrayRef<Size> sizes);

  /// A size as a tensor of rank 0, of int64: what reads it is fused like what reads any tensor.
  Tensor number(const Size &size);

  /// A constant; the nearest one where `dtype` does not have `number`. Booleans say whether it is other than 0.
  mlir::Value scalar(DType dtype, double number);
  mlir::Value scalar(DType dtype, int64_t number);
  /// `value`, an element of `from`, in the type of `to`: floats become integers towards 0, and numbers booleans where
  /// they are other than 0.
  mlir::Value convert(mlir::Value value, DType from, DType to);
  /// Whether torch converts unasked: from bool to int to float.
  static bool converts(DType from, DType to);
  /// Whether a scalar is other than 0; NaN is.
  mlir::Value isNonzero(mlir::Value value);

  Tensor empty(llvm::ArrayRef<Size> sizes, DType dtype);
  Tensor fill(llvm::ArrayRef<Size> sizes, mlir::Value scalar, DType dtype);
  Tensor fill(llvm::ArrayRef<Size> sizes, DType dtype, int64_t number);

  /// The sizes to which torch broadcasts operands; none where they do not fit.
  static std::optional<Sizes> broadcast(llvm::ArrayRef<Sizes> operands);
  /// How a tensor of `sizes` is read when broadcast to `result`: aligned at the last dimension,
  /// units at 0.
  mlir::AffineMap broadcastMap(llvm::ArrayRef<Size> sizes, llvm::ArrayRef<Size> result);

  /// result[i...] = body(operands...), which is of `dtype` or of what that computes in.
  Tensor elementwise(llvm::ArrayRef<Size> sizes, DType dtype, llvm::ArrayRef<Operand> operands,
                     Body body);
  Tensor castTo(const Tensor &tensor, DType dtype);
  /// `tensor` repeated along the dimensions in which it has size 1, or which it lacks.
  Tensor broadcastTo(const Tensor &tensor, llvm::ArrayRef<Size> sizes);
  /// result[kept...] = start combined with body(operands...) over the other dimensions of `sizes`.
  using Combine = llvm::function_ref<mlir::Value(mlir::Value sofar, mlir::Value element)>;
  Tensor reduce(llvm::ArrayRef<Size> sizes, llvm::ArrayRef<int64_t> reduced, mlir::Value start,
                DType dtype, llvm::ArrayRef<Operand> operands, Body body, Combine combine);
  /// result[i...] = sum over the dimensions of `sizes` that come after the first `numKept` of
  /// body(operands...).
  Tensor sum(llvm::ArrayRef<Size> sizes, int64_t numKept, DType dtype,
             llvm::ArrayRef<Operand> operands, Body body);
  /// sum of a * b, accumulated in the type that the dtype of both computes in; maps as
  /// linalg.contract has them.
  Tensor contract(llvm::ArrayRef<Size> sizes, const Tensor &a, const Tensor &b, mlir::AffineMap ofA,
                  mlir::AffineMap ofB, mlir::AffineMap ofResult);

  Tensor transpose(const Tensor &tensor, llvm::ArrayRef<int64_t> permutation);
  Tensor slice(const Tensor &tensor, int64_t dim, const Size &offset, const Size &size,
               int64_t step = 1);
  /// Slice of size 1 whose dimension is dropped.
  Tensor select(const Tensor &tensor, int64_t dim, const Size &index);
  /// `tensor` where elements [offset, offset + step * size) of `dim` are those of `part`; the part lacks the dimension
  /// if `isDropped`.
  Tensor insert(const Tensor &tensor, const Tensor &part, int64_t dim, const Size &offset,
                int64_t step, bool isDropped);
  Tensor concat(llvm::ArrayRef<Tensor> tensors, int64_t dim, llvm::ArrayRef<Size> sizes);
  /// A tensor of `sizes` that holds `tensor` from `offsets` on and `scalar` around it.
  Tensor surround(const Tensor &tensor, mlir::Value scalar, llvm::ArrayRef<Size> offsets,
                  llvm::ArrayRef<Size> sizes);
  Tensor view(const Tensor &tensor, llvm::ArrayRef<Size> sizes, llvm::ArrayRef<ViewGroup> groups);

private:
  mlir::Value valueOf(const Size::Factor &factor);
  Tensor generic(const Tensor &init, mlir::AffineMap initMap,
                 llvm::ArrayRef<mlir::utils::IteratorType> iterators,
                 llvm::ArrayRef<Operand> operands, llvm::ArrayRef<Size> domain,
                 llvm::function_ref<mlir::Value(mlir::ValueRange operands, mlir::Value init)> body);
  Tensor extract(const Tensor &tensor, int64_t dim, const Size &offset, const Size &size,
                 int64_t step, llvm::ArrayRef<Size> result);

  llvm::StringMap<std::pair<mlir::Value, int64_t>> symbols;
  llvm::StringMap<mlir::Value> symbolValues;
  std::vector<std::pair<Size, int64_t>> assumed;
};

} // namespace attn::graph

#endif // ATTN_FRONTEND_GRAPH_TENSORBUILDER_H
