//===- Case.h - a row of a benchmark ----------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_CASE_H
#define ATTN_BENCHMARK_CASE_H

#include "codegen/Target.h"

#include <functional>
#include <string>
#include <vector>

namespace attn::bench {

/// Something to compute, by attn and by OpenBLAS.
struct Case {
  std::string name;
  double flop;
  std::string module; ///< of @forward, see Modules.h
  /// The same from the arguments of @forward, inputs before weights.
  std::function<void(llvm::ArrayRef<const float *> arguments, float *result)> openblas;
};

/// What a program measures on a target. Each program defines its own; Main.cpp does the rest.
std::vector<Case> getCases(const Target &target);

} // namespace attn::bench

#endif // ATTN_BENCHMARK_CASE_H
