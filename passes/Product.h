//===- Product.h - sums of products --------------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Defines which ops count as products of matrices, and creates such ops.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PRODUCT_H
#define ATTN_PASSES_PRODUCT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn {

/// Whether `op`, which may be null, adds products of the elements of two operands, floats or signed integers, to its
/// output. Both operands may be widened to the type of the output first. Upstream's test for contractions accepts more
/// ops, because it looks through any function of one element, such as a negation.
bool isProduct(mlir::Operation *op);

/// Whether `op`, which may be null, adds products of floats like a product, but reads its first operand, the image, at
/// sums of loops, such as row 2 * y + j for the output row y and the row j of the second operand, the kernel. A
/// multiple of a loop, a loop that several dimensions share, and the index 0 are such sums too.
bool isConvolution(mlir::Operation *op);

inline bool isProductOrConvolution(mlir::Operation *op) {
  return isProduct(op) || isConvolution(op);
}

/// The element types of a product: of its two inputs and of its output.
struct ProductTypes {
  static ProductTypes get(mlir::linalg::LinalgOp product);

  mlir::Type a, b, sum;
};

/// Creates an op that adds to `out` the sum of a * b over the loops that the map of `out` lacks. `maps` has the maps of
/// a, b and out. On tensors, the op has a result.
mlir::linalg::LinalgOp createProduct(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a,
                                     mlir::Value b, mlir::Value out,
                                     llvm::ArrayRef<mlir::AffineMap> maps);

/// Like createProduct(), but adds no product whose factor from `a` is 0, because 0 * NaN would be NaN. The op has the
/// attribute `attn.skips_zeros`.
mlir::linalg::LinalgOp createGuardedProduct(mlir::OpBuilder &builder, mlir::Location loc,
                                            mlir::Value a, mlir::Value b, mlir::Value out,
                                            llvm::ArrayRef<mlir::AffineMap> maps);

/// The number of elements in each group if `attn.pack` has put the inputs into groups, and 1 otherwise. Inputs are in
/// groups if the sum runs over two loops and the inner loop is the last dimension of both inputs; its size is the
/// number of elements.
int64_t getGroup(mlir::linalg::LinalgOp product);

/// Whether `op` is a product that createGuardedProduct() describes.
bool skipsZeros(mlir::Operation *op);

} // namespace attn

#endif // ATTN_PASSES_PRODUCT_H
