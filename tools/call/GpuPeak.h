//===- GpuPeak.h - how fast a GPU multiplies matrices -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_GPUPEAK_H
#define ATTN_TOOLS_CALL_GPUPEAK_H

#include "tools/call/Gpu.h"

namespace attn {

/// Measures the GFLOP/s of products of bf16 matrices on all multiprocessors: of wgmma.m64n256k16 with factors in shared
/// memory where the GPU has it, and otherwise of mma.sync.m16n8k16 with factors in registers.
Failure measureMatrixPeak(const Gpu &gpu, double &gflops);

} // namespace attn

#endif // ATTN_TOOLS_CALL_GPUPEAK_H
