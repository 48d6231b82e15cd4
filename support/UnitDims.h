//===- UnitDims.h - reshapes that drop dimensions of size 1 ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_UNITDIMS_H
#define ATTN_SUPPORT_UNITDIMS_H

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/ADT/SmallBitVector.h"

namespace attn {

/// Returns the groups of dimensions of a reshape that drops the dimensions `dropped`, which have size 1. Each group has
/// one dimension that is kept, behind the dropped ones before it; the last group also has the dropped ones at the end.
inline llvm::SmallVector<mlir::ReassociationIndices>
groupsWithout(const llvm::SmallBitVector &dropped) {
  llvm::SmallVector<mlir::ReassociationIndices> groups;
  mlir::ReassociationIndices group;
  for (unsigned dim = 0; dim < dropped.size(); ++dim) {
    group.push_back(dim);
    if (dropped[dim])
      continue;
    groups.push_back(std::move(group));
    group.clear();
  }
  if (!groups.empty())
    llvm::append_range(groups.back(), group);
  return groups;
}

} // namespace attn

#endif // ATTN_SUPPORT_UNITDIMS_H
