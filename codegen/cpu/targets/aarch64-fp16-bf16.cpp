//===- aarch64-fp16-bf16.cpp - NEON with products of f16 and bf16 ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/targets/NeoverseV1.h"

using namespace attn;

// Neoverse N2, V1 and V2, and Apple M2 have these features.
static constexpr llvm::StringLiteral kFeatures[] = {"neon", "fullfp16", "fp16fml", "bf16"};

namespace attn::targets {
extern const CpuTarget aarch64_fp16_bf16;
const CpuTarget aarch64_fp16_bf16(
    /*level=*/"aarch64-fp16-bf16",
    /*triple=*/"aarch64-unknown-linux-gnu",
    /*cpu=*/"cortex-a72",
    /*features=*/kFeatures,
    // The values from `vector` to `l2` are those of aarch64, so that a graph without f16 and bf16 needs only one of the
    // two levels.
    /*vector=*/128,
    /*registers=*/32,
    /*spare=*/0,
    /*l1=*/32 * 1024,
    /*l2=*/256 * 1024,
    /*has=*/CpuCapabilities::FMA | CpuCapabilities::Halves | CpuCapabilities::Pairs |
        CpuCapabilities::Matrices | CpuCapabilities::Widening,
    /*pipelines=*/&kNeoverseV1);
} // namespace attn::targets
