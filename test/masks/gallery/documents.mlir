// Packed sequences: a query attends to the keys of its own document. The documents have 20, 8 and 36 tokens. A boolean
// tensor states this condition, and loops skip the tiles that it hides.

// RUN: attn-run %s --reference --opt-report | FileCheck %s
// CHECK: attention fused, schedule per-head, tiles of 16 queries and 32 keys, mask #attn.dense<0>, tiles skipped
// CHECK: tiles: 14 run, 2 skipped
// CHECK: output 0: error {{[0-9.]+}}e-0{{[6-9]}},

func.func @f(%q: tensor<2x64x8xf32>, %k: tensor<2x64x8xf32>, %v: tensor<2x64x8xf32>) -> tensor<2x64x8xf32> {
  %ids = arith.constant dense<"0x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100000001000000010000000100000001000000010000000100000001000000020000000200000002000000020000000200000002000000020000000200000002000000020000000200000002000000020000000200000002000000020000000200000002000000020000000200000002000000020000000200000002000000020000000200000002000000020000000200000002000000020000000200000002000000020000000200000002000000"> : tensor<64xi32>
  %e = tensor.empty() : tensor<2x64x8xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x64x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>) captures(%ids, %ids : tensor<64xi32>, tensor<64xi32>)
      outs(%e : tensor<2x64x8xf32>) plan(<"per-head", q = 16, k = 32>) {
      indexing_maps = [affine_map<(h, q, k, d, e) -> (h, q, d)>, affine_map<(h, q, k, d, e) -> (h, k, d)>,
                       affine_map<(h, q, k, d, e) -> (h, k, e)>, affine_map<(h, q, k, d, e) -> (q)>, affine_map<(h, q, k, d, e) -> (k)>,
                       affine_map<(h, q, k, d, e) -> (h, q, e)>],
      scale = 0.353553385 : f32} score {
  ^bb0(%h: index, %i: index, %j: index, %s: f32, %c0: i32, %c1: i32):
    %keep = arith.cmpi eq, %c0, %c1 : i32
    %inf = arith.constant 0xFF800000 : f32
    %r = arith.select %keep, %s, %inf : f32
    attn.yield %r : f32
  } -> tensor<2x64x8xf32>
  return %o : tensor<2x64x8xf32>
}
