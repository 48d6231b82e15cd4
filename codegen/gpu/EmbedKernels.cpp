//===- EmbedKernels.cpp - the code of kernels as data of the library -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "...">]
// becomes
//   llvm.mlir.global internal constant @kernels(".version 8.0 ...\00")
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_EMBEDKERNELS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
struct EmbedKernels : attn::impl::EmbedKernelsBase<EmbedKernels> {
  void runOnOperation() override {
    for (auto binary : llvm::make_early_inc_range(getOperation().getOps<gpu::BinaryOp>())) {
      auto object = cast<gpu::ObjectAttr>(binary.getObjects()[0]);
      std::string text = object.getObject().getValue().str();
      // The driver reads a text up to its first zero.
      text.resize(text.find_last_not_of('\0') + 1);
      text.push_back('\0');
      OpBuilder builder(binary);
      auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
      LLVM::GlobalOp::create(builder, binary.getLoc(), type, /*isConstant=*/true,
                             LLVM::Linkage::Internal, binary.getSymName(),
                             builder.getStringAttr(text));
      binary.erase();
    }
  }
};
} // namespace
