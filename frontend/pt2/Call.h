//===- Call.h - one node on its way to linalg --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_CALL_H
#define ATTN_FRONTEND_PT2_CALL_H

#include "frontend/graph/TensorBuilder.h"
#include "frontend/pt2/Graph.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <functional>

namespace attn::pt2 {

/// A number that an op takes beside tensors.
struct Scalar {
  bool isFloat = false;
  /// The number, of an integer too.
  double number = 0;
  int64_t integer = 0;

  /// Whether `dtype` holds the number, of which integers drop the fraction.
  bool fits(DType dtype) const {
    return !isFloat || attn::graph::isFloat(dtype) || std::abs(number) < 0x1p63;
  }
  mlir::Value in(TensorBuilder &b, DType dtype) const;
};

class Call;

/// The innermost line of the user's own code in the stack of a node.
mlir::Location locationOf(const Node &node, mlir::MLIRContext *context);

/// `base` with its part replaced by `part`, on behalf of the call that writes.
using WriteBack =
    std::function<mlir::FailureOr<Tensor>(Call &writer, const Tensor &base, const Tensor &part)>;

/// A tensor that shares its elements with another, of which it is a view.
struct View {
  std::string base;
  /// Null where the view is the base itself under another name.
  const Node *node;
  /// None where nothing can be written through the view.
  WriteBack write;
  /// Whether torch may have copied instead: then nobody knows what a write to the base leaves in the view.
  bool mayCopy = false;
  /// False once the base was written to: the node is imported anew when the view is read.
  bool isCurrent = true;
};

/// The state of an import that ops see.
struct Values {
  /// Of complex numbers, the real parts.
  llvm::StringMap<Tensor> tensors;
  /// The imaginary parts of complex tensors, which no op changes in place.
  llvm::StringMap<Tensor> imaginary;
  llvm::StringMap<Size> integers;
  /// Numbers that are computed of sizes, in float64.
  llvm::StringMap<mlir::Value> floats;
  /// Parameters and constants: no node may write to them.
  llvm::StringSet<> constants;
  /// What no op computes.
  llvm::StringSet<> skipped;
  /// In the order of the graph, so that a view comes after its base.
  std::vector<std::pair<std::string, View>> views;
  llvm::StringMap<size_t> viewIndices;
  /// The least and the greatest size of a symbol for which the graph makes sense.
  llvm::StringMap<int64_t> minimum, maximum;
  /// A size without maxima and minima that the ranges of symbols decide.
  std::function<Size(const Size &)> decided;
  /// What else must hold of the sizes of a call, as Formula reads it.
  std::vector<std::string> conditions;

  void addView(llvm::StringRef name, View view);
  /// The view that `name` is, or null.
  View *viewOf(llvm::StringRef name);

  /// `a` must be no more than `b`; false where it never is. Where only the call of the library knows, that becomes a
  /// condition on symbols.
  bool requireAtMost(const Size &a, const Size &b);
};

/// One node on its way to linalg: its arguments by the names that the op's schema gives them, and
/// its results. A missing or ill-typed argument is reported at once; an op asks failed() before it
/// looks at what it got.
class Call {
public:
  /// With `again`, the results replace those of an earlier import of the node.
  Call(const Graph &graph, const Node &node, TensorBuilder &builder, Values &values,
       bool again = false)
      : b(builder), graph(graph), node(node), values(values), again(again),
        isRead(node.inputs.size()) {}

  /// The same call, of imaginary parts where tensors are complex.
  Call ofImaginary() const {
    Call call = *this;
    call.readsImaginary = true;
    return call;
  }

  TensorBuilder &b;

