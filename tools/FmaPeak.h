//===- FmaPeak.h - what this core can do at best ----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_FMAPEAK_H
#define ATTN_TOOLS_FMAPEAK_H

namespace attn {

/// The f32 multiply-add rate of the calling thread in GFLOP/s: the best burst within `seconds` of
/// independent multiply-adds in registers, as wide as this CPU has them.
double measureFmaPeak(double seconds);

} // namespace attn

#endif // ATTN_TOOLS_FMAPEAK_H
