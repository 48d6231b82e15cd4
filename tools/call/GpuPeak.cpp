//===- GpuPeak.cpp - how fast a GPU multiplies matrices -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/GpuPeak.h"

#include <algorithm>

using namespace attn;

/// Independent accumulators of a warp: enough that no instruction waits for the one before.
static constexpr int kAccumulators = 8;
static constexpr unsigned kThreads = 256, kBlocksOfMultiprocessor = 2;
/// Multiply-adds of an instruction count twice.
static constexpr double kFlopsOfInstruction = 2.0 * 16 * 8 * 16;

namespace {
/// The parameter of the kernel.
struct Argument {
  uint64_t out;
  uint64_t count;
};
} // namespace

/// A kernel that multiplies `count` times into each accumulator. It stores a sum, which is 0, only if it is not 0:
/// without the store, the assembler would remove the products.
static std::string writeKernel() {
  std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n"
                     ".visible .entry multiply(\n.param .align 8 .b8 multiply_param_0[16]\n)\n{\n"
                     ".reg .pred %p<3>;\n.reg .b32 %r<99>;\n.reg .b64 %rd<9>;\n"
                     "ld.param.b64 %rd1, [multiply_param_0];\n"
                     "ld.param.b64 %rd2, [multiply_param_0+8];\n"
                     "cvta.to.global.u64 %rd3, %rd1;\nmov.b64 %rd4, 0;\n";
  static constexpr int kFirst = 10;
  for (int i = 1; i < kFirst + 4 * kAccumulators; ++i)
    text += format("mov.b32 %%r%d, 0;\n", i);
  text += "$loop:\n";
  for (int i = 0; i < kAccumulators; ++i) {
    int r = kFirst + 4 * i;
    std::string sums = format("{%%r%d, %%r%d, %%r%d, %%r%d}", r, r + 1, r + 2, r + 3);
    text += "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " + sums +
            ", {%r1, %r2, %r3, %r4}, {%r5, %r6}, " + sums + ";\n";
  }
  text +=
      "add.s64 %rd4, %rd4, 1;\nsetp.lt.s64 %p1, %rd4, %rd2;\n@%p1 bra $loop;\nmov.b32 %r7, 0;\n";
  for (int i = 0; i < kAccumulators; ++i)
    text += format("add.rn.f32 %%r7, %%r7, %%r%d;\n", kFirst + 4 * i);
  text += "setp.neu.f32 %p2, %r7, 0f00000000;\n@%p2 st.global.b32 [%rd3], %r7;\nret;\n}\n";
  return text;
}

Failure attn::measureMatrixPeak(const Gpu &gpu, double &gflops) {
  static constexpr double kLongEnough = 20; // milliseconds
  GpuMemory out;
  GpuKernel kernel;
  Gpu::Timer timer;
  if (Failure failure = out.allocate(4))
    return failure;
  if (Failure failure = kernel.load(writeKernel().c_str(), "multiply"))
    return failure;
  unsigned blocks = kBlocksOfMultiprocessor * std::max(gpu.getNumMultiprocessors(), 1);
  gflops = 0;
  for (uint64_t count = 1;; count *= 4) {
    Argument argument = {out.get(), count};
    double ms = 0;
    if (Failure failure = timer.start())
      return failure;
    if (Failure failure = kernel.launch(blocks, kThreads, &argument))
      return failure;
    if (Failure failure = timer.stop())
      return failure;
    if (Failure failure = timer.getMilliseconds(ms))
      return failure;
    double flops = kFlopsOfInstruction * kAccumulators * (kThreads / 32) * blocks * double(count);
    gflops = std::max(gflops, flops / (std::max(ms, 1e-6) * 1e6));
    if (ms >= kLongEnough)
      return {};
  }
}
