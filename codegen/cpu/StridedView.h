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

/// The distance in memory between neighbours along each loop of an operand of `type` read through
/// `map`: 0 for a loop that it lacks, kDynamic where unknown. Fails unless the type is strided and
/// the map is a projected permutation.
llvm::FailureOr<llvm::SmallVector<int64_t>> getLoopStrides(mlir::MemRefType type,
                                                           mlir::AffineMap map);

/// An operand seen as one row of elements whose indices are sums of loop index times stride. Any
/// layout, order of dimensions and unit dimension is then the same case, and addresses are
/// arithmetic that LLVM folds.
struct StridedView {
  mlir::Value row; // memref<?xT, strided<[1]>>, its first element that of index 0 in every loop
  llvm::SmallVector<mlir::Value> strides; // of each loop; null for a loop that the operand lacks

  /// The view of `memref` read through `map`, for which getLoopStrides() succeeds.
  static StridedView create(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memref,
                            mlir::AffineMap map);

  /// `index` moved by `count` along `loop`.
  mlir::Value advance(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value index,
                      unsigned loop, mlir::Value count) const;
};

} // namespace attn

#endif // ATTN_CODEGEN_CPU_STRIDEDVIEW_H
