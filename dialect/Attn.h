//===- Attn.h - the attn dialect ---------------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_H
#define ATTN_DIALECT_ATTN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "dialect/Enums.h.inc"

namespace attn {

/// A test that no integer set can state: element `capture` of the op's captured operands is nonzero
/// (or zero).
struct DenseTest {
  unsigned capture;
  Polarity keeps;
};

/// Pairs that are kept: the points of `pairs` over (batch..., q, k) whose dense tests all hold.
/// Symbol i of the set is the element of captured operand `symbols[i]` at the point.
struct KeptSet {
  mlir::IntegerSet pairs;
  llvm::SmallVector<unsigned> symbols;
  llvm::SmallVector<DenseTest> tests;

  /// Every pair, as the one constraint that an integer set needs.
  static KeptSet always(mlir::MLIRContext *context, unsigned numBatch);
};

} // namespace attn

#include "dialect/MaskInterface.h.inc"

#include "dialect/Dialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/Attributes.h.inc"

#define GET_OP_CLASSES
#include "dialect/Ops.h.inc"

namespace attn {

/// Makes one-shot-bufferize know the destination-style ops of this dialect.
void registerBufferization(mlir::DialectRegistry &registry);

/// The machine that `op` is compiled for: `attn.target` of the closest module that has one, or
/// null.
TargetAttr getTarget(mlir::Operation *op);

/// The symbol of an argument's dimension that is provably as large as dimension `axis` of `value`,
/// or null.
mlir::StringAttr symbolOf(mlir::FunctionOpInterface function, mlir::Value value, int64_t axis);

/// Dimension `dim` of `value` as stated by the inits and slices it comes from, never as a
/// tensor.dim of a producer: a use of the producer would keep it alive, whole, beside the copy that
/// fusion makes.
mlir::OpFoldResult dimOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                         int64_t dim);

/// Remembers in the location of `op` that what its attribute `part` says was written at `from`.
void addLocation(mlir::Operation *op, mlir::StringAttr part, mlir::Location from);

/// Where what attribute `part` says was written: where `op` was, unless something is remembered.
mlir::Location locationOf(mlir::Operation *op, mlir::StringAttr part);

/// Whether an element of a dense mask, or each of a vector of them, keeps its pair. NaN is nonzero.
mlir::Value createDenseTest(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value element,
                            Polarity keeps);

/// The number of the result whose elements a call leaves in argument `number`, or none if that is not in-out.
std::optional<unsigned> getInOutResult(mlir::FunctionOpInterface function, unsigned number);

/// The in-out argument that result `number` is written to, if there is one.
std::optional<unsigned> getInOutArgument(mlir::FunctionOpInterface function, unsigned number);

/// Reports an error at `file` if `module` says that another stage than `stage` left it.
mlir::LogicalResult verifyStage(mlir::ModuleOp module, mlir::StringRef stage, mlir::Location file);

/// Reports an error if queries, keys, values, sums or outputs of `op` are of another type than f32,
/// the only one that is compiled.
mlir::LogicalResult verifyF32(AttentionOp op);

/// Patterns that make constant sizes of a part of a tensor static and know which of its dimensions the part drops.
void populateFoldPartSizes(mlir::RewritePatternSet &patterns);

/// The constant c for which `op` computes c * value, if it does.
std::optional<double> constantFactor(mlir::Operation *op, mlir::Value value);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_H
