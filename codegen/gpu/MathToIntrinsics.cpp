//===- MathToIntrinsics.cpp - lower functions that are instructions --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %y = math.sqrt %x : f32
// becomes
//   %y = llvm.call_intrinsic "llvm.sqrt.f32"(%x) : (f32) -> f32
//
// Upstream's convert-gpu-to-nvvm would turn these functions, and their ops in the LLVM dialect, into calls of CUDA's
// math library, with which kernels are not linked. Test: test/codegen/gpu/math-to-intrinsics.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_MATHTOINTRINSICS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

static StringRef nameOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](math::SqrtOp) { return "sqrt"; })
      .Case([](math::AbsFOp) { return "fabs"; })
      .Case([](math::CopySignOp) { return "copysign"; })
      .Case([](math::FmaOp) { return "fma"; })
      .Case([](arith::MaxNumFOp) { return "maxnum"; })
      .Case([](arith::MinNumFOp) { return "minnum"; })
      .Case([](arith::MaximumFOp) { return "maximum"; })
      .Case([](arith::MinimumFOp) { return "minimum"; })
      .Default([](Operation *) { return ""; });
}

namespace {
struct MathToIntrinsics : attn::impl::MathToIntrinsicsBase<MathToIntrinsics> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      StringRef name = nameOf(op);
      if (name.empty())
        return;
      OpBuilder builder(op);
      Type type = op->getResult(0).getType();
      std::string intrinsic;
      llvm::raw_string_ostream(intrinsic) << "llvm." << name << "." << type;
      auto call = LLVM::CallIntrinsicOp::create(
          builder, op->getLoc(), type, builder.getStringAttr(intrinsic), op->getOperands());
      op->replaceAllUsesWith(call);
      op->erase();
    });
  }
};
} // namespace
