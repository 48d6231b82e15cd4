//===- x86-64-v3.cpp - AVX2 and FMA ---------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/Target.h"

using namespace attn;

static constexpr llvm::StringLiteral kFeatures[] = {
    "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3", "avx",
    "avx2", "bmi",    "bmi2", "f16c", "fma",    "lzcnt",  "movbe", "xsave"};

namespace attn::targets {
extern const Target x86_64_v3;
const Target x86_64_v3 = {
    /*level=*/"x86-64-v3",
    /*triple=*/"x86_64-unknown-linux-gnu",
    /*cpu=*/"x86-64-v3",
    /*features=*/kFeatures,
    /*vectorBits=*/256,
    /*lanes=*/8,
    /*registers=*/16,
    /*fma=*/true,
    // The caches of Haswell, the smallest of this level.
    /*l1=*/32 * 1024,
    /*l2=*/256 * 1024,
    /*scalef=*/false,
    /*halves=*/true,
};
} // namespace attn::targets
