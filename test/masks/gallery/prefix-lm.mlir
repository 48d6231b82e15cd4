// Prefix-LM: a causal mask, but all queries attend to the prefix of 20 keys. No named mask states a union of masks, so a
// boolean tensor does, and loops skip the tiles that it hides.

// RUN: attn-run %s --reference --opt-report | FileCheck %s
// CHECK: attention fused, schedule per-head, tiles of 16 queries and 32 keys, mask #attn.dense<0>, tiles skipped
// CHECK: tiles: 12 run, 4 skipped
// CHECK: output 0: error {{[0-9.]+}}e-0{{[6-9]}},

func.func @f(%q: tensor<2x64x8xf32>, %k: tensor<2x64x8xf32>, %v: tensor<2x64x8xf32>) -> tensor<2x64x8xf32> {
  %e = tensor.empty() : tensor<2x64x8xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x64x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>)
      outs(%e : tensor<2x64x8xf32>) plan(<"per-head", q = 16, k = 32>) {
      indexing_maps = [affine_map<(h, q, k, d, e) -> (h, q, d)>, affine_map<(h, q, k, d, e) -> (h, k, d)>,
                       affine_map<(h, q, k, d, e) -> (h, k, e)>,
                       affine_map<(h, q, k, d, e) -> (h, q, e)>],
      scale = 0.353553385 : f32} score {
  ^bb0(%h: index, %i: index, %j: index, %s: f32):
    %prefix = arith.constant 20 : index
    %in = arith.cmpi slt, %j, %prefix : index
    %causal = arith.cmpi sle, %j, %i : index
    %keep = arith.ori %in, %causal : i1
    %inf = arith.constant 0xFF800000 : f32
    %r = arith.select %keep, %s, %inf : f32
    attn.yield %r : f32
  } -> tensor<2x64x8xf32>
  return %o : tensor<2x64x8xf32>
}
