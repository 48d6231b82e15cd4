//===- Contraction.h - contractions on buffers, in register blocks -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_CONTRACTION_H
#define ATTN_CODEGEN_CPU_CONTRACTION_H

#include "codegen/cpu/Lanes.h"
#include "dialect/Attn.h"

#include "mlir/Analysis/AliasAnalysis.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn {

/// A contraction of two f32 buffers and what its loops are for.
///
/// The lanes are n, the loop whose neighbours are adjacent in the output and in one input, the
/// vector operand; the rows of a block are m, a parallel loop of the other input, the scalar
/// operand. Every other parallel loop is a plain loop outside, every reduction one inside, so that
/// accumulators stay in registers for all of them: one for each vector of the block or, where a long
/// sum and a small block allow it, one for its even and one for its odd products.
struct Contraction {
  struct Roles {
    unsigned vectorInput; // 0 or 1: the input that has n
    unsigned n;
    std::optional<unsigned> m;
    llvm::SmallVector<unsigned> outer, reductions;
  };

  /// `op` as a contraction, or none if it is no product sum of strided f32 buffers.
  static std::optional<Contraction> match(mlir::linalg::LinalgOp op);

  /// How much of its sum goes through register blocks at once, if it is so long that it is split: its
  /// parts are then added to the output.
  std::optional<int64_t> getSplit(TargetAttr target) const;

  mlir::linalg::LinalgOp op;
  std::optional<unsigned>
      guarded;                // zeros of this input take no part, whatever the other holds there
  std::optional<Roles> roles; // none: no loop can be lanes
};

/// What the sum starts from: a scalar, or an operand read through a map over the loops of the
/// contraction, which is added last.
struct Start {
  mlir::Value value;
  mlir::AffineMap map;     // null for a scalar
  mlir::Operation *writer; // the op that stored it to the output; null for the output itself
};

/// A fill or broadcast into the output just before the contraction is where it starts, unless
/// something between them touches the output or changes what was broadcast.
Start findStart(const Contraction &contraction, mlir::AliasAnalysis &aliases);

/// The last op before `op`, in its block, that may read or write `buffer`; null if none does.
mlir::Operation *findLastAccess(mlir::Operation *op, mlir::Value buffer,
                                mlir::AliasAnalysis &aliases);

/// The size of each loop: static if it is so in any operand.
llvm::SmallVector<mlir::OpFoldResult> getLoopSizes(mlir::OpBuilder &builder,
                                                   mlir::linalg::LinalgOp op);

/// What is stored of accumulators.
class Epilogue {
public:
  virtual ~Epilogue() = default;

  /// Called before the first row of a block of columns. Returns what is carried down the rows.
  virtual llvm::SmallVector<mlir::Value> begin(mlir::OpBuilder &builder,
                                               llvm::ArrayRef<Lanes> columns) = 0;
  /// Called in every iteration of the loop that sums the products of `rows` up, where its length is known: `steps` of
  /// `length` steps from `step` on. Emits what is to be under way meanwhile.
  virtual void overlap(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Value> rows, mlir::Value step,
                       int64_t steps, int64_t length) {}
  /// Stores `value` where accumulator number `accumulator`, row by row, belongs.
  using Store =
      llvm::function_ref<void(mlir::OpBuilder &builder, size_t accumulator, mlir::Value value)>;
  /// Stores what becomes of `sums`, the accumulators of `rows`: each once on every path, as soon as it is known,
  /// so that its register is free. Returns what is carried on.
  virtual llvm::SmallVector<mlir::Value>
  finish(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Value> rows, llvm::ArrayRef<Lanes> columns,
         mlir::ValueRange sums, mlir::ValueRange carried, Store store) = 0;
  /// Called after the last row.
  virtual void end(mlir::OpBuilder &builder, llvm::ArrayRef<Lanes> columns,
                   mlir::ValueRange carried) = 0;
};

/// Emits `contraction`, which has roles, as loops over register blocks that fit `target`.
void createContraction(mlir::OpBuilder &builder, const Contraction &contraction, const Start &start,
                       TargetAttr target, Epilogue *epilogue = nullptr);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_CONTRACTION_H
