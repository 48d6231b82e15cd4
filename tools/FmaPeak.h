//===- FmaPeak.h - what this core can do at best ----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_FMAPEAK_H
#define ATTN_TOOLS_FMAPEAK_H

namespace attn {

/// A loop of independent f32 multiply-adds in registers. They take half of what a core issues, and
/// so would not see that a thread which shares the core takes the other half: nops fill it.
struct FmaLoop {
  /// With vectors of 16, 8 or 4 lanes, which this CPU has.
  static FmaLoop get(unsigned lanes);
  /// With the widest that this CPU has.
  static FmaLoop getWidest();

  void (*run)(long steps);
  double flopPerStep;
};

/// The f32 multiply-add rate of the calling thread in GFLOP/s: the best burst of the widest loop
/// within `seconds`.
double measureFmaPeak(double seconds);

} // namespace attn

#endif // ATTN_TOOLS_FMAPEAK_H
