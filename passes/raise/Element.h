//===- Element.h - how an element of a tensor is computed ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Reads a graph of elementwise ops as one scalar expression: an operand of an op in the body of one linalg.generic
// may be computed in the body of another.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_ELEMENT_H
#define ATTN_PASSES_RAISE_ELEMENT_H

#include "passes/Access.h"

namespace attn {

/// One element of a tensor: either the result of a scalar op, or an element that is read from a tensor which no
/// elementwise op computes.
class Element {
public:
  /// The element of `access.tensor` at `access.map`. Looks through reshapes that add or drop unit dimensions, and
  /// through slices of tensors that scalar ops compute.
  static Element at(Access access);

  /// The element of `tensor` whose index in each dimension i is coordinate i.
  static Element of(mlir::Value tensor);

  /// The scalar op that computes the element, or null.
  mlir::Operation *getOp() const { return op; }

  /// Operand `i` of the op as an element.
  Element getOperand(unsigned i) const {
    Element operand = resolve(op->getOperand(i), body, loops);
    operand.isOfSlice |= isOfSlice;
    return operand;
  }

  /// The coordinate that the op returns if it is a linalg.index, as an expression of the dimensions of the map at which
  /// the element was read; null for any other op.
  mlir::AffineExpr getCoordinate() const;

  /// Where the element is read; the tensor is null if an op computes the element.
  const Access &getRead() const { return read; }

  /// Whether the element was reached through a slice: its tensor may be longer than the tensor given to `at`.
  bool isInSlice() const { return isOfSlice; }

  /// The value of the element if it is a constant, else null.
  mlir::Attribute getConstant() const;

  /// Whether both elements are results of the same op at the same coordinates, or are read in the same place.
  bool operator==(const Element &other) const {
    return op == other.op && loops == other.loops && read.tensor == other.read.tensor &&
           read.map == other.read.map;
  }

  /// The value `scalar` of the region of `body` where the loops have the coordinates `loops`. Values that the region uses
  /// and that are defined outside of it must be constants.
  static Element resolve(mlir::Value scalar, mlir::linalg::LinalgOp body, mlir::AffineMap loops);

private:
  Access read;
  mlir::Operation *op = nullptr;
  mlir::linalg::LinalgOp body; // whose region holds `op`
  mlir::AffineMap loops;       // coordinates of the loops of `body`
  bool isOfSlice = false;
};

/// A reduction along dimension `dim` of `input`, whose dimensions are the coordinates. `combiner` combines `element`, an
/// element of `input` or a scalar that is computed from it, with the result of the elements before it.
struct RowReduction {
  mlir::Value input;
  unsigned dim;
  mlir::Operation *combiner;
  Element element;
};

/// The reduction whose result `element` reads; none if the reduction does not start from the neutral element of its
/// combiner, or if the result is not read at the coordinates of the input without the reduced coordinate.
std::optional<RowReduction> matchRowReduction(const Element &element);

} // namespace attn

#endif // ATTN_PASSES_RAISE_ELEMENT_H
