//===- GpuPeak.cpp - how fast a GPU multiplies matrices -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/GpuPeak.h"

#include <algorithm>

using namespace attn;

namespace {
/// The parameter of the kernels.
struct Argument {
  uint64_t out;
  uint64_t count;
};

/// A kernel "multiply" that multiplies matrices `count` times.
struct PeakKernel {
  std::string text;
  unsigned threads, sharedBytes;
  double flops; ///< of a block of threads in each iteration; a multiply-add counts as two
};
} // namespace

static constexpr unsigned kBlocksOfMultiprocessor = 2;

static std::string writeHeader(const char *version, const char *target) {
  return std::string(".version ") + version + "\n.target " + target +
         "\n.address_size 64\n.extern .shared .align 1024 .b8 shared[];\n"
         ".visible .entry multiply(\n.param .align 8 .b8 multiply_param_0[16]\n)\n{\n"
         ".reg .pred %p<3>;\n.reg .b32 %r<299>;\n.reg .b64 %rd<19>;\n"
         "ld.param.b64 %rd1, [multiply_param_0];\n"
         "ld.param.b64 %rd2, [multiply_param_0+8];\n"
         "cvta.to.global.u64 %rd3, %rd1;\nmov.b64 %rd4, 0;\n";
}

/// Ends the loop over the products, and then stores the sum of the registers [first, end) if it is not 0. The sum is
/// always 0, but without the store, the assembler would remove the products.
static std::string writeEnd(int first, int end) {
  std::string text =
      "add.s64 %rd4, %rd4, 1;\nsetp.lt.s64 %p1, %rd4, %rd2;\n@%p1 bra $loop;\nmov.b32 %r7, 0;\n";
  for (int i = first; i < end; ++i)
    text += format("add.rn.f32 %%r7, %%r7, %%r%d;\n", i);
  return text + "setp.neu.f32 %p2, %r7, 0f00000000;\n@%p2 st.global.b32 [%rd3], %r7;\nret;\n}\n";
}

/// The first register of the accumulators.
static constexpr int kFirst = 10;

static std::string writeZeros(int end) {
  std::string text;
  for (int i = 1; i < end; ++i)
    text += format("mov.b32 %%r%d, 0;\n", i);
  return text;
}

/// A kernel with eight accumulators for each warp, so that no mma.sync waits for the previous one.
static PeakKernel makeKernelOfWarps() {
  static constexpr int kAccumulators = 8, kEnd = kFirst + 4 * kAccumulators;
  static constexpr unsigned kThreads = 256;
  std::string text = writeHeader("7.0", "sm_80") + writeZeros(kEnd) + "$loop:\n";
  for (int i = 0; i < kAccumulators; ++i) {
    int r = kFirst + 4 * i;
    std::string sums = format("{%%r%d, %%r%d, %%r%d, %%r%d}", r, r + 1, r + 2, r + 3);
    text += "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " + sums +
            ", {%r1, %r2, %r3, %r4}, {%r5, %r6}, " + sums + ";\n";
  }
  return {text + writeEnd(kFirst, kEnd), kThreads, /*sharedBytes=*/0,
          2.0 * 16 * 8 * 16 * kAccumulators * (kThreads / 32)};
}

/// A kernel in which each warpgroup executes four wgmma instructions, with factors in shared memory.
static PeakKernel makeKernelOfWarpgroups() {
  static constexpr int kColumns = 256, kEnd = kFirst + kColumns / 2, kProducts = 4;
  static constexpr unsigned kThreads = 128, kRowBytes = 128, kLeftBytes = 64 * kRowBytes;
  std::string sums = "{";
  for (int i = kFirst; i < kEnd; ++i)
    sums += format("%s%%r%d", i == kFirst ? "" : ", ", i);
  // Descriptions of factors whose rows are swizzled by 128 bytes: codegen/gpu/WarpgroupMultiply.cpp.
  std::string text = writeHeader("8.0", "sm_90a") + writeZeros(kEnd) +
                     "mov.b64 %rd5, shared;\nshr.u64 %rd5, %rd5, 4;\nand.b64 %rd5, %rd5, 16383;\n"
                     "or.b64 %rd5, %rd5, 4611686293305294848;\n" +
                     format("add.s64 %%rd6, %%rd5, %u;\n$loop:\n", kLeftBytes / 16) +
                     "wgmma.fence.sync.aligned;\n";
  for (int i = 0; i < kProducts; ++i)
    text += "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " + sums +
            "}, %rd5, %rd6, 1, 1, 1, 0, 0;\n";
  text += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  return {text + writeEnd(kFirst, kEnd), kThreads, kLeftBytes + kColumns * kRowBytes,
          2.0 * 64 * kColumns * 16 * kProducts};
}

Failure attn::measureMatrixPeak(const Gpu &gpu, double &gflops) {
  static constexpr double kLongEnough = 20; // milliseconds
  static constexpr int kHopper = 90;
  PeakKernel peak = gpu.getCapability() == kHopper ? makeKernelOfWarpgroups() : makeKernelOfWarps();
  GpuMemory out;
  GpuKernel kernel;
  Gpu::Timer timer;
  if (Failure failure = out.allocate(4))
    return failure;
  if (Failure failure = kernel.load(peak.text.c_str(), "multiply"))
    return failure;
  unsigned blocks = kBlocksOfMultiprocessor * std::max(gpu.getNumMultiprocessors(), 1);
  gflops = 0;
  for (uint64_t count = 1;; count *= 4) {
    Argument argument = {out.get(), count};
    double ms = 0;
    if (Failure failure = timer.start())
      return failure;
    if (Failure failure = kernel.launch(blocks, peak.threads, peak.sharedBytes, &argument))
      return failure;
    if (Failure failure = timer.stop())
      return failure;
    if (Failure failure = timer.getMilliseconds(ms))
      return failure;
    gflops = std::max(gflops, peak.flops * blocks * double(count) / (std::max(ms, 1e-6) * 1e6));
    if (ms >= kLongEnough)
      return {};
  }
}
