//===- FmaPeak.h - peak multiply-add rate of this core ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_FMAPEAK_H
#define ATTN_TOOLS_CALL_FMAPEAK_H

namespace attn {

/// A loop of independent f32 multiply-adds in registers. The multiply-adds use half of the issue
/// slots of a core. Nops use the other half, so that the loop becomes slower if another thread
/// shares the core.
struct FmaLoop {
  /// The loop on vectors of 16, 8 or 4 lanes, which this CPU must support.
  static FmaLoop get(unsigned lanes);
  /// The loop on the widest vectors of this CPU.
  static FmaLoop getWidest();

  void (*run)(long steps);
  double flopPerStep;
};

/// Measures the f32 multiply-add rate of the calling thread in GFLOP/s: the fastest burst of the
/// widest loop within `seconds`.
double measureFmaPeak(double seconds);

} // namespace attn

#endif // ATTN_TOOLS_CALL_FMAPEAK_H
