//===- GroupedRows.h - rows of factors in groups -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_GROUPEDROWS_H
#define ATTN_CODEGEN_CPU_GROUPEDROWS_H

#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/MultiplyAdd.h"
#include "codegen/cpu/StridedView.h"

namespace attn {

/// A buffer (k / g, q, g) of factors for an instruction that adds groups of g products. Row k has the factors of all q.
class GroupedRows {
public:
  GroupedRows(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
              const MultiplyAdd &instruction);

  /// Rounds `rows`, vectors of sums, to factors and stores them as the group that begins with row `first`, in the lanes
  /// `columns`. There are at most g rows; the factors of missing rows are 0.
  void store(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value first, const Lanes &columns,
             mlir::ValueRange rows) const;

  int64_t getGroup() const { return instruction.group; }

private:
  StridedView view;
  const MultiplyAdd &instruction;
};

} // namespace attn

#endif // ATTN_CODEGEN_CPU_GROUPEDROWS_H
