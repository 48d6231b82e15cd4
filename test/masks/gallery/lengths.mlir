// Padding: sequences of 20 and 64 keys.

// RUN: attn-run %s --reference --opt-report | FileCheck %s
// CHECK: attention fused, schedule per-head, tiles of 16 queries and 16 keys, mask #attn.lengths<0>, tiles skipped: known at the call
// CHECK: tiles: 24 run, 8 skipped
// CHECK: output 0: error {{[0-9.]+}}e-0{{[6-9]}},

func.func @f(%q: tensor<2x64x8xf32>, %k: tensor<2x64x8xf32>, %v: tensor<2x64x8xf32>) -> tensor<2x64x8xf32> {
  %lengths = arith.constant dense<[20, 64]> : tensor<2xi32>
  %e = tensor.empty() : tensor<2x64x8xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x64x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>) captures(%lengths : tensor<2xi32>)
      outs(%e : tensor<2x64x8xf32>) plan(<"per-head", q = 16, k = 16>) {
      indexing_maps = [affine_map<(h, q, k, d, e) -> (h, q, d)>, affine_map<(h, q, k, d, e) -> (h, k, d)>,
                       affine_map<(h, q, k, d, e) -> (h, k, e)>, affine_map<(h, q, k, d, e) -> (h)>,
                       affine_map<(h, q, k, d, e) -> (h, q, e)>],
      scale = 0.353553385 : f32} score {
  ^bb0(%h: index, %i: index, %j: index, %s: f32, %c0: i32):
    %length = arith.index_cast %c0 : i32 to index
    %keep = arith.cmpi slt, %j, %length : index
    %inf = arith.constant 0xFF800000 : f32
    %r = arith.select %keep, %s, %inf : f32
    attn.yield %r : f32
  } -> tensor<2x64x8xf32>
  return %o : tensor<2x64x8xf32>
}
