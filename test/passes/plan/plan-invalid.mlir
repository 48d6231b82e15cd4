// RUN: not attn-opt %s -attn-plan=schedule=whole 2>&1 | FileCheck %s
// CHECK: expected a schedule, got 'whole'

module attributes {attn.target = #attn.target<"x86-64-v3", lanes = 8, registers = 16, fma = true, l1 = 32768, l2 = 1048576>} {
  func.func @forward() {
    return
  }
}
