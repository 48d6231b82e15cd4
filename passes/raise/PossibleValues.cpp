//===- PossibleValues.cpp - values that follow from booleans ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/raise/PossibleValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace attn;

OpFoldResult attn::foldOp(Operation *op, ArrayRef<Attribute> operands) {
  // Folders may change the op that they are called on.
  OwningOpRef<Operation *> copy = op->clone();
  SmallVector<OpFoldResult> folded;
  if (failed(copy->fold(operands, folded)) || folded.size() != 1)
    return {};
  return folded[0];
}

Attribute attn::foldConstants(Operation *op, ArrayRef<Attribute> operands) {
  OpFoldResult result = foldOp(op, operands);
  auto same = dyn_cast_if_present<Value>(result);
  if (!same)
    return dyn_cast_if_present<Attribute>(result);
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() == same)
      return operands[operand.getOperandNumber()];
  return {};
}

/// `numOps` counts the ops that were visited; an op counts once for each reader.
static std::optional<SmallVector<Attribute>> findPossibleValues(Value value, unsigned &numOps) {
  constexpr unsigned kMaxValues = 4, kMaxOps = 64;
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return SmallVector<Attribute>{constant};
  if (value.getType().isInteger(1)) {
    MLIRContext *context = value.getContext();
    return SmallVector<Attribute>{BoolAttr::get(context, false), BoolAttr::get(context, true)};
  }
  Operation *op = value.getDefiningOp();
  if (!op || !isa<arith::ArithDialect>(op->getDialect()) || op->getNumResults() != 1 ||
      ++numOps > kMaxOps)
    return std::nullopt;
  // All combinations of the values of the operands, the last operand varying fastest.
  SmallVector<SmallVector<Attribute>> combinations = {{}};
  for (Value operand : op->getOperands()) {
    std::optional<SmallVector<Attribute>> values = findPossibleValues(operand, numOps);
    if (!values)
      return std::nullopt;
    SmallVector<SmallVector<Attribute>> longer;
    for (const SmallVector<Attribute> &combination : combinations)
      for (Attribute last : *values) {
        longer.push_back(combination);
        longer.back().push_back(last);
      }
    combinations = std::move(longer);
  }
  llvm::SmallSetVector<Attribute, kMaxValues> results;
  for (ArrayRef<Attribute> combination : combinations) {
    Attribute result = foldConstants(op, combination);
    if (!result)
      return std::nullopt;
    results.insert(result);
  }
  if (results.size() > kMaxValues)
    return std::nullopt;
  return SmallVector<Attribute>(results.begin(), results.end());
}

std::optional<SmallVector<Attribute>> attn::findPossibleValues(Value value) {
  unsigned numOps = 0;
  return ::findPossibleValues(value, numOps);
}
