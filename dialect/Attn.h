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

/// A condition that an integer set cannot express: the element of captured operand `capture` is nonzero, or zero, as
/// `keeps` says.
struct DenseTest {
  unsigned capture;
  Polarity keeps;
};

/// The number of bits, one for each key, in a word of a packed mask.
inline constexpr int64_t kKeysPerWord = 32;

/// Returns the number of the result of `map` that is `k floordiv 32`, the index of the word that has the bit of key k
/// in a packed mask; none if `map` has no such result.
std::optional<unsigned> findWordOfKey(mlir::AffineMap map);

/// The type of an element that is read from `capture` through `map`; i1 if `capture` is a packed mask.
mlir::Type elementOfCapture(mlir::Value capture, mlir::AffineMap map);

/// A set of pairs of a query and a key that a mask keeps: the points of `pairs` over (batch..., q, k) for which all
/// `tests` hold. Symbol i of `pairs` is the element of captured operand `symbols[i]` at the point.
struct KeptSet {
  mlir::IntegerSet pairs;
  llvm::SmallVector<unsigned> symbols;
  llvm::SmallVector<DenseTest> tests;

  /// The set of all pairs. An integer set needs a constraint, so this set has one that always holds.
  static KeptSet always(mlir::MLIRContext *context, unsigned numBatch);
};

// TableGen copies the declarations of PartialReductionOpInterface, which name these types without `mlir::`.
using mlir::Location, mlir::MergeResult, mlir::ReductionTilingStrategy, mlir::TilingResult;
using mlir::SmallVector, mlir::Value, mlir::ValueRange;
} // namespace attn

#include "dialect/MaskInterface.h.inc"
#include "dialect/TargetInterface.h.inc"

#include "dialect/Dialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/Attributes.h.inc"

#define GET_OP_CLASSES
#include "dialect/Ops.h.inc"

namespace attn {

/// Registers the destination-style ops of this dialect with one-shot-bufferize.
void registerBufferization(mlir::DialectRegistry &registry);

/// The machine that `op` is compiled for: `attn.target` of the closest enclosing module that has this attribute; null
/// if none has it.
TargetInterface getTarget(mlir::Operation *op);

/// The CPU that `op` is compiled for, or null if the machine is not a CPU.
CpuAttr getCpu(mlir::Operation *op);

/// The size of dimension `dim` of `value`. It is taken from the inits and slices that `value` comes from, never from a
/// tensor.dim of a producer, because this use would keep the whole producer alive beside its tiles that fusion makes.
mlir::OpFoldResult dimOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                         int64_t dim);

/// Whether `size` is known to be a multiple of `factor`.
bool isMultiple(mlir::OpFoldResult size, int64_t factor);

/// Records in the location of `op` that its attribute `part` comes from source location `from`.
void addLocation(mlir::Operation *op, mlir::StringAttr part, mlir::Location from);

/// The source location of attribute `part`: the location that addLocation() recorded or, without it, that of `op`.
mlir::Location locationOf(mlir::Operation *op, mlir::StringAttr part);

/// Builds a test of whether `element`, an element of a dense mask or a vector of elements, keeps its pair. A NaN counts
/// as nonzero.
mlir::Value createDenseTest(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value element,
                            Polarity keeps);

/// Builds a test of whether `mask` keeps the pair at `indices`, its coordinates (batch..., q, k). `captured` are the
/// elements of the captured operands.
mlir::Value createKept(mlir::OpBuilder &builder, mlir::Location loc, MaskInterface mask,
                       mlir::ValueRange indices, mlir::ValueRange captured);

/// The number of the result whose elements a call leaves in argument `number`; none if the argument is not in-out.
std::optional<unsigned> getInOutResult(mlir::FunctionOpInterface function, unsigned number);

/// The number of the in-out argument in which a call leaves result `number`; none if there is no such argument.
std::optional<unsigned> getInOutArgument(mlir::FunctionOpInterface function, unsigned number);

/// Reports an error at `file` if the attributes of `module` say that a stage other than `stage` wrote the module.
mlir::LogicalResult verifyStage(mlir::ModuleOp module, mlir::StringRef stage, mlir::Location file);

/// Returns the dimensions `other` and `q` in the order that operands of ops on tiles have: q is last or, with `rows`,
/// first.
template <typename T> llvm::SmallVector<T, 4> withQueries(T other, T q, bool rows) {
  return rows ? llvm::SmallVector<T, 4>{q, other} : llvm::SmallVector<T, 4>{other, q};
}

/// Whether queries, keys, values, probabilities and outputs of a compiled attention can have elements of `type`.
bool isAttentionElement(mlir::Type type);

/// Reports an error if `op` has element types that are not compiled: scores other than f32, or queries, keys, values,
/// sinks or outputs other than f32, f16 and bf16.
mlir::LogicalResult verifyElementTypes(AttentionOp op);

/// Adds patterns that make constant sizes of slices and insertions static. The slices and insertions still drop the
/// same dimensions.
void populateFoldPartSizes(mlir::RewritePatternSet &patterns);

/// Returns c if `op` computes c * value for a constant c; none for any other op.
std::optional<double> constantFactor(mlir::Operation *op, mlir::Value value);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_H
