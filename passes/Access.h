//===- Access.h - which element of a tensor is read ---------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Traces one element at a time backwards through a graph: from coordinates of a result to coordinates of the operands.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_ACCESS_H
#define ATTN_PASSES_ACCESS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn {

/// A tensor, and the place where it is read: `map` has one result for each dimension of the tensor, usually a
/// coordinate of an iteration space or 0.
struct Access {
  mlir::Value tensor;
  mlir::AffineMap map;

  bool names(unsigned dim) const { return map.isFunctionOfDim(dim); }
};

/// Whether each element of a result of `op` is a scalar function of coordinates and of one element of each operand.
bool isScalarFunction(mlir::linalg::LinalgOp op);

/// Whether `op` rounds each element of its input to a narrower float type, and does nothing else.
bool isRounding(mlir::linalg::LinalgOp op);

/// Creates an op that converts each element of `source` to the element type of `init`, which has the same sizes.
mlir::Value createConverted(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source,
                            mlir::Value init);

/// Whether `a` and `b` are proved to have the same sizes.
bool haveEqualSizes(mlir::Value a, mlir::Value b);

/// Whether `op` has one input and only moves its elements, as a transposition, a broadcast or a copy does.
bool isCopy(mlir::linalg::LinalgOp op);

/// The loop coordinates at which `op` computes the element of `result` that is read at `map`.
mlir::AffineMap loopsAt(mlir::linalg::LinalgOp op, mlir::OpResult result, mlir::AffineMap map);

/// If `access` reads a reshape that only adds or drops dimensions of size 1, returns the access to the source of the
/// reshape; otherwise none.
std::optional<Access> readThroughUnitReshape(Access access);

/// If `access` reads a view, returns the access to the source of the view; otherwise none. Views are transpositions,
/// broadcasts, copies, and reshapes that only add or drop dimensions of size 1.
std::optional<Access> readThroughView(Access access);

/// Looks through views and returns the access to the source of the broadcast that comes first in the graph; returns
/// `access` if there is no broadcast.
Access withoutBroadcasts(Access access);

/// Looks through views and returns the access to the last tensor in the graph that has as many dimensions of the
/// iteration space as the tensor of `access`, in the order of the iteration space; returns `access` if there is no such
/// tensor. For a key that is transposed for a product, this tensor is the key before the transposition.
Access inOrder(Access access);

} // namespace attn

#endif // ATTN_PASSES_ACCESS_H
