//===- StoreBF16AsI16.cpp - hold bf16 in 16-bit integers -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %x = llvm.load %p : !llvm.ptr -> bf16
//   %bits = llvm.bitcast %x : bf16 to i16
// ==>
//   %x = llvm.load %p : !llvm.ptr -> i16
//   %bits = llvm.bitcast %x : i16 to i16        (folds)
//
// After the stage vectorize, no arithmetic on bf16 is left. There are moves of bf16, and there are intrinsics and
// conversions for which the CPU has instructions. For a move, LLVM may still call a library function that converts to
// f32 and back, but kernels must not have undefined symbols. Intrinsics and conversions keep the type bf16: the pass
// casts their operands and results.
// Test: test/codegen/emit/store-bf16-as-i16.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace attn {
#define GEN_PASS_DEF_STOREBF16ASI16
#include "codegen/emit/Passes.h.inc"
} // namespace attn

using namespace mlir;

namespace {
struct StoreBF16AsI16 : attn::impl::StoreBF16AsI16Base<StoreBF16AsI16> {
  void runOnOperation() override {
    SmallVector<std::pair<OpOperand *, Type>> ofInstructions;
    SmallVector<std::pair<OpResult, Type>> fromInstructions;
    auto hasBF16 = [](Value value) { return getElementTypeOrSelf(value.getType()).isBF16(); };
    getOperation().walk([&](Operation *op) {
      if (!isa<LLVM::CallIntrinsicOp, LLVM::FPTruncOp>(op))
        return;
      for (OpOperand &operand : op->getOpOperands())
        if (hasBF16(operand.get()))
          ofInstructions.push_back({&operand, operand.get().getType()});
      for (OpResult result : op->getResults())
        if (hasBF16(result))
          fromInstructions.push_back({result, result.getType()});
    });

    Type i16 = IntegerType::get(&getContext(), 16);
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](BFloat16Type) { return i16; });
    replacer.addReplacement([&](FloatAttr number) -> std::optional<Attribute> {
      if (!number.getType().isBF16())
        return std::nullopt;
      return IntegerAttr::get(i16, number.getValue().bitcastToAPInt());
    });
    replacer.addReplacement([&](DenseElementsAttr numbers) -> std::optional<Attribute> {
      if (!numbers.getElementType().isBF16())
        return std::nullopt;
      return numbers.bitcast(i16);
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false, /*replaceTypes=*/true);
    for (auto [operand, type] : ofInstructions) {
      OpBuilder builder(operand->getOwner());
      operand->set(
          LLVM::BitcastOp::create(builder, operand->getOwner()->getLoc(), type, operand->get()));
    }
    for (auto [result, type] : fromInstructions) {
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfter(result.getOwner());
      Type stored = result.getType();
      result.setType(type);
      auto cast = LLVM::BitcastOp::create(builder, result.getOwner()->getLoc(), stored, result);
      result.replaceAllUsesExcept(cast, cast);
    }
  }
};
} // namespace
