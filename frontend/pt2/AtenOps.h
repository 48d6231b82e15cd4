//===- AtenOps.h - import aten ops as linalg ops -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_ATENOPS_H
#define ATTN_FRONTEND_PT2_ATENOPS_H

#include "frontend/pt2/Call.h"

#include <functional>
#include <map>

namespace attn::pt2 {

/// One overload of an aten op.
struct AtenOp {
  std::function<mlir::LogicalResult(Call &)> import;
  /// The rejected uses of the op that docs/ops.md lists; may be empty.
  std::string limits;
  /// The importer for complex arguments or results; null if these are rejected.
  std::function<mlir::LogicalResult(Call &)> importComplex = nullptr;
};

/// All ops that attn imports, by name and overload, such as "add.Tensor". An op that works in place, such as
/// "add_.Tensor" or "__iand__.Tensor", is imported as the op without the underscore or the "i", and its result replaces
/// the first argument. "view_copy.default" is imported as the op without "_copy", and its result shares no elements
/// with its argument.
class AtenOps {
public:
  static const AtenOps &all();

  /// The op of a target such as "torch.ops.aten.add.Tensor" or, for sizes, "_operator.add"; null if attn does not
  /// import the op.
  const AtenOp *find(llvm::StringRef target) const;

  void add(llvm::StringRef name, std::function<mlir::LogicalResult(Call &)> import,
           llvm::StringRef limits = "") {
    ops[name.str()] = {std::move(import), limits.str(), nullptr};
  }

  /// Lets op `name` have complex arguments or results.
  void addComplexForm(llvm::StringRef name, std::function<mlir::LogicalResult(Call &)> import) {
    ops[name.str()].importComplex = std::move(import);
  }

  const std::map<std::string, AtenOp> &table() const { return ops; }

private:
  std::map<std::string, AtenOp> ops;
};

/// Whether `target` changes its first argument, as "torch.ops.aten.add_.Tensor" does.
bool worksInPlace(llvm::StringRef target);

/// Whether `target` copies elements where the op without "_copy" returns a view, as "torch.ops.aten.view_copy.default"
/// does.
bool copiesView(llvm::StringRef target);

// Each function is defined in a file of its own.
void addArithmetic(AtenOps &ops);
void addAssertions(AtenOps &ops);
void addAttention(AtenOps &ops);
void addComplex(AtenOps &ops);
void addConvolution(AtenOps &ops);
void addCreation(AtenOps &ops);
void addFunctions(AtenOps &ops);
void addGridSampler(AtenOps &ops);
void addGroups(AtenOps &ops);
void addIndexing(AtenOps &ops);
void addJoins(AtenOps &ops);
void addLinearAlgebra(AtenOps &ops);
void addNormalisation(AtenOps &ops);
void addOrder(AtenOps &ops);
void addPooling(AtenOps &ops);
void addRecurrent(AtenOps &ops);
void addReductions(AtenOps &ops);
void addSizes(AtenOps &ops);
void addParts(AtenOps &ops);
void addViews(AtenOps &ops);

/// A tensor with a new last dimension, which contains the pairs (real, imaginary).
Tensor pairOf(TensorBuilder &b, const Tensor &real, const Tensor &imaginary);

/// The type to which torch promotes two tensors. If exactly one of them has rank 0, its type counts only if its kind is
/// later than that of the other type, in the order booleans, integers, floats.
DType promote(const Tensor &a, const Tensor &b);

/// Reads argument `name`, which has one number for each of `count` spatial dimensions. A list of one number gives this
/// number to all dimensions. A missing or empty list is replaced by `otherwise`.
llvm::SmallVector<int64_t> perDim(Call &call, llvm::StringRef name, int64_t count,
                                  llvm::ArrayRef<int64_t> otherwise);

/// The number of windows of `reach` elements in `size` elements, where neighbouring windows start `stride` elements
/// apart. Requires that there is at least one window. Returns none if the number does not fit into 64 bits, or after an
/// error.
std::optional<Size> windowsIn(Call &call, const Size &size, int64_t reach, int64_t stride);

/// x (p..., k), W (n, k), b (n) -> x W^T + b (p..., n). Reports an error if sizes or types do not fit.
mlir::FailureOr<Tensor> createLinear(Call &call, const Tensor &x, const Tensor &weight,
                                     const std::optional<Tensor> &bias);

/// Views `tensor` as a tensor of `sizes`. Reports an error if that is not possible.
mlir::FailureOr<Tensor> viewAs(Call &call, const Tensor &tensor, llvm::ArrayRef<Size> sizes);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_ATENOPS_H
