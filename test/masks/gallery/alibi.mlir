// ALiBi: a bias in proportion to the distance, with a slope for each head, and a causal mask.

// RUN: attn-run %s --reference --opt-report | FileCheck %s
// CHECK: attention fused, schedule per-head, tiles of 16 queries and 16 keys, mask #attn.causal
// CHECK: tiles: 20 run, 12 skipped
// CHECK: output 0: error {{[0-9.]+}}e-0{{[6-9]}},

func.func @f(%q: tensor<2x64x8xf32>, %k: tensor<2x64x8xf32>, %v: tensor<2x64x8xf32>) -> tensor<2x64x8xf32> {
  %slopes = arith.constant dense<[0.25, 0.0625]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2x64x8xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x64x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>) captures(%slopes : tensor<2xf32>)
      outs(%e : tensor<2x64x8xf32>) plan(<"per-head", q = 16, k = 16>) {
      indexing_maps = [affine_map<(h, q, k, d, e) -> (h, q, d)>, affine_map<(h, q, k, d, e) -> (h, k, d)>,
                       affine_map<(h, q, k, d, e) -> (h, k, e)>, affine_map<(h, q, k, d, e) -> (h)>,
                       affine_map<(h, q, k, d, e) -> (h, q, e)>],
      scale = 0.353553385 : f32} score {
  ^bb0(%h: index, %i: index, %j: index, %s: f32, %c0: f32):
    %i32 = arith.index_cast %i : index to i32
    %j32 = arith.index_cast %j : index to i32
    %far = arith.subi %j32, %i32 : i32
    %distance = arith.sitofp %far : i32 to f32
    %bias = arith.mulf %distance, %c0 : f32
    %biased = arith.addf %s, %bias : f32
    %keep = arith.cmpi sle, %j, %i : index
    %inf = arith.constant 0xFF800000 : f32
    %r = arith.select %keep, %biased, %inf : f32
    attn.yield %r : f32
  } -> tensor<2x64x8xf32>
  return %o : tensor<2x64x8xf32>
}
