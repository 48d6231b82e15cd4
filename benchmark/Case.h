//===- Case.h - something to measure ----------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_CASE_H
#define ATTN_BENCHMARK_CASE_H

#include "benchmark/Shapes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <functional>

namespace attn::bench {

/// Something to compute, by attn and by OpenBLAS.
struct Case {
  std::string name;
  double flop;
  std::string module; ///< of @forward, see Modules.h
  /// The same from the arguments of @forward, inputs before weights.
  std::function<void(llvm::ArrayRef<const float *> arguments, float *result)> openblas;
};

/// Attention alone: softmax(Q K^T / sqrt(d)) V. `plan` as in Modules.h.
Case getAttention(const AttentionShape &shape, llvm::StringRef plan = "");

/// A whole layer: the projection to queries, keys and values, attention, the output projection.
Case getLayer(const AttentionShape &shape, llvm::StringRef plan = "");

} // namespace attn::bench

#endif // ATTN_BENCHMARK_CASE_H
