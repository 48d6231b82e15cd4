// NATTEN: on a grid of 8 x 8 tokens, a query attends to a square of 3 x 3 keys around it. At the border, the square is
// moved inside the grid. A boolean tensor states this condition, and loops skip the tiles that it hides.

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
    %one = arith.constant 1 : index
    %six = arith.constant 6 : index
    %eight = arith.constant 8 : index
    %qy = arith.divsi %i, %eight : index
    %qx = arith.remsi %i, %eight : index
    %ky = arith.divsi %j, %eight : index
    %kx = arith.remsi %j, %eight : index
    %low = arith.maxsi %qy, %one : index
    %cy = arith.minsi %low, %six : index
    %left = arith.maxsi %qx, %one : index
    %cx = arith.minsi %left, %six : index
    %dy = arith.subi %ky, %cy : index
    %dx = arith.subi %kx, %cx : index
    %ay = math.absi %dy : index
    %ax = math.absi %dx : index
    %near_y = arith.cmpi sle, %ay, %one : index
    %near_x = arith.cmpi sle, %ax, %one : index
    %keep = arith.andi %near_y, %near_x : i1
    %inf = arith.constant 0xFF800000 : f32
    %r = arith.select %keep, %s, %inf : f32
    attn.yield %r : f32
  } -> tensor<2x64x8xf32>
  return %o : tensor<2x64x8xf32>
}
