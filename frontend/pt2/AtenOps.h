//===- AtenOps.h - what each aten op means in linalg -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_ATENOPS_H
#define ATTN_FRONTEND_PT2_ATENOPS_H

#include "frontend/graph/TensorBuilder.h"
#include "frontend/pt2/Graph.h"

#include "mlir/IR/Diagnostics.h"

namespace attn::pt2 {

/// A number that an op takes beside tensors.
struct Scalar {
  bool isFloat = false;
  double number = 0;
  int64_t integer = 0;
};

/// The state of an import that ops see.
struct Values {
  llvm::StringMap<Tensor> tensors;
  llvm::StringMap<Size> integers;
  /// Least size of a symbol for which the graph makes sense; the ops raise it.
  llvm::StringMap<int64_t> minimum;
};

/// One node on its way to linalg: its arguments by the names that the op's schema gives them, and
/// its results. A missing or ill-typed argument is reported at once; an op asks failed() before it
/// looks at what it got.
class Call {
public:
  Call(const Program &program, const Node &node, TensorBuilder &builder, Values &values)
      : b(builder), program(program), node(node), values(values), isRead(node.inputs.size()) {}

  TensorBuilder &b;

  bool has(llvm::StringRef name);
  bool isTensor(llvm::StringRef name) const;
  Tensor tensor(llvm::StringRef name);
  llvm::SmallVector<Tensor> tensors(llvm::StringRef name);
  Size integer(llvm::StringRef name);
  /// An integer that is a number already.
  int64_t constant(llvm::StringRef name, std::optional<int64_t> otherwise = std::nullopt);
  Sizes integers(llvm::StringRef name);
  double number(llvm::StringRef name, std::optional<double> otherwise = std::nullopt);
  bool flag(llvm::StringRef name, bool otherwise = false);
  DType dtype(llvm::StringRef name, DType otherwise);
  Scalar scalar(llvm::StringRef name, std::optional<int64_t> otherwise = std::nullopt);
  /// A dimension of a tensor of rank `rank`, negative ones counting from the end.
  int64_t dim(llvm::StringRef name, int64_t rank, std::optional<int64_t> otherwise = std::nullopt);
  int64_t dim(int64_t dim, int64_t rank);

  /// What the file says of result `i`.
  const TensorMeta &expected(unsigned i = 0);
  unsigned numResults() const;

  /// A dimension of `size` must have an element `index`; where only the call knows, that becomes a
  /// condition on it.
  void requireElement(const Size &size, int64_t index);

  /// Reports an error at the user's line.
  mlir::InFlightDiagnostic error();
  bool failed() const { return hasFailed; }

  /// Sets the next result, which must be what the file says it is.
  mlir::LogicalResult result(const Tensor &tensor);
  mlir::LogicalResult result(const Size &size);

  /// The module that the user wrote, as in "attn_dropout".
  llvm::StringRef module() const;

  /// Reports an argument that the op did not read: it has a meaning that attn does not know.
  mlir::LogicalResult finish();

private:
  const Argument *find(llvm::StringRef name, llvm::ArrayRef<Argument::Kind> kinds, bool isOptional);
  Size resolve(const SymInt &integer);
  Tensor lookup(llvm::StringRef name);

  const Program &program;
  const Node &node;
  Values &values;
  llvm::SmallVector<bool> isRead;
  unsigned numSet = 0;
  bool hasFailed = false;
};

using AtenOp = mlir::LogicalResult (*)(Call &);
using AtenOps = llvm::StringMap<AtenOp>;

/// Every op that attn knows, by its target in the file.
const AtenOps &atenOps();

// One file each.
void addLinearAlgebra(AtenOps &ops);
void addViews(AtenOps &ops);
void addElementwise(AtenOps &ops);
void addReductions(AtenOps &ops);
void addAttention(AtenOps &ops);

/// The type in which torch combines two tensors. One of rank 0 counts only if its kind of number is
/// a higher one.
DType promote(const Tensor &a, const Tensor &b);

/// The view of `tensor` as `sizes`, or an error.
mlir::FailureOr<Tensor> viewAs(Call &call, const Tensor &tensor, llvm::ArrayRef<Size> sizes);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_ATENOPS_H
