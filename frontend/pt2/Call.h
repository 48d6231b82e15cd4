//===- Call.h - a node of the graph that is imported -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_CALL_H
#define ATTN_FRONTEND_PT2_CALL_H

#include "frontend/checks/SizeFacts.h"
#include "frontend/graph/TensorBuilder.h"
#include "frontend/pt2/Graph.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <functional>

namespace attn::pt2 {

/// A number that is an argument of an op.
struct Scalar {
  bool isFloat = false;
  /// The number as a float, also if it is an integer.
  double number = 0;
  int64_t integer = 0;

  /// Whether the number can be converted to `dtype`. Integer types drop the fraction.
  bool fits(DType dtype) const {
    return !isFloat || attn::graph::isFloat(dtype) || std::abs(number) < 0x1p63;
  }
  mlir::Value in(TensorBuilder &b, DType dtype) const;
};

class Call;

/// The innermost line of the user's own code in the stack trace of a node.
mlir::Location locationOf(const Node &node, mlir::MLIRContext *context);

/// Returns `base`, in which `part` replaces the elements of a view. `writer` is the call that writes to the view.
using WriteBack =
    std::function<mlir::FailureOr<Tensor>(Call &writer, const Tensor &base, const Tensor &part)>;

/// A tensor that shares its elements with another tensor, its base.
struct View {
  std::string base;
  /// Null if the view is the base itself under another name.
  const Node *node;
  /// Null if a write to the view cannot be applied to the base.
  WriteBack write;
  /// Whether torch may have copied the elements of the base. If so, the elements of the view are not known after a
  /// write to the base.
  bool mayCopy = false;
  /// False after a write to the base. The node is then imported again when the view is read.
  bool isCurrent = true;
};

/// The bounds of the elements of an argument: each of them lies in [-below, bound].
struct ElementBounds {
  Size below, bound;
};

/// The state of an import that the importers of ops read and change.
struct Values {
  /// Tensors. For a complex tensor, this is the real part.
  llvm::StringMap<Tensor> tensors;
  /// The imaginary parts of complex tensors, which no op changes in place.
  llvm::StringMap<Tensor> imaginary;
  llvm::StringMap<Size> integers;
  /// Numbers that are computed from sizes, in float64.
  llvm::StringMap<mlir::Value> floats;
  /// Parameters and constants: no node may write to them.
  llvm::StringSet<> constants;
  /// Results that are not imported, because only gradients need them.
  llvm::StringSet<> skipped;
  /// Views in the order of the graph, each after its base, and the index of each view by its name.
  std::vector<std::pair<std::string, View>> views;
  llvm::StringMap<size_t> viewIndices;
  /// What is known of the sizes of a call, in terms of the dimensions of inputs.
  SizeFacts facts;
  /// Other conditions on the sizes of a call, as text for Formula::parse.
  std::vector<std::string> conditions;
  /// The bounds of arguments that are indices, by the number of the argument.
  std::map<unsigned, ElementBounds> bounds;
  /// Tensors whose elements are positions in a dimension, such as the result of argmax, and the size of this dimension.
  llvm::DenseMap<mlir::Value, Size> positions;
  /// The least and the greatest element of the integers in argument number `argument`, if it is a weight to which the
  /// graph does not write; none otherwise.
  std::function<std::optional<std::pair<int64_t, int64_t>>(unsigned argument)> endsOfWeight;

  void addView(llvm::StringRef name, View view);
  /// The entry of `name` in `views`, or null.
  View *viewOf(llvm::StringRef name);

  /// Requires a <= b. If this inequality depends on the sizes of a call, narrows the range of a symbol or adds a
  /// condition. Returns false if the inequality never holds.
  bool requireAtMost(const Size &a, const Size &b);
};

/// A node that is imported: its arguments, by their names in the schema of the op, and its results. The functions that
/// read an argument report an error if the argument is missing or has a wrong type. The importer of an op must check
/// failed() before it uses the arguments.
class Call {
public:
  /// If `again` is true, the results replace those of an earlier import of the node.
  Call(const Graph &graph, const Node &node, TensorBuilder &builder, Values &values,
       bool again = false)
      : b(builder), graph(graph), node(node), values(values), again(again),
        isRead(node.inputs.size()) {}

  /// The same call on the imaginary parts of complex tensors.
  Call ofImaginary() const {
    Call call = *this;
    call.readsImaginary = true;
    return call;
  }

  TensorBuilder &b;

