//===- EmbedKernels.cpp - store the code of kernels in the library ---------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   gpu.module @kernels [#nvvm.target<chip = "sm_80">] { llvm.func @f_attend_0(...) {...} }
// becomes
//   llvm.mlir.global internal constant @kernels(".version 8.0 ...\00")
//
// The text is PTX, which CUDA's driver compiles for the GPU when it loads the kernels. LLVM alone generates the PTX.
// Upstream's gpu-module-to-binary would also link libraries of a CUDA toolkit if it found one, and the code for a model
// would then depend on the machine that compiles the model.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVM/ModuleToObject.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_EMBEDKERNELS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
/// Translates a module of kernels to PTX.
struct Assembler : LLVM::ModuleToObject {
  Assembler(gpu::GPUModuleOp kernels, NVVM::NVVMTargetAttr target)
      : ModuleToObject(*kernels, target.getTriple(), target.getChip(), target.getFeatures(),
                       target.getO()) {}

  FailureOr<SmallVector<char, 0>> moduleToObject(llvm::Module &ir) override {
    FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
    if (failed(machine))
      return failure();
    for (llvm::Function &function : ir)
      if (function.isDeclaration() && !function.isIntrinsic())
        return getOperation().emitError()
               << "expected kernels without undefined symbols, got '" << function.getName() << "'";
    FailureOr<SmallString<0>> text =
        translateModuleToISA(ir, **machine, [&] { return getOperation().emitError(); });
    if (failed(text))
      return failure();
    return SmallVector<char, 0>(text->begin(), text->end());
  }
};

struct EmbedKernels : attn::impl::EmbedKernelsBase<EmbedKernels> {
  LogicalResult initialize(MLIRContext *) override {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return success();
  }

  void runOnOperation() override {
    for (auto kernels : llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>())) {
      auto target = cast<NVVM::NVVMTargetAttr>((*kernels.getTargets())[0]);
      std::optional<SmallVector<char, 0>> text = Assembler(kernels, target).run();
      if (!text)
        return signalPassFailure();
      text->push_back('\0'); // the driver reads up to the first zero
      OpBuilder builder(kernels);
      auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text->size());
      LLVM::GlobalOp::create(builder, kernels.getLoc(), type, /*isConstant=*/true,
                             LLVM::Linkage::Internal, kernels.getSymName(),
                             builder.getStringAttr(StringRef(text->data(), text->size())));
      kernels.erase();
    }
  }
};
} // namespace
