//===- Modules.h - the MLIR modules of benchmark cases ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Each function returns the text of a module with @forward, in the form that importers produce. The
// compiler chooses the plan of an attention unless `plan` gives one, such as
// #attn.plan<phased, q = 48, k = 96>.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_MODULES_H
#define ATTN_BENCHMARK_MODULES_H

#include "benchmark/Shapes.h"

#include "llvm/ADT/StringRef.h"

namespace attn::bench {

/// Whether a product skips the zeros of the second matrix (Zeros), as attention skips the probabilities of
/// masked pairs, or adds up all terms (None).
enum class Guard { None, Zeros };

/// (a: m x k, b: k x n) -> a b
std::string writeProduct(const ProductShape &shape, Guard guard);

/// (x: m x k; weights w: n x k, b: n) -> x w^T + b
std::string writeProjection(const ProductShape &shape);

/// (q, k, v: batch x heads x length x depth) -> attention
std::string writeAttention(const AttentionShape &shape, llvm::StringRef plan = "");

/// (x: batch x length x width; weights qkv.weight, qkv.bias, out.weight, out.bias) -> the layer
std::string writeLayer(const AttentionShape &shape, llvm::StringRef plan = "");

} // namespace attn::bench

#endif // ATTN_BENCHMARK_MODULES_H
