// RUN: not attn-opt %s -attn-plan=schedule=whole 2>&1 | FileCheck %s
// CHECK: expected a schedule, got 'whole'

module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 1048576, has = fma>} {
  func.func @forward() {
    return
  }
}
