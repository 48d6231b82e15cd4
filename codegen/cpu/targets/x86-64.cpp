//===- x86-64.cpp - every 64-bit x86: SSE2, no FMA ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Cpu.h"

using namespace attn;

namespace attn::targets {
extern const CpuTarget x86_64;
const CpuTarget x86_64(
    /*level=*/"x86-64",
    /*triple=*/"x86_64-unknown-linux-gnu",
    /*cpu=*/"x86-64",
    /*features=*/{},
    /*vector=*/128,
    /*registers=*/16,
    /*spare=*/0,
    // The caches of Intel's cores from Nehalem to Haswell, which are small among x86-64 CPUs.
    /*l1=*/32 * 1024,
    /*l2=*/256 * 1024,
    /*has=*/CpuCapabilities::None);
} // namespace attn::targets
