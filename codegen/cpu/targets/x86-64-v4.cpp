//===- x86-64-v4.cpp - AVX-512 F, BW, CD, DQ, VL --------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Cpu.h"

using namespace attn;

static constexpr llvm::StringLiteral kFeatures[] = {
    "cx16",  "popcnt", "sahf",     "sse3",     "sse4.1",   "sse4.2",  "ssse3",
    "avx",   "avx2",   "bmi",      "bmi2",     "f16c",     "fma",     "lzcnt",
    "movbe", "xsave",  "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"};

namespace attn::targets {
extern const CpuTarget x86_64_v4;
const CpuTarget x86_64_v4(
    /*level=*/"x86-64-v4",
    /*triple=*/"x86_64-unknown-linux-gnu",
    /*cpu=*/"x86-64-v4",
    /*features=*/kFeatures,
    /*vector=*/512,
    /*registers=*/32,
    // The register allocator of LLVM spills values of a block that needs all 32 registers.
    /*spare=*/1,
    // The caches of Skylake-SP and of Zen 4.
    /*l1=*/32 * 1024,
    /*l2=*/1024 * 1024,
    /*has=*/CpuCapabilities::FMA | CpuCapabilities::Masks | CpuCapabilities::Scale |
        CpuCapabilities::Halves);
} // namespace attn::targets
