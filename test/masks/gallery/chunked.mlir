// Chunked attention as in Llama 4: causal within chunks of 16 tokens. A named mask states the causal condition, and a
// boolean tensor states whether query and key are in the same chunk. Loops skip the tiles that either of them hides.

// RUN: attn-run %s --reference --opt-report | FileCheck %s
// CHECK: attention fused, schedule per-head, tiles of 16 queries and 32 keys, mask #attn.and<[#attn.causal, #attn.dense<0>]>, tiles skipped
// CHECK: tiles: 8 run, 8 skipped
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
    %chunk = arith.constant 16 : index
    %of_query = arith.divsi %i, %chunk : index
    %of_key = arith.divsi %j, %chunk : index
    %same = arith.cmpi eq, %of_query, %of_key : index
    %causal = arith.cmpi sle, %j, %i : index
    %keep = arith.andi %same, %causal : i1
    %inf = arith.constant 0xFF800000 : f32
    %r = arith.select %keep, %s, %inf : f32
    attn.yield %r : f32
  } -> tensor<2x64x8xf32>
  return %o : tensor<2x64x8xf32>
}
