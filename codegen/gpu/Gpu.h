//===- Gpu.h - the family of NVIDIA GPUs -------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_GPU_H
#define ATTN_CODEGEN_GPU_GPU_H

#include "codegen/Target.h"

namespace attn {

/// A level for GPUs. codegen/gpu/targets/ has one description for each such level. The entries of its code run on the
/// CPU, and launch kernels.
struct GpuTarget : Target {
  /// LLVM's name for the PTX version that the code needs.
  llvm::StringLiteral ptx;
  /// The fields of #attn.gpu.
  unsigned shared, registers;
  GpuCapabilities has;

  constexpr GpuTarget(llvm::StringLiteral level, llvm::ArrayRef<llvm::StringLiteral> features,
                      llvm::StringLiteral ptx, unsigned shared, unsigned registers,
                      GpuCapabilities has)
      : Target{level, "nvptx64-nvidia-cuda", features, makeGpuAttr}, ptx(ptx), shared(shared),
        registers(registers), has(has) {}

private:
  static TargetInterface makeGpuAttr(const Target &target, mlir::MLIRContext *context);
};

extern const TargetFamily kGpuFamily;

} // namespace attn

#endif // ATTN_CODEGEN_GPU_GPU_H
