//===- VerifyBuffers.cpp - inputs are read-only, results are out parameters ===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Later passes rely on three properties of bufferized functions. Each violation is an error at the source location:
//   * no op writes, directly or through views, loops or selects, to an argument that is neither an output nor in-out,
//     because inputs and packed weights belong to the caller, and the next call reads them again;
//   * there is no func.call (attn-outline-repeated adds some later);
//   * no function returns a buffer, because each result is an out parameter.
//
// The pass runs after bufferization and changes nothing. attn-note-extra-work reports code that is correct but slow.
// Test: test/passes/bufferize/verify-buffers.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_VERIFYBUFFERS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

static LogicalResult verifyOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([](func::CallOp call) {
        return call.emitError() << "expected calls to be inlined, got a call of "
                                << call.getCalleeAttr();
      })
      .Case([](func::ReturnOp terminator) -> LogicalResult {
        if (llvm::none_of(terminator.getOperandTypes(), llvm::IsaPred<BaseMemRefType>))
          return success();
        return terminator.emitError()
               << "expected results in out parameters, got a returned buffer";
      })
      .Default(success());
}

/// Verifies that ops write only to outputs, in-out arguments and buffers that the function allocates.
static LogicalResult verifyArguments(func::FuncOp function) {
  BufferViewFlowAnalysis flow(function);
  auto isReadOnly = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner()->getParentOp() == function &&
           !function.getArgAttr(argument.getArgNumber(), AttnDialect::kOutputAttr) &&
           !function.getArgAttr(argument.getArgNumber(), AttnDialect::kInOutAttr);
  };
  bool isValid = true;
  function.walk([&](Operation *op) {
    // Loops have the effects of the ops in them, which are visited too.
    if (!isa<MemoryEffectOpInterface>(op) && op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return;
    for (OpOperand &use : op->getOpOperands()) {
      if (!isa<BaseMemRefType>(use.get().getType()) ||
          !mightHaveEffect<MemoryEffects::Write>(use.getOwner(), use.get()))
        continue;
      for (Value source : flow.resolveReverse(use.get()))
        if (isReadOnly(source)) {
          unsigned number = cast<BlockArgument>(source).getArgNumber();
          auto name = function.getArgAttrOfType<StringAttr>(number, AttnDialect::kNameAttr);
          std::string written =
              name ? "'" + name.getValue().str() + "'" : "argument " + std::to_string(number);
          op->emitError()
              << "expected no write to an argument that is not an output, got a write to "
              << written;
          isValid = false;
        }
    }
  });
  return success(isValid);
}

namespace {
struct VerifyBuffers : attn::impl::VerifyBuffersBase<VerifyBuffers> {
  void runOnOperation() override {
    bool isValid = true;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      function.walk([&](Operation *op) { isValid &= succeeded(verifyOp(op)); });
      isValid &= succeeded(verifyArguments(function));
    }
    if (!isValid)
      signalPassFailure();
  }
};
} // namespace
