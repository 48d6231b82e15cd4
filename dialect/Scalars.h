//===- Scalars.h - what scalar ops compute ----------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Evaluates on doubles the arith, math and affine ops of score regions, of linalg bodies and of sizes. A double
// represents a float of any type, and is not rounded to this type. A double also represents the integer or index of the
// same value; 0 and 1 represent booleans. Integers beyond 2^53 are not exact.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_SCALARS_H
#define ATTN_DIALECT_SCALARS_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Operation.h"

#include <functional>

namespace attn {

/// The result of an op as a function of its operands.
using ScalarFunction = std::function<double(llvm::ArrayRef<double> operands)>;

/// The function that `op` computes, or null if the reference does not implement the op.
ScalarFunction getScalarFunction(mlir::Operation *op);

/// The value of an integer or float attribute.
double toDouble(mlir::Attribute number);

/// The value of an affine expression.
int64_t evaluate(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> dims,
                 llvm::ArrayRef<int64_t> symbols = {});

/// Reports that the reference does not implement `op`.
mlir::LogicalResult reportUnknown(mlir::Operation *op);

/// A block of scalar ops, prepared once to run for many elements.
class ScalarBlock {
public:
  /// `outer` returns the values that the block uses and does not define. `numLoops` is the number of coordinates that
  /// the linalg.index ops of the block can read. `tensor` returns each tensor that a tensor.extract of the block reads,
  /// as a function of coordinates; it is null if the block computes on scalars alone.
  static mlir::FailureOr<ScalarBlock>
  get(mlir::Block &block, unsigned numLoops, llvm::function_ref<double(mlir::Value)> outer,
      llvm::function_ref<ScalarFunction(mlir::Value)> tensor = nullptr);

  /// Returns the values that the terminator yields; `inputs` are the block's arguments, then the coordinates.
  llvm::SmallVector<double> operator()(llvm::ArrayRef<double> inputs);

private:
  struct Step {
    ScalarFunction compute;
    llvm::SmallVector<unsigned> operands;
    unsigned result;
  };

  /// The values of the block. Steps refer to them by position.
  std::vector<double> values;
  std::vector<Step> steps;
  llvm::SmallVector<unsigned> yielded;
};

} // namespace attn

#endif // ATTN_DIALECT_SCALARS_H
