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

/// A condition that an integer set cannot express: the element of captured operand `capture` is nonzero (or zero).
struct DenseTest {
  unsigned capture;
  Polarity keeps;
};

/// The number of keys that one word of a packed mask has bits for.
inline constexpr int64_t kKeysPerWord = 32;

/// The number of the result of `map` that is `k floordiv 32`, the word of key k in a packed mask, if there is one.
std::optional<unsigned> findWordOfKey(mlir::AffineMap map);

/// The type of an element of a captured operand that is read through `map`: i1 for a packed mask.
mlir::Type elementOfCapture(mlir::Value capture, mlir::AffineMap map);

/// A set of pairs of a query and a key that a mask keeps: the points of `pairs` over (batch..., q, k) for which all
/// `tests` hold. Symbol i of `pairs` is the element of captured operand `symbols[i]` at the point.
struct KeptSet {
  mlir::IntegerSet pairs;
  llvm::SmallVector<unsigned> symbols;
  llvm::SmallVector<DenseTest> tests;

  /// The set of all pairs, with one constraint that always holds, because an integer set needs one.
  static KeptSet always(mlir::MLIRContext *context, unsigned numBatch);
};

// TableGen copies the methods of PartialReductionOpInterface, which do not qualify these types.
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

/// The machine that `op` is compiled for: `attn.target` of the closest module that has one; null if no module has one.
TargetInterface getTarget(mlir::Operation *op);

/// The CPU that `op` is compiled for, or null if the machine is not a CPU.
CpuAttr getCpu(mlir::Operation *op);

/// The size of dimension `dim` of `value`, taken from the inits and slices that `value` comes from, never from a
/// tensor.dim of a producer: such a use would keep the whole producer alive beside the copy that fusion makes.
mlir::OpFoldResult dimOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                         int64_t dim);

/// Whether `size` is known to be a multiple of `factor`.
bool isMultiple(mlir::OpFoldResult size, int64_t factor);

/// Records in the location of `op` that its attribute `part` comes from source location `from`.
void addLocation(mlir::Operation *op, mlir::StringAttr part, mlir::Location from);

/// The source location of attribute `part`: the one that addLocation() recorded, else that of `op`.
mlir::Location locationOf(mlir::Operation *op, mlir::StringAttr part);

/// Tests whether an element of a dense mask, or each element of a vector, keeps its pair. NaN is nonzero.
mlir::Value createDenseTest(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value element,
                            Polarity keeps);

/// The number of the result whose elements a call leaves in argument `number`; none if the argument is not in-out.
std::optional<unsigned> getInOutResult(mlir::FunctionOpInterface function, unsigned number);

/// The in-out argument that result `number` is written to, if there is one.
std::optional<unsigned> getInOutArgument(mlir::FunctionOpInterface function, unsigned number);

/// Reports an error at `file` if the attributes of `module` say that a stage other than `stage` wrote the module.
mlir::LogicalResult verifyStage(mlir::ModuleOp module, mlir::StringRef stage, mlir::Location file);

/// The dimensions `other` and `q` of an operand of a tile step, in order: q is last or, with `rows`, first.
template <typename T> llvm::SmallVector<T, 4> withQueries(T other, T q, bool rows) {
  return rows ? llvm::SmallVector<T, 4>{q, other} : llvm::SmallVector<T, 4>{other, q};
}

/// Whether queries, keys, values, probabilities and outputs of a compiled attention can have elements of `type`.
bool isAttentionElement(mlir::Type type);

/// Reports an error if `op` has element types that are not compiled: scores other than f32, or queries, keys, values,
/// sinks or outputs other than f32, f16 and bf16.
mlir::LogicalResult verifyElementTypes(AttentionOp op);

/// Adds patterns that make constant sizes of slices and insertions static, and that keep track of the dimensions which
/// a slice or an insertion drops.
void populateFoldPartSizes(mlir::RewritePatternSet &patterns);

/// The constant c for which `op` computes c * value, if it does.
std::optional<double> constantFactor(mlir::Operation *op, mlir::Value value);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_H
