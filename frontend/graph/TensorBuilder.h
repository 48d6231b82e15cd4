//===- TensorBuilder.h - tensors of symbolic size in linalg ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_GRAPH_TENSORBUILDER_H
#define ATTN_FRONTEND_GRAPH_TENSORBUILDER_H

#include "frontend/graph/DType.h"
#include "frontend/graph/ViewGroups.h"

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

/// An operand of a scalar computation: a tensor whose elements are converted to `as`. `map` computes the index of an
/// element from the indices of the loops. Without a map, the tensor is broadcast as in torch.
struct Operand {
  Tensor tensor;
  DType as;
  mlir::AffineMap map = {};
};

/// Builds ops of the stage `import`: linalg, tensor and arith ops on tensors. It does not depend on aten ops. Callers
/// must check ranks and sizes first.
class TensorBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using mlir::ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  using Body = llvm::function_ref<mlir::Value(mlir::ValueRange)>;

  /// Binds symbol `name` to dimension `dim` of `argument`, a function argument.
  void bindSymbol(llvm::StringRef name, mlir::Value argument, int64_t dim);
  bool isBound(llvm::StringRef symbol) const { return symbols.contains(symbol); }
  /// The assumptions of the code that sizeOf() created: sizes, and the least value that the code allows for each.
  llvm::ArrayRef<std::pair<Size, int64_t>> assumptions() const { return assumed; }

  mlir::RankedTensorType typeOf(llvm::ArrayRef<Size> sizes, DType dtype);
  /// Computes a size from dimensions of function arguments. Never creates a tensor.dim of the result of another op,
  /// because this use would keep that op alive after fusion into its consumers.
  mlir::OpFoldResult sizeOf(const Size &size);
  /// Returns the size from which sizeOf() created `value`. If `value` is a constant, returns this constant. Returns
  /// none for any other value.
  std::optional<Size> findSize(mlir::OpFoldResult value) const;
  mlir::Value indexOf(const Size &size);
  llvm::SmallVector<mlir::OpFoldResult> sizesOf(llvm::ArrayRef<Size> sizes);

  /// A size as an int64 tensor of rank 0, so that ops that read it are fused like ops on any tensor.
  Tensor number(const Size &size);

  /// A constant: `number`, rounded to the nearest value of `dtype`. A boolean is true if `number` is not 0.
  mlir::Value scalar(DType dtype, double number);
  mlir::Value scalar(DType dtype, int64_t number);
  /// Converts `value` from type `from` to type `to`. Floats become integers by rounding towards 0; a number becomes the
  /// boolean true if it is not 0.
  mlir::Value convert(mlir::Value value, DType from, DType to);
  /// Whether torch converts `from` to `to` implicitly. It does so if both are of the same kind, or if the kind of `to`
  /// is later in the order booleans, integers, floats.
  static bool converts(DType from, DType to);
  /// Whether a scalar is not 0; true for NaN.
  mlir::Value isNonzero(mlir::Value value);

  Tensor empty(llvm::ArrayRef<Size> sizes, DType dtype);
  Tensor fill(llvm::ArrayRef<Size> sizes, mlir::Value scalar, DType dtype);
  Tensor fill(llvm::ArrayRef<Size> sizes, DType dtype, int64_t number);

  /// The sizes to which torch broadcasts operands; none if their sizes do not match.
  static std::optional<Sizes> broadcast(llvm::ArrayRef<Sizes> operands);
  /// The map by which a tensor of `sizes` is read when it is broadcast to `result`: the last dimensions of both are
  /// aligned, and dimensions of size 1 are read at index 0.
  mlir::AffineMap broadcastMap(llvm::ArrayRef<Size> sizes, llvm::ArrayRef<Size> result);

  /// result[i...] = body(operands...). The body returns a value of `dtype` or of computeType(dtype).
  Tensor elementwise(llvm::ArrayRef<Size> sizes, DType dtype, llvm::ArrayRef<Operand> operands,
                     Body body);
  Tensor castTo(const Tensor &tensor, DType dtype);
  /// Repeats `tensor` along the dimensions in which it has size 1, or which it lacks.
  Tensor broadcastTo(const Tensor &tensor, llvm::ArrayRef<Size> sizes);
  /// result[kept...] = start, combined with body(operands...) for each index of the `reduced` dimensions.
  using Combine = llvm::function_ref<mlir::Value(mlir::Value sofar, mlir::Value element)>;
  Tensor reduce(llvm::ArrayRef<Size> sizes, llvm::ArrayRef<int64_t> reduced, mlir::Value start,
                DType dtype, llvm::ArrayRef<Operand> operands, Body body, Combine combine);
  /// result[kept...] = sum of body(operands...) over the `reduced` dimensions. More than 4096 elements of f32 are added
  /// in f64, because the rounding errors of so many f32 additions add up. An unknown size counts as 1.
  Tensor sum(llvm::ArrayRef<Size> sizes, llvm::ArrayRef<int64_t> reduced, DType dtype,
             llvm::ArrayRef<Operand> operands, Body body);
  /// Like the other sum(), but reduces all dimensions of `sizes` after the first `numKept`.
  Tensor sum(llvm::ArrayRef<Size> sizes, int64_t numKept, DType dtype,
             llvm::ArrayRef<Operand> operands, Body body) {
    return sum(sizes, llvm::to_vector(llvm::seq<int64_t>(numKept, sizes.size())), dtype, operands,
               body);
  }
  /// The sum of a * b, accumulated in computeType() of their dtype. The maps are the indexing maps of linalg.contract.
  Tensor contract(llvm::ArrayRef<Size> sizes, const Tensor &a, const Tensor &b, mlir::AffineMap ofA,
                  mlir::AffineMap ofB, mlir::AffineMap ofResult);

  /// The tensor with its dimensions in another order: a reshape if only dimensions of size 1 move.
  Tensor transpose(const Tensor &tensor, llvm::ArrayRef<int64_t> permutation);
  Tensor slice(const Tensor &tensor, int64_t dim, const Size &offset, const Size &size,
               int64_t step = 1);
  /// The elements at `index` of dimension `dim`, without this dimension.
  Tensor select(const Tensor &tensor, int64_t dim, const Size &index);
  /// `tensor`, in which `part` replaces the elements at offset, offset + step, ... of dimension `dim`. If `isDropped`,
  /// the part lacks this dimension.
  Tensor insert(const Tensor &tensor, const Tensor &part, int64_t dim, const Size &offset,
                int64_t step, bool isDropped);
  Tensor concat(llvm::ArrayRef<Tensor> tensors, int64_t dim, llvm::ArrayRef<Size> sizes);
  /// A tensor of `sizes` with `tensor` at `offsets` and `scalar` around it. With `steps`, one for each dimension,
  /// neighbouring elements of `tensor` are that far apart, and `scalar` is between them too.
  Tensor surround(const Tensor &tensor, mlir::Value scalar, llvm::ArrayRef<Size> offsets,
                  llvm::ArrayRef<Size> sizes, llvm::ArrayRef<int64_t> steps = {});
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
  llvm::DenseMap<mlir::Value, Size> created;
};

} // namespace attn::graph

#endif // ATTN_FRONTEND_GRAPH_TENSORBUILDER_H