  bool has(llvm::StringRef name);
  /// Whether an argument is a tensor, or a number that is known at the call of the library only.
  bool isTensor(llvm::StringRef name) const;
  /// Whether an argument is a number in the graph, known or not.
  bool isNumber(llvm::StringRef name) const;
  bool isFloat(llvm::StringRef name) const;
  bool isFlag(llvm::StringRef name) const;
  bool isString(llvm::StringRef name) const;
  /// A number that is known at the call of the library only is one of rank 0, in int64 or float64.
  Tensor tensor(llvm::StringRef name);
  /// The same with a dimension of size 1 where it has rank 0, in which torch counts one dimension; a result that should
  /// have rank 0 may then have that dimension.
  Tensor tensorWithDims(llvm::StringRef name);
  /// A number, which may be known at the call of the library only, in float64.
  mlir::Value computed(llvm::StringRef name);
  /// Whether all tensors of an argument are complex.
  bool isComplex(llvm::StringRef name) const;
  /// Whether an argument or a result is.
  bool isComplex() const;
  llvm::SmallVector<Tensor> tensors(llvm::StringRef name);
  /// The elements of a list, where None stands for no tensor.
  llvm::SmallVector<std::optional<Tensor>> optionalTensors(llvm::StringRef name);
  Size integer(llvm::StringRef name);
  /// An integer that is a number already.
  int64_t constant(llvm::StringRef name, std::optional<int64_t> otherwise = std::nullopt);
  Sizes integers(llvm::StringRef name);
  /// Integers that are numbers already; `otherwise` where there is no such argument.
  llvm::SmallVector<int64_t>
  constants(llvm::StringRef name, std::optional<llvm::ArrayRef<int64_t>> otherwise = std::nullopt);
  double number(llvm::StringRef name, std::optional<double> otherwise = std::nullopt);
  /// The numbers of a list.
  llvm::SmallVector<double> numbers(llvm::StringRef name);
  bool flag(llvm::StringRef name, bool otherwise = false);
  std::string string(llvm::StringRef name, llvm::StringRef otherwise = "");
  DType dtype(llvm::StringRef name, DType otherwise);
  Scalar scalar(llvm::StringRef name, std::optional<int64_t> otherwise = std::nullopt);
  /// A dimension of a tensor of rank `rank`, negative ones counting from the end.
  int64_t dim(llvm::StringRef name, int64_t rank, std::optional<int64_t> otherwise = std::nullopt);
  int64_t dim(int64_t dim, int64_t rank);
  /// Dimensions, in increasing order; all of them where the argument lacks or is empty.
  llvm::SmallVector<int64_t> dims(llvm::StringRef name, int64_t rank);

  /// What the file says of result `i`.
  const TensorMeta &expected(unsigned i = 0);
  unsigned numResults() const;

  /// Whether the elements of an argument lie in memory in order, without gaps.
  bool isContiguous(llvm::StringRef name);
  /// Whether torch reshapes an argument to `sizes` without a copy: true, false, or none where its strides are not known
  /// as numbers.
  std::optional<bool> reshapesInPlace(llvm::StringRef name, llvm::ArrayRef<Size> sizes);
  /// Whether the elements of an argument lie in memory as those of the result do, if the file says so.
  std::optional<bool> keepsStrides(llvm::StringRef name);
  /// Whether the first element of an argument is the first of what holds it.
  bool startsStorage(llvm::StringRef name);

  Size decided(const Size &size) const { return values.decided(size); }
  /// Reports sizes of which `a` is never at most `b`.
  void requireAtMost(const Size &a, const Size &b);
  /// A dimension of `size` must have an element `index`; none has as many as the greatest number.
  void requireElement(const Size &size, int64_t index) {
    requireAtMost(Size(std::min(index, std::numeric_limits<int64_t>::max() - 1) + 1), size);
  }

  /// Reports an error at the user's line.
  mlir::InFlightDiagnostic error();
  bool failed() const { return hasFailed; }

  /// Sets the next result, which must be what the file says it is. In place, it is converted to the type of the first
  /// argument and written there.
  mlir::LogicalResult result(const Tensor &tensor);
  mlir::LogicalResult result(const Size &size);
  /// Sets the result, a number in float64.
  mlir::LogicalResult resultNumber(mlir::Value number);
  /// Sets the next result, which is complex.
  mlir::LogicalResult result(const Tensor &real, const Tensor &imaginary);
  /// Leaves the other results, which only gradients need, without a value: a node that reads one is refused.
  mlir::LogicalResult skipResults();
  /// A result that shares its elements with argument `base`, or with an element of that list, unless torch may have
  /// copied them.
  mlir::LogicalResult resultView(llvm::StringRef base, const Tensor &tensor, WriteBack write,
                                 bool mayCopy = false, unsigned element = 0);
  /// A result that is argument `base`, `tensor`, under another name.
  mlir::LogicalResult resultSame(llvm::StringRef base, const Tensor &tensor);

  /// The module that the user wrote, as in "attn_dropout".
  llvm::StringRef module() const;
  llvm::StringRef target() const { return node.target; }

  /// Reports an argument that the op did not read: it has a meaning that attn does not know.
  mlir::LogicalResult finish();

private:
  const Argument *find(llvm::StringRef name, llvm::ArrayRef<Argument::Kind> kinds, bool isOptional);
  Size resolve(const SymInt &integer);
  Tensor lookup(llvm::StringRef name);
  llvm::StringRef nameOf(llvm::StringRef argument, unsigned element = 0) const;
  bool isKnown(const Argument &argument) const;
  void requireKnown(const Argument &argument, llvm::StringRef name);
  mlir::LogicalResult write(llvm::StringRef name, const Tensor &tensor);

  const Graph &graph;
  const Node &node;
  Values &values;
  bool again, readsImaginary = false, dropsDim = false;
  llvm::SmallVector<bool> isRead;
  unsigned numSet = 0;
  bool hasFailed = false;
};

/// Gives `name` what a write to its base left in it, where it is a view that is out of date. Reports a view of which
/// nobody knows that.
mlir::LogicalResult refresh(const Graph &graph, llvm::StringRef name, TensorBuilder &builder,
                            Values &values);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_CALL_H
