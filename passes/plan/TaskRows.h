//===- TaskRows.h - how many rows a task has ---------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_TASKROWS_H
#define ATTN_PASSES_PLAN_TASKROWS_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace attn {

/// The number of rows of a task of a product, if they take at most half of L2.
inline constexpr int64_t kRowsOfProduct = 96;

/// The number of rows of a task: about `wanted` of `all` rows, in whole register blocks of `height` rows, chosen such
/// that the last task does not have only a few rows. For example, 197 rows become tasks of 102 and 95 rows instead of
/// 96, 96 and 5. If `all` is unknown, a task has `wanted` rows.
inline int64_t divideRows(int64_t all, int64_t wanted, int64_t height) {
  if (mlir::ShapedType::isDynamic(all))
    return wanted;
  int64_t numTasks = std::max<int64_t>(1, (all + wanted / 2) / wanted);
  if (numTasks == 1)
    return std::max<int64_t>(1, all);
  return llvm::alignTo(llvm::divideCeil(all, numTasks), height);
}

} // namespace attn

#endif // ATTN_PASSES_PLAN_TASKROWS_H
