//===- Fill.h - scores that hide a pair ----------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_FILL_H
#define ATTN_PASSES_RAISE_FILL_H

namespace attn {

/// Half the least float: beside scores within half the greatest float, a fill of at most this gets probability 0.
inline constexpr double kGreatestFiniteFill = -0x1p127;

} // namespace attn

#endif // ATTN_PASSES_RAISE_FILL_H
