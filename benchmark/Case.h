//===- Case.h - one benchmark case ------------------------------*- C++ -*-===//
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

/// A computation that both attn and OpenBLAS perform.
struct Case {
  std::string name;
  double flop;
  std::string module; ///< the MLIR module with @forward, see Modules.h
  /// Computes the same result from the arguments of @forward, inputs before weights.
  std::function<void(llvm::ArrayRef<const float *> arguments, float *result)> openblas;
};

/// Attention alone: softmax(Q K^T / sqrt(d)) V. For `plan`, see Modules.h.
Case getAttention(const AttentionShape &shape, llvm::StringRef plan = "");

/// A whole layer: the projection to queries, keys and values, attention, the output projection.
Case getLayer(const AttentionShape &shape, llvm::StringRef plan = "");

} // namespace attn::bench

#endif // ATTN_BENCHMARK_CASE_H
