// RUN: attn-opt %s -attn-to-simplify | FileCheck %s

// The layer: x -> packed projection -> [B,S,3,H,D] -> [B,H,3,S,D] -> three slices -> attention -> [B,S,C] ->
// projection.

// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>
// CHECK-DAG: #[[W:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4)>
// CHECK-DAG: #[[Y:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d5)>

// CHECK-LABEL: @layer
// CHECK-SAME: %[[X0:.*]]: tensor<?x?x16xf32> {{{.*}}}, %[[W0:.*]]: tensor<48x16xf32>, %[[B0:.*]]: tensor<48xf32>,
// CHECK: %[[Q:.*]] = linalg.contract indexing_maps = [#[[X]], #[[W]], #[[Y]]] ins(%[[X0]], %{{.*}} : tensor<?x?x16xf32>, tensor<4x4x16xf32>)
// CHECK: linalg.contract indexing_maps = [#[[X]], #[[W]], #[[Y]]] ins(%[[X0]],
// CHECK: linalg.contract indexing_maps = [#[[X]], #[[W]], #[[Y]]] ins(%[[X0]],
// CHECK-NOT: linalg.transpose
// CHECK: %[[A:.*]] = attn.attention ins(%[[Q]], %{{.*}}, %{{.*}} : tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>) outs(%{{.*}} : tensor<?x?x4x4xf32>)
// CHECK-SAME: #[[O]]]
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[A]] {{\[\[}}0], [1], [2, 3]]
// CHECK: linalg.contract {{.*}} ins(%[[C]]
// CHECK-NOT: tensor.dim
#x = affine_map<(b,s,n,c)->(b,s,c)>
#w = affine_map<(b,s,n,c)->(n,c)>
#o = affine_map<(b,s,n,c)->(b,s,n)>
func.func @layer(%x: tensor<?x?x16xf32> {attn.name = "x", attn.dims = ["x.0", "x.1", ""]}, %w: tensor<48x16xf32>, %bias: tensor<48xf32>, %wo: tensor<16x16xf32>) -> tensor<?x?x16xf32> attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 4096>, #attn.symbol<"x.1", 0 to 4096>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %b = tensor.dim %x, %c0 : tensor<?x?x16xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x16xf32>
  %e = tensor.empty(%b, %s) : tensor<?x?x48xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x?x48xf32>) -> tensor<?x?x48xf32>
  %y = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<?x?x16xf32>, tensor<48x16xf32>) outs(%f : tensor<?x?x48xf32>) -> tensor<?x?x48xf32>
  %yb = linalg.generic {indexing_maps = [affine_map<(b,s,n)->(b,s,n)>, affine_map<(b,s,n)->(n)>, affine_map<(b,s,n)->(b,s,n)>], iterator_types = ["parallel","parallel","parallel"]}
    ins(%y, %bias : tensor<?x?x48xf32>, tensor<48xf32>) outs(%e : tensor<?x?x48xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<?x?x48xf32>
  %v5 = tensor.expand_shape %yb [[0],[1],[2,3,4]] output_shape [%b, %s, 3, 4, 4] : tensor<?x?x48xf32> into tensor<?x?x3x4x4xf32>
  %te = tensor.empty(%b, %s) : tensor<?x4x3x?x4xf32>
  %t5 = linalg.transpose ins(%v5 : tensor<?x?x3x4x4xf32>) outs(%te : tensor<?x4x3x?x4xf32>) permutation = [0, 3, 2, 1, 4]
  %q = tensor.extract_slice %t5[0,0,0,0,0][%b,4,1,%s,4][1,1,1,1,1] : tensor<?x4x3x?x4xf32> to tensor<?x4x?x4xf32>
  %k = tensor.extract_slice %t5[0,0,1,0,0][%b,4,1,%s,4][1,1,1,1,1] : tensor<?x4x3x?x4xf32> to tensor<?x4x?x4xf32>
  %v = tensor.extract_slice %t5[0,0,2,0,0][%b,4,1,%s,4][1,1,1,1,1] : tensor<?x4x3x?x4xf32> to tensor<?x4x?x4xf32>
  %kte = tensor.empty(%b, %s) : tensor<?x4x4x?xf32>
  %kt = linalg.transpose ins(%k : tensor<?x4x?x4xf32>) outs(%kte : tensor<?x4x4x?xf32>) permutation = [0, 1, 3, 2]
  %ae = tensor.empty(%b, %s) : tensor<?x4x?x4xf32>
  %a = attn.attention ins(%q, %kt, %v : tensor<?x4x?x4xf32>, tensor<?x4x4x?xf32>, tensor<?x4x?x4xf32>) outs(%ae : tensor<?x4x?x4xf32>) {
     indexing_maps = [affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>,
                         affine_map<(b, h, q, k, d, e) -> (b, h, d, k)>,
                         affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>,
                         affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>],
        scale = 0.5 : f32} -> tensor<?x4x?x4xf32>
  %ate = tensor.empty(%b, %s) : tensor<?x?x4x4xf32>
  %at = linalg.transpose ins(%a : tensor<?x4x?x4xf32>) outs(%ate : tensor<?x?x4x4xf32>) permutation = [0, 2, 1, 3]
  %ac = tensor.collapse_shape %at [[0],[1],[2,3]] : tensor<?x?x4x4xf32> into tensor<?x?x16xf32>
  %oe = tensor.empty(%b, %s) : tensor<?x?x16xf32>
  %of = linalg.fill ins(%z : f32) outs(%oe : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %o = linalg.contract indexing_maps = [#x, #w, #o] ins(%ac, %wo : tensor<?x?x16xf32>, tensor<16x16xf32>) outs(%of : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  return %o : tensor<?x?x16xf32>
}
