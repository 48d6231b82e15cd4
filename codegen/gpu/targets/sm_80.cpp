//===- sm_80.cpp - NVIDIA GPUs from Ampere on ------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Gpu.h"

using namespace attn;

static constexpr llvm::StringLiteral kFeatures[] = {"sm_80"};

namespace attn::targets {
extern const GpuTarget sm_80;
const GpuTarget sm_80(
    /*level=*/"sm_80",
    /*features=*/kFeatures,
    /*ptx=*/"+ptx80",
    // Among the GPUs that run this level, sm_86, sm_89 and sm_120 have the least: 99 KiB for each block of threads.
    /*shared=*/99 * 1024,
    /*registers=*/65536,
    /*has=*/GpuCapabilities::Copies | GpuCapabilities::Matrices);
} // namespace attn::targets
