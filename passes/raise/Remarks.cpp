//===- Remarks.cpp - the user's ops in remarks -----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/raise/Remarks.h"
#include "dialect/Report.h"
#include "passes/Access.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace attn;

std::string attn::describe(Operation *op) {
  if (!op->getLoc()->findInstanceOf<FileLineColLoc>())
    return ("'" + op->getName().getStringRef() + "'").str();
  auto named = op->getLoc()->findInstanceOf<NameLoc>();
  StringRef name = named ? named.getName().getValue() : StringRef();
  if (StringRef kind = name.rtrim("0123456789");
      kind.size() < name.size() && kind.consume_back("_"))
    name = kind;
  return (named ? "'" + name.str() + "'" : "the op") + " at " + getSource(op->getLoc());
}

std::string attn::describe(Value tensor) {
  if (Operation *op = tensor.getDefiningOp())
    return describe(op);
  auto argument = cast<BlockArgument>(tensor);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto name = function ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                               AttnDialect::kNameAttr)
                       : StringAttr();
  return name ? ("the argument '" + name.getValue() + "'").str()
              : "argument " + std::to_string(argument.getArgNumber());
}

StringRef attn::adviceFor(Operation *user) {
  auto op = dyn_cast<linalg::LinalgOp>(user);
  if (!op)
    return "";
  if (op.getNumReductionLoops() != 0)
    return "; to leave out keys, hide their scores with -inf before the softmax";
  if (!isScalarFunction(op))
    return "";
  // Elementwise ops may scale the probabilities of other softmaxes first.
  SmallVector<Value> inputs(op.getDpsInputs());
  llvm::SmallPtrSet<Operation *, 4> softmaxes;
  for (unsigned i = 0; i < inputs.size() && i < 16; ++i) {
    if (auto softmax = inputs[i].getDefiningOp<linalg::SoftmaxOp>())
      softmaxes.insert(softmax);
    if (auto input = inputs[i].getDefiningOp<linalg::LinalgOp>(); input && isScalarFunction(input))
      inputs.append(input.getDpsInputs());
  }
  if (softmaxes.size() > 1)
    return "; multiply the probabilities of each softmax with the values, and combine the products";
  return "; change the scores before the softmax, or the product with the values, instead";
}
