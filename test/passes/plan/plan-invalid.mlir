// RUN: attn-opt %s -attn-plan=schedule=whole-scores -verify-diagnostics
// RUN: not attn-opt %s -attn-plan=schedule=whole 2>&1 | FileCheck %s
// CHECK: expected a schedule, got 'whole'

// One tile of all keys has a size.
module attributes {attn.target = #attn.target<"x86-64-v3", lanes = 8, registers = 16, fma = true, l1 = 32768, l2 = 1048576>} {
  func.func @dynamic(%x: tensor<?x8xf32>, %e: tensor<?x8xf32>) -> tensor<?x8xf32> {
    // expected-error@+1 {{expected a number of keys that is known for schedule whole-scores, got one that is not}}
    %o = attn.attention ins(%x, %x, %x : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>)
        {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>,
                          affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>],
         scale = 1.0 : f32} -> tensor<?x8xf32>
    return %o : tensor<?x8xf32>
  }
}
