//===- x86-64-v3.cpp - AVX2 and FMA ---------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Cpu.h"

using namespace attn;

static constexpr llvm::StringLiteral kFeatures[] = {
    "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3", "avx",
    "avx2", "bmi",    "bmi2", "f16c", "fma",    "lzcnt",  "movbe", "xsave"};

namespace attn::targets {
extern const CpuTarget x86_64_v3;
const CpuTarget x86_64_v3(
    /*level=*/"x86-64-v3",
    /*triple=*/"x86_64-unknown-linux-gnu",
    /*cpu=*/"x86-64-v3",
    /*features=*/kFeatures,
    /*vector=*/256,
    /*registers=*/16,
    /*spare=*/0,
    // The caches of Haswell, which are small among CPUs of this level.
    /*l1=*/32 * 1024,
    /*l2=*/256 * 1024,
    /*has=*/CpuCapabilities::FMA | CpuCapabilities::Halves);
} // namespace attn::targets
