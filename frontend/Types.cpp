//===- Types.cpp - which tensors can be compiled ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/Types.h"

#include "dialect/Attn.h"

#include "llvm/ADT/DynamicAPInt.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

/// The line that the model's author knows: of an argument that has none, the line of its first use.
static Location lineOf(BlockArgument argument) {
  if (argument.getLoc()->findInstanceOf<FileLineColLoc>() || argument.use_empty())
    return argument.getLoc();
  Operation *first = *argument.user_begin();
  for (Operation *user : argument.getUsers())
    if (user->getBlock() == first->getBlock() && user->isBeforeInBlock(first))
      first = user;
  return first->getLoc();
}

/// `what` is an argument or a result with its name. Sizes known at the call only count as 1.
static LogicalResult verifyHolds(Location loc, const Twine &what, RankedTensorType type) {
  if (!type.getElementType().isIntOrFloat())
    return success();
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

LogicalResult attn::verifyTypes(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    auto name =
        function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), AttnDialect::kNameAttr);
    if (failed(verifyHolds(lineOf(argument), "argument '" + name.getValue() + "'",
                           cast<RankedTensorType>(argument.getType()))))
      return failure();
  }
  for (OpOperand &result : function.getBody().front().getTerminator()->getOpOperands()) {
    auto name =
        function.getResultAttrOfType<StringAttr>(result.getOperandNumber(), AttnDialect::kNameAttr);
    Operation *op = result.get().getDefiningOp();
    if (failed(verifyHolds(op ? op->getLoc() : result.getOwner()->getLoc(),
                           "result '" + name.getValue() + "'",
                           cast<RankedTensorType>(result.get().getType()))))
      return failure();
  }
  return success();
}
