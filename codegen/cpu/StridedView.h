//===- StridedView.h - an operand as one row of elements ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_STRIDEDVIEW_H
#define ATTN_CODEGEN_CPU_STRIDEDVIEW_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace attn {

/// The stride of each loop in an operand of `type` that is read through `map`: 0 for a loop that the
/// operand lacks, kDynamic if unknown. Fails unless the type is strided and each result of the map is a sum of loops
/// with constant factors.
llvm::FailureOr<llvm::SmallVector<int64_t>> getLoopStrides(mlir::MemRefType type,
                                                           mlir::AffineMap map);

/// An operand as one row of elements. The index of an element is the sum, over all loops, of the loop index times the
/// stride. The same code therefore serves all layouts, orders of dimensions and unit dimensions, and LLVM folds the
/// address arithmetic.
struct StridedView {
  mlir::Value row; // memref<?xT, strided<[1]>>; its first element has index 0 in every loop
  llvm::SmallVector<mlir::Value> strides; // of each loop; null for a loop that the operand lacks

  /// The view of `memref` read through `map`, for which getLoopStrides() succeeds.
  static StridedView create(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memref,
                            mlir::AffineMap map);

  mlir::Type getElementType() const {
    return mlir::cast<mlir::MemRefType>(row.getType()).getElementType();
  }

  /// `index` moved by `count` along `loop`.
  mlir::Value advance(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value index,
                      unsigned loop, mlir::Value count) const;
};

} // namespace attn

#endif // ATTN_CODEGEN_CPU_STRIDEDVIEW_H
