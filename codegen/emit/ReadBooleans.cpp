//===- ReadBooleans.cpp - a byte is true when it is not 0 ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %a = llvm.load %p : !llvm.ptr -> i1
// ==>
//   %byte = llvm.load %p : !llvm.ptr -> i8
//   %a = llvm.icmp "ne" %byte, %zero : i8
//
// In LLVM, a load of i1 may give any value if the byte is neither 0 nor 1. Users' masks may hold such bytes, so results
// would depend on the level and the schedule. The pass does not change loads of vectors of i1, which are packed in
// memory, because no buffer of attn holds such vectors.
// Test: test/codegen/emit/read-booleans.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace attn {
#define GEN_PASS_DEF_READBOOLEANS
#include "codegen/emit/Passes.h.inc"
} // namespace attn

using namespace mlir;

namespace {
struct ReadBooleans : attn::impl::ReadBooleansBase<ReadBooleans> {
  void runOnOperation() override {
    getOperation().walk([](LLVM::LoadOp load) {
      if (!load.getType().isInteger(1))
        return;
      OpBuilder builder(load->getContext());
      builder.setInsertionPointAfter(load);
      Type i8 = builder.getI8Type();
      load.getResult().setType(i8);
      Value zero = LLVM::ConstantOp::create(builder, load.getLoc(), i8, 0);
      Value isTrue =
          LLVM::ICmpOp::create(builder, load.getLoc(), LLVM::ICmpPredicate::ne, load, zero);
      load.getResult().replaceAllUsesExcept(isTrue, isTrue.getDefiningOp());
    });
  }
};
} // namespace
