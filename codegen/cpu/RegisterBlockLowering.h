//===- RegisterBlockLowering.h - contractions in register blocks -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_REGISTERBLOCKLOWERING_H
#define ATTN_CODEGEN_CPU_REGISTERBLOCKLOWERING_H

#include "codegen/cpu/Contraction.h"

namespace attn {

/// Turns the accumulators of register blocks into the values to store.
class Epilogue {
public:
  virtual ~Epilogue() = default;

  /// Called before the first row of a block of columns. Returns the values that the loops over rows carry.
  virtual llvm::SmallVector<mlir::Value> begin(mlir::OpBuilder &builder,
                                               llvm::ArrayRef<Lanes> columns) = 0;
  /// Called for the body of the loop that sums up the products of `rows`, if the trip count is known. An iteration does
  /// `steps` of the `length` steps of the sum, starting at `step`. Emits work that overlaps with these steps, such as
  /// prefetches.
  virtual void overlap(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Value> rows, mlir::Value step,
                       int64_t steps, int64_t length) {}
  /// Stores `value` at the output position of accumulator number `accumulator`, counted row by row.
  using Store =
      llvm::function_ref<void(mlir::OpBuilder &builder, size_t accumulator, mlir::Value value)>;
  /// Computes and stores the results of `sums`, the accumulators of `rows`. Stores each result exactly once on every
  /// path, and as soon as it is known, so that its register becomes free. Returns the carried values.
  virtual llvm::SmallVector<mlir::Value>
  finish(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Value> rows, llvm::ArrayRef<Lanes> columns,
         mlir::ValueRange sums, mlir::ValueRange carried, Store store) = 0;
  /// Called after the last row.
  virtual void end(mlir::OpBuilder &builder, llvm::ArrayRef<Lanes> columns,
                   mlir::ValueRange carried) = 0;
};

/// Emits `contraction` as loops over register blocks that fit the registers of `cpu`. `contraction.roles` must be set.
void createContraction(mlir::OpBuilder &builder, const Contraction &contraction, const Start &start,
                       CpuAttr cpu, Epilogue *epilogue = nullptr);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_REGISTERBLOCKLOWERING_H