  bool has(llvm::StringRef name);
  /// Whether an argument is a tensor, or a number that is known only when the library is called.
  bool isTensor(llvm::StringRef name) const;
  /// Whether an argument is a number in the graph, known at compile time or not.
  bool isNumber(llvm::StringRef name) const;
  bool isFloat(llvm::StringRef name) const;
  bool isFlag(llvm::StringRef name) const;
  bool isString(llvm::StringRef name) const;
  /// A tensor. A number that is known only when the library is called becomes an int64 or float64 tensor of rank 0.
  Tensor tensor(llvm::StringRef name);
  /// Like tensor(), but gives a tensor of rank 0 a dimension of size 1, because torch accepts dimension 0 of a tensor
  /// of rank 0. result() then removes this dimension from a result that has rank 0 in the file.
  Tensor tensorWithDims(llvm::StringRef name);
  /// A float64 number, which may be known only when the library is called.
  mlir::Value computed(llvm::StringRef name);
  /// Whether all tensors of an argument are complex.
  bool isComplex(llvm::StringRef name) const;
  /// Whether an argument or a result is complex.
  bool isComplex() const;
  llvm::SmallVector<Tensor> tensors(llvm::StringRef name);
  /// The elements of a list. An element that is None has no tensor.
  llvm::SmallVector<std::optional<Tensor>> optionalTensors(llvm::StringRef name);
  Size integer(llvm::StringRef name);
  /// An integer that is known at compile time.
  int64_t constant(llvm::StringRef name, std::optional<int64_t> otherwise = std::nullopt);
  Sizes integers(llvm::StringRef name);
  /// Integers that are known at compile time; `otherwise` if there is no such argument.
  llvm::SmallVector<int64_t>
  constants(llvm::StringRef name, std::optional<llvm::ArrayRef<int64_t>> otherwise = std::nullopt);
  double number(llvm::StringRef name, std::optional<double> otherwise = std::nullopt);
  /// The numbers of a list.
  llvm::SmallVector<double> numbers(llvm::StringRef name);
  bool flag(llvm::StringRef name, bool otherwise = false);
  std::string string(llvm::StringRef name, llvm::StringRef otherwise = "");
  DType dtype(llvm::StringRef name, DType otherwise);
  Scalar scalar(llvm::StringRef name, std::optional<int64_t> otherwise = std::nullopt);
  /// A dimension of a tensor of rank `rank`; negative numbers count from the end.
  int64_t dim(llvm::StringRef name, int64_t rank, std::optional<int64_t> otherwise = std::nullopt);
  int64_t dim(int64_t dim, int64_t rank);
  /// Dimensions, in increasing order; all dimensions if the argument is missing or empty.
  llvm::SmallVector<int64_t> dims(llvm::StringRef name, int64_t rank);

  /// The type of result `i` in the file.
  const TensorMeta &expected(unsigned i = 0);
  unsigned numResults() const;

  /// Whether the elements of an argument are in memory in row-major order, without gaps.
  bool isContiguous(llvm::StringRef name);
  /// Whether torch reshapes an argument to `sizes` without a copy. None if this cannot be decided, for example because
  /// sizes or strides are not constant.
  std::optional<bool> reshapesInPlace(llvm::StringRef name, llvm::ArrayRef<Size> sizes);
  /// Whether an argument has the same strides as the result; none if the file lacks the strides.
  std::optional<bool> keepsStrides(llvm::StringRef name);
  /// The tensor that has all elements of the memory in which an argument lies, in their order: the argument itself, or
  /// a tensor of which it is a view. None if no such tensor is known.
  std::optional<Tensor> storageOf(llvm::StringRef name);
  /// The position of the first element of an argument in this memory.
  Size offsetOf(llvm::StringRef name);

  /// The state of the import.
  Values &state() { return values; }

  Size decided(const Size &size) const { return values.facts.decided(size); }
  /// Requires a <= b. Reports an error if this never holds.
  void requireAtMost(const Size &a, const Size &b);
  /// The sizes to which `tensors` broadcast; none if they do not. If a size is a maximum or a minimum, and one of its
  /// operands lets the tensors broadcast to the first result, calls are required to have sizes for which it is this
  /// operand.
  std::optional<Sizes> broadcast(llvm::ArrayRef<Tensor *> tensors);
  /// Requires a dimension of `size` to have an element `index`. No dimension has an element whose index is the greatest
  /// int64.
  void requireElement(const Size &size, int64_t index) {
    requireAtMost(Size(std::min(index, std::numeric_limits<int64_t>::max() - 1) + 1), size);
  }

  /// Reports an error at the user's line.
  mlir::InFlightDiagnostic error();
  bool failed() const { return hasFailed; }

  /// Sets the next result, which must have the type that the file gives. If the op works in place, the result is
  /// converted to the type of the first argument and written to that argument.
  mlir::LogicalResult result(const Tensor &tensor);
  mlir::LogicalResult result(const Size &size);
  /// Sets the result, a number in float64.
  mlir::LogicalResult resultNumber(mlir::Value number);
  /// Sets the next result, which is complex.
  mlir::LogicalResult result(const Tensor &real, const Tensor &imaginary);
  /// Leaves the remaining results without a value, because only gradients need them. A node that reads one of them is
  /// rejected.
  mlir::LogicalResult skipResults();
  /// Sets a result that shares its elements with argument `base` or, if `base` is a list, with tensor number `element`
  /// of the list. `mayCopy` says that torch may have copied the elements.
  mlir::LogicalResult resultView(llvm::StringRef base, const Tensor &tensor, WriteBack write,
                                 bool mayCopy = false, unsigned element = 0);
  /// Sets a result that is another name of argument `base`, whose value is `tensor`.
  mlir::LogicalResult resultSame(llvm::StringRef base, const Tensor &tensor);

  /// The name of the user's module that contains the node, such as "attn_dropout".
  llvm::StringRef module() const;
  llvm::StringRef target() const { return node.target; }

  /// Reports an error if the importer of the op did not read an argument, because attn then does not support this
  /// argument. Arguments that are None or that cannot change a value are exempt. Also reports an error if the number of
  /// results is wrong, or if a result should be complex and is real, or the reverse.
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

/// If `name` is a view that is out of date, imports its node again, so that the view has the present elements of its
/// base. Reports an error if the elements of the view are not known.
mlir::LogicalResult refresh(const Graph &graph, llvm::StringRef name, TensorBuilder &builder,
                            Values &values);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_CALL_H
