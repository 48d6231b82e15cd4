//===- Cpu.h - the family of CPUs --------------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_CPU_H
#define ATTN_CODEGEN_CPU_CPU_H

#include "codegen/Target.h"

namespace attn {

/// The bytes of a way of L1 on most x86-64 CPUs. Elements that lie a multiple of this number apart share a set of L1,
/// which has only a few cache lines.
inline constexpr int64_t kWayBytes = 4096;

/// The parameters of #attn.pipelines.
struct Pipelines {
  unsigned multiplies, loads, stores, latency, exponential;
};

/// An ISA level of CPUs, such as x86-64-v3. Each level has a file in codegen/cpu/targets/.
struct CpuTarget : Target {
  /// LLVM's name of the CPU, which defines the available instructions and the scheduling model.
  llvm::StringLiteral cpu;
  /// The parameters of #attn.cpu.
  unsigned vector, registers, spare, l1, l2;
  CpuCapabilities has;
  /// Null for the default of #attn.cpu.
  const Pipelines *pipelines;

  constexpr CpuTarget(llvm::StringLiteral level, llvm::StringLiteral triple,
                      llvm::StringLiteral cpu, llvm::ArrayRef<llvm::StringLiteral> features,
                      unsigned vector, unsigned registers, unsigned spare, unsigned l1, unsigned l2,
                      CpuCapabilities has, const Pipelines *pipelines = nullptr)
      : Target{level, triple, features, makeCpuAttr}, cpu(cpu), vector(vector),
        registers(registers), spare(spare), l1(l1), l2(l2), has(has), pipelines(pipelines) {}

private:
  static TargetInterface makeCpuAttr(const Target &target, mlir::MLIRContext *context);
};

extern const TargetFamily kCpuFamily;

} // namespace attn

#endif // ATTN_CODEGEN_CPU_CPU_H
