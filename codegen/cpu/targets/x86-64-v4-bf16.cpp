//===- x86-64-v4-bf16.cpp - AVX-512 with products of bf16 ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Cpu.h"

using namespace attn;

static constexpr llvm::StringLiteral kFeatures[] = {
    "cx16",     "popcnt",   "sahf",     "sse3",    "sse4.1",   "sse4.2",    "ssse3", "avx",
    "avx2",     "bmi",      "bmi2",     "f16c",    "fma",      "lzcnt",     "movbe", "xsave",
    "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "avx512bf16"};

namespace attn::targets {
extern const CpuTarget x86_64_v4_bf16;
const CpuTarget x86_64_v4_bf16(
    /*level=*/"x86-64-v4-bf16",
    /*triple=*/"x86_64-unknown-linux-gnu",
    /*cpu=*/"x86-64-v4",
    /*features=*/kFeatures,
    // The values from `vector` to `l2` are those of x86-64-v4, so that a graph without bf16 needs only one of the two
    // levels.
    /*vector=*/512,
    /*registers=*/32,
    /*spare=*/1,
    /*l1=*/32 * 1024,
    /*l2=*/1024 * 1024,
    /*has=*/CpuCapabilities::FMA | CpuCapabilities::Masks | CpuCapabilities::Scale |
        CpuCapabilities::Halves | CpuCapabilities::Pairs);
} // namespace attn::targets
