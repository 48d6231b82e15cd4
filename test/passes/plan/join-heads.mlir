// RUN: attn-opt %s -attn-join-heads -canonicalize | FileCheck %s

#x = affine_map<(b, h, s, d, c) -> (b, s, c)>
#w = affine_map<(b, h, s, d, c) -> (h, d, c)>
#y = affine_map<(b, h, s, d, c) -> (b, h, s, d)>
#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#o = affine_map<(b, h, q, k, d, e) -> (b, q, h, e)>
#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.target = #v4} {
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d4)>
// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[W:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
// CHECK-DAG: #[[Y:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: @heads_of_8(
// CHECK-SAME: %[[IN:[a-z0-9]*]]: tensor<2x?x64xf32>, %[[WQ:[a-z0-9]*]]: tensor<8x8x64xf32>
// CHECK: %[[J:.*]] = tensor.collapse_shape %[[WQ]] {{\[}}[0, 1], [2]] : tensor<8x8x64xf32> into tensor<64x64xf32>
// CHECK: %[[P:.*]] = linalg.contract indexing_maps = [#[[X]], #[[W]], #[[Y]]] ins(%[[IN]], %[[J]] :
// CHECK: %[[H:.*]] = tensor.expand_shape %[[P]] {{\[}}[0], [1], [2, 3]] {{.*}} into tensor<2x?x8x8xf32>
// CHECK: attn.attention ins(%[[H]], %{{.*}}, %{{.*}} : tensor<2x?x8x8xf32>, tensor<2x?x8x8xf32>, tensor<2x?x8x8xf32>)
// CHECK-SAME: indexing_maps = [#[[Q]]
func.func @heads_of_8(%x: tensor<2x?x64xf32>, %wq: tensor<8x8x64xf32>, %wk: tensor<8x8x64xf32>, %wv: tensor<8x8x64xf32>, %b: tensor<8x8xf32>,
                      %s: index, %o: tensor<2x?x8x8xf32>) -> tensor<2x?x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%s) : tensor<2x8x?x8xf32>
  %i0 = linalg.broadcast ins(%b : tensor<8x8xf32>) outs(%e : tensor<2x8x?x8xf32>) dimensions = [0, 2]
  %i1 = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  %i2 = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  %q = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wq : tensor<2x?x64xf32>, tensor<8x8x64xf32>) outs(%i0 : tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wk : tensor<2x?x64xf32>, tensor<8x8x64xf32>) outs(%i1 : tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  %v = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wv : tensor<2x?x64xf32>, tensor<8x8x64xf32>) outs(%i2 : tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  %r = attn.attention ins(%q, %k, %v : tensor<2x8x?x8xf32>, tensor<2x8x?x8xf32>, tensor<2x8x?x8xf32>) outs(%o : tensor<2x?x8x8xf32>)
      plan(<phased, q = 16, k = 14>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x?x8x8xf32>
  return %r : tensor<2x?x8x8xf32>
}

// With the schedule per-head, heads are not joined, because each task computes one head.
// CHECK-LABEL: @per_head(
// CHECK-NOT: tensor.expand_shape
// CHECK: return
func.func @per_head(%x: tensor<2x?x64xf32>, %wq: tensor<8x8x64xf32>, %wk: tensor<8x8x64xf32>, %wv: tensor<8x8x64xf32>,
                    %s: index, %o: tensor<2x?x8x8xf32>) -> tensor<2x?x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%s) : tensor<2x8x?x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  %q = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wq : tensor<2x?x64xf32>, tensor<8x8x64xf32>) outs(%i : tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wk : tensor<2x?x64xf32>, tensor<8x8x64xf32>) outs(%i : tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  %v = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wv : tensor<2x?x64xf32>, tensor<8x8x64xf32>) outs(%i : tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  %r = attn.attention ins(%q, %k, %v : tensor<2x8x?x8xf32>, tensor<2x8x?x8xf32>, tensor<2x8x?x8xf32>) outs(%o : tensor<2x?x8x8xf32>)
      plan(<"per-head", q = 16, k = 14>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x?x8x8xf32>
  return %r : tensor<2x?x8x8xf32>
}
}
