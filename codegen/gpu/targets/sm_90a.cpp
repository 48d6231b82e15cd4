//===- sm_90a.cpp - NVIDIA Hopper GPUs -------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Gpu.h"

using namespace attn;

static constexpr llvm::StringLiteral kFeatures[] = {"sm_90a"};

namespace attn::targets {
extern const GpuTarget sm_90a;
const GpuTarget sm_90a(
    /*level=*/"sm_90a",
    /*features=*/kFeatures,
    /*ptx=*/"+ptx80",
    /*shared=*/227 * 1024,
    /*registers=*/65536,
    /*has=*/GpuCapabilities::Copies | GpuCapabilities::Matrices | GpuCapabilities::Warpgroups);
} // namespace attn::targets
