//===- Reference.h - what the ops of the dialect mean -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Implements Ops.td as loops over doubles. People read the loops as the specification, and tests compare compiled code
// with them. The loops are not fast, and round to a type of the module only where Ops.td says so. attn.parallel_for and
// attn.count_tiles have no reference, because they compute no values.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_REFERENCE_H
#define ATTN_DIALECT_REFERENCE_H

#include "dialect/Attn.h"

#include <vector>

namespace attn {

/// A row-major tensor of doubles. Scalars.h says how doubles represent elements of other types. Scalars have rank 0.
struct ReferenceTensor {
  explicit ReferenceTensor(llvm::ArrayRef<int64_t> shape = {}, double fill = 0);

  double &at(llvm::ArrayRef<int64_t> index);
  double at(llvm::ArrayRef<int64_t> index) const;
  /// The element that `map` reads at a point of an iteration space.
  double &at(mlir::AffineMap map, llvm::ArrayRef<int64_t> point);
  double at(mlir::AffineMap map, llvm::ArrayRef<int64_t> point) const;

  llvm::SmallVector<int64_t> shape;
  std::vector<double> elements;
};

/// The element of a captured operand at a point of an iteration space. The element of a packed mask is the bit of the
/// point's key.
double elementAt(const ReferenceTensor &tensor, mlir::AffineMap map, llvm::ArrayRef<int64_t> point);

/// The contents of operands and of values used in regions.
using ReferenceValues = llvm::DenseMap<mlir::Value, ReferenceTensor>;

/// One tensor for each result, or a failure if a score region has an op that the reference does not implement.
using ReferenceResults = mlir::FailureOr<llvm::SmallVector<ReferenceTensor>>;

ReferenceResults evaluate(AttentionOp op, const ReferenceValues &values);
/// Computes the exact bounds, although the op allows wider ones, and the longest run of whole steps. If a symbol varies
/// over the rows of the tile, every value between its least and its greatest value is treated as the value of some row.
ReferenceResults evaluate(KeyRangeOp op, const ReferenceValues &values);
ReferenceResults evaluate(OnlineInitOp op, const ReferenceValues &values);
ReferenceResults evaluate(OnlineStepOp op, const ReferenceValues &values);
ReferenceResults evaluate(OnlineProbabilitiesOp op, const ReferenceValues &values);
ReferenceResults evaluate(OnlineMergeOp op, const ReferenceValues &values);
ReferenceResults evaluate(OnlineFinishOp op, const ReferenceValues &values);
ReferenceResults evaluate(PackOp op, const ReferenceValues &values);
ReferenceResults evaluate(PackMaskOp op, const ReferenceValues &values);
ReferenceResults evaluate(TestMaskOp op, const ReferenceValues &values);

/// Whether a set of `kept` contains `pair`, the coordinates (batch..., q, k). `captured` are the elements of the
/// captured operands at this pair.
bool isKept(llvm::ArrayRef<KeptSet> kept, llvm::ArrayRef<int64_t> pair,
            llvm::ArrayRef<double> captured);

/// Calls `function` for every index of a tensor of shape `shape`. The last dimension varies fastest.
void forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(llvm::ArrayRef<int64_t>)> function);

/// The size of each dimension of an iteration space, from the indexing maps of operands and the shapes of the operands.
llvm::SmallVector<int64_t> loopSizes(llvm::ArrayRef<mlir::AffineMap> maps,
                                     llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes);

} // namespace attn

#endif // ATTN_DIALECT_REFERENCE_H
