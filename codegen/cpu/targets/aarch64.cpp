//===- aarch64.cpp - every 64-bit Arm: NEON --------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/targets/NeoverseV1.h"

using namespace attn;

static constexpr llvm::StringLiteral kFeatures[] = {"neon"};

namespace attn::targets {
extern const CpuTarget aarch64;
const CpuTarget aarch64(
    /*level=*/"aarch64",
    /*triple=*/"aarch64-unknown-linux-gnu",
    // LLVM schedules code for "generic" as for a small in-order core. Cortex-A72 has more instructions than the level
    // (CRC, AES and SHA), but LLVM does not select them for arithmetic.
    /*cpu=*/"cortex-a72",
    /*features=*/kFeatures,
    /*vector=*/128,
    /*registers=*/32,
    /*spare=*/0,
    // The caches of a Raspberry Pi 4: L1 of a Cortex-A72, and a quarter of the L2 that its four cores share.
    /*l1=*/32 * 1024,
    /*l2=*/256 * 1024,
    /*has=*/CpuCapabilities::FMA | CpuCapabilities::Halves,
    /*pipelines=*/&kNeoverseV1);
} // namespace attn::targets
