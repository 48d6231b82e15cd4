//===- NeoverseV1.h - the speed of NEON ------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_TARGETS_NEOVERSEV1_H
#define ATTN_CODEGEN_CPU_TARGETS_NEOVERSEV1_H

#include "codegen/cpu/Cpu.h"

namespace attn::targets {

/// The speed of Neoverse V1, which stands for all CPUs with NEON. The numbers are those of Arm's Neoverse V1 Software
/// Optimization Guide, as LLVM's scheduling model of this core has them; `benchmark/mca.py --pipelines` prints them for
/// this and for other cores. A multiply-add that adds to the result of another one gets this result after two cycles.
inline constexpr Pipelines kNeoverseV1 = {
    /*multiplies=*/4, /*loads=*/3, /*stores=*/2, /*latency=*/2, /*exponential=*/22};

} // namespace attn::targets

#endif // ATTN_CODEGEN_CPU_TARGETS_NEOVERSEV1_H
