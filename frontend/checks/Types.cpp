//===- Types.cpp - which tensors can be compiled ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/checks/Types.h"

#include "dialect/Attn.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DynamicAPInt.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

/// The source line of an argument. If the argument has none, this is the line of its first use.
static Location lineOf(BlockArgument argument) {
  if (argument.getLoc()->findInstanceOf<FileLineColLoc>() || argument.use_empty())
    return argument.getLoc();
  Operation *first = *argument.user_begin();
  for (Operation *user : argument.getUsers())
    if (user->getBlock() == first->getBlock() && user->isBeforeInBlock(first))
      first = user;
  return first->getLoc();
}

/// The source line of an op. An op in the body of a named op has no line of its own, and gets the line of the named op.
static Location lineOf(Operation *op) {
  Operation *place = op;
  while (place && !place->getLoc()->findInstanceOf<FileLineColLoc>())
    place = place->getParentOp();
  return place ? place->getLoc() : op->getLoc();
}

/// Whether attn can compile ops on elements of `type`. Unsigned 8-bit integers also have the type i8; an argument or
/// result of unsigned integers is marked attn.unsigned.
static bool isElement(Type type) {
  unsigned width = type.isSignlessInteger() ? type.getIntOrFloatBitWidth() : 0;
  return type.isF16() || type.isBF16() || type.isF32() || type.isF64() || width == 1 ||
         width == 8 || width == 16 || width == 32 || width == 64;
}

/// Reports that `what` has elements of `type`, which attn does not support.
static LogicalResult refuse(Location loc, const Twine &what, Type type) {
  return emitError(loc) << "expected " << what
                        << " of f16, bf16, f32, f64, i1, i8, i16, i32 or i64, got " << type;
}

/// Checks the element type and the number of bytes of an argument or a result, which `what` names in error messages. A
/// dynamic size counts as 1.
static LogicalResult verifyNamed(Location loc, const Twine &what, RankedTensorType type) {
  if (!isElement(type.getElementType()))
    return refuse(loc, what, type.getElementType());
  llvm::DynamicAPInt bytes(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size))
      bytes *= llvm::DynamicAPInt(size);
  if (bytes <= llvm::DynamicAPInt(AttnDialect::kMaxBytes))
    return success();
  std::string shape =
      llvm::join(llvm::map_range(type.getShape(),
                                 [](int64_t size) {
                                   return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
                                 }),
                 " x ");
  std::string product;
  llvm::raw_string_ostream(product) << bytes;
  return emitError(loc) << "expected " << what << " of at most 2^47 bytes, got " << shape
                        << " elements of " << type.getElementType() << ", " << product << " bytes"
                        << (type.hasStaticShape() ? "" : " or more");
}

/// Whether `op` is a math function that attn can compute for f16, bf16 and f32, but not for f64. Later passes convert
/// f16 and bf16 to f32.
static bool isExpanded(Operation *op) {
  return isa<math::MathDialect>(op->getDialect()) &&
         !isa<math::AbsFOp, math::CeilOp, math::CopySignOp, math::FloorOp, math::RoundEvenOp,
              math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

static LogicalResult verifyOp(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op);
      attention && failed(verifyElementTypes(attention)))
    return failure();
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  for (Type type : types) {
    Type element = getElementTypeOrSelf(type);
    if (!element.isIndex() && !isElement(element))
      return refuse(lineOf(op), "elements", element);
    if (isa<linalg::SoftmaxOp>(op) && !element.isF32())
      return emitError(lineOf(op)) << "expected a softmax of f32, got " << element;
    if (isExpanded(op) && element.isF64())
      return emitError(lineOf(op))
             << "expected a '" << op->getName() << "' of f16, bf16 or f32, got " << element;
  }
  return success();
}

LogicalResult attn::verifyTypes(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    auto name =
        function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), AttnDialect::kNameAttr);
    if (failed(verifyNamed(lineOf(argument), "argument '" + name.getValue() + "'",
                           cast<RankedTensorType>(argument.getType()))))
      return failure();
  }
  for (OpOperand &result : function.getBody().front().getTerminator()->getOpOperands()) {
    auto name =
        function.getResultAttrOfType<StringAttr>(result.getOperandNumber(), AttnDialect::kNameAttr);
    Operation *op = result.get().getDefiningOp();
    if (failed(verifyNamed(op ? op->getLoc() : result.getOwner()->getLoc(),
                           "result '" + name.getValue() + "'",
                           cast<RankedTensorType>(result.get().getType()))))
      return failure();
  }
  WalkResult checked =
      function.getBody().walk([](Operation *op) -> WalkResult { return verifyOp(op); });
  return failure(checked.wasInterrupted());
}
