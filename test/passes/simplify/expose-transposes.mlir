// RUN: attn-opt %s -attn-expose-transposes | FileCheck %s

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d3, d5)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d3, d2)>
// CHECK-DAG: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d5)>

// CHECK-LABEL: @token_major
// CHECK-SAME: %[[Q0:.*]]: tensor<2x?x3x4xf32>, %[[K0:.*]]: tensor<2x4x3x?xf32>, %[[V0:.*]]: tensor<?x8xf32>, %[[BIAS:.*]]: tensor<?x?xf32>
// CHECK: %[[Q1:.*]] = linalg.transpose ins(%[[Q0]] : {{.*}}) outs(%{{.*}} : tensor<2x3x?x4xf32>) permutation = [0, 2, 1, 3]
// CHECK: %[[K1:.*]] = linalg.transpose ins(%[[K0]] : {{.*}}) outs(%{{.*}} : tensor<2x3x?x4xf32>) permutation = [0, 2, 3, 1]
// CHECK-NOT: linalg.transpose
// CHECK: attn.attention ins(%[[Q1]], %[[K1]], %[[V0]] : {{.*}}) captures(%[[BIAS]]
// CHECK-SAME: indexing_maps = [#[[Q]], #[[K]], #[[V]], #[[C]], #[[O]]]
func.func @token_major(%q: tensor<2x?x3x4xf32>, %k: tensor<2x4x3x?xf32>, %v: tensor<?x8xf32>, %bias: tensor<?x?xf32>,
                       %e: tensor<2x?x3x8xf32>) -> tensor<2x?x3x8xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x?x3x4xf32>, tensor<2x4x3x?xf32>, tensor<?x8xf32>)
      captures(%bias : tensor<?x?xf32>) outs(%e : tensor<2x?x3x8xf32>) {
      indexing_maps = [affine_map<(b, h, q, k, d, e) -> (b, q, h, d)>, affine_map<(b, h, q, k, d, e) -> (b, d, h, k)>,
                       affine_map<(b, h, q, k, d, e) -> (k, e)>, affine_map<(b, h, q, k, d, e) -> (k, q)>,
                       affine_map<(b, h, q, k, d, e) -> (b, q, h, e)>], scale = 5.000000e-01 : f32} score {
  ^bb0(%b: index, %h: index, %i: index, %j: index, %s: f32, %x: f32):
    %t = arith.addf %s, %x : f32
    attn.yield %t : f32
  } -> tensor<2x?x3x8xf32>
  return %o : tensor<2x?x3x8xf32>
}
