//===- GpuPeak.h - how fast a GPU multiplies matrices -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_GPUPEAK_H
#define ATTN_TOOLS_CALL_GPUPEAK_H

#include "tools/call/Gpu.h"

namespace attn {

/// Measures the GFLOP/s of products of bf16 matrices on all multiprocessors: with wgmma.m64n256k16 and factors in
/// shared memory if the GPU has this instruction, and otherwise with mma.sync.m16n8k16 and factors in registers.
Failure measureMatrixPeak(const Gpu &gpu, double &gflops);

} // namespace attn

#endif // ATTN_TOOLS_CALL_GPUPEAK_H
