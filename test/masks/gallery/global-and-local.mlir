// Longformer and BigBird: a window of 8 keys on each side. In addition, 4 tokens attend to all keys, and all queries
// attend to these tokens. A boolean tensor states this condition. It hides no whole tile of 32 keys.

// RUN: attn-run %s --reference --opt-report | FileCheck %s
// CHECK: attention fused, schedule per-head, tiles of 16 queries and 32 keys, mask #attn.dense<0>, tiles skipped
// CHECK: tiles: 16 run, 0 skipped
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
    %distance = arith.subi %i, %j : index
    %far = math.absi %distance : index
    %eight = arith.constant 8 : index
    %four = arith.constant 4 : index
    %local = arith.cmpi sle, %far, %eight : index
    %global_key = arith.cmpi slt, %j, %four : index
    %global_query = arith.cmpi slt, %i, %four : index
    %global = arith.ori %global_key, %global_query : i1
    %keep = arith.ori %local, %global : i1
    %inf = arith.constant 0xFF800000 : f32
    %r = arith.select %keep, %s, %inf : f32
    attn.yield %r : f32
  } -> tensor<2x64x8xf32>
  return %o : tensor<2x64x8xf32>
}
