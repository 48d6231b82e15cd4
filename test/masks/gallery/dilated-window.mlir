// Dilated sliding window: every second key of the last 16. A named mask states the window, which lets loops skip tiles. A
// boolean tensor states whether the distance is even, which hides no whole tile.

// RUN: attn-run %s --reference --opt-report | FileCheck %s
// CHECK: attention fused, schedule per-head, tiles of 16 queries and 32 keys, mask #attn.and<[#attn.window<left = 15, right = 0>, #attn.dense<0>]>, tiles skipped
// CHECK: tiles: 10 run, 6 skipped
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
    %two = arith.constant 2 : index
    %zero = arith.constant 0 : index
    %width = arith.constant 16 : index
    %rest = arith.remsi %distance, %two : index
    %strided = arith.cmpi eq, %rest, %zero : index
    %first = arith.subi %i, %width : index
    %late = arith.cmpi sgt, %j, %first : index
    %early = arith.cmpi sle, %j, %i : index
    %window = arith.andi %late, %early : i1
    %keep = arith.andi %window, %strided : i1
    %inf = arith.constant 0xFF800000 : f32
    %r = arith.select %keep, %s, %inf : f32
    attn.yield %r : f32
  } -> tensor<2x64x8xf32>
  return %o : tensor<2x64x8xf32>
}
