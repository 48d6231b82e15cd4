//===- x86-64.cpp - every 64-bit x86: SSE2, no FMA ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/Target.h"

using namespace attn;

namespace attn::targets {
extern const Target x86_64;
const Target x86_64 = {
    /*level=*/"x86-64",
    /*triple=*/"x86_64-unknown-linux-gnu",
    /*cpu=*/"x86-64",
    /*features=*/{},
    /*vectorBits=*/128,
    /*lanes=*/4,
    /*registers=*/16,
    /*fma=*/false,
    // The smallest caches that are still in use.
    /*l1=*/32 * 1024,
    /*l2=*/256 * 1024,
    /*scalef=*/false,
    /*halves=*/false,
};
} // namespace attn::targets
