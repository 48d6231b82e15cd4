// RUN: attn-opt %s -attn-decompose-steps | FileCheck %s

// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[$AT:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>

// Probabilities of hidden pairs are 0, and 0 * NaN is NaN: the second product skips them.
// CHECK-LABEL: @masked(
// CHECK-SAME: %[[Q:[^ ]*]]: tensor<64x48xf32>, %[[K:.*]]: tensor<?x64xf32>, %[[V:.*]]: tensor<?x32xf32>, %[[S:.*]]: tensor<?x48xf32>, %[[M:.*]]: tensor<48xf32>, %[[L:.*]]: tensor<48xf32>, %[[ACC:.*]]: tensor<32x48xf32>,
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[S0:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[S]] :
// CHECK: %[[S1:.*]] = linalg.contract indexing_maps = [#[[$A]], #[[$B]], #[[$C]]] ins(%[[K]], %[[Q]] : {{.*}}) outs(%[[S0]] :
// CHECK: %[[U:.*]]:4 = attn.online_update outs(%[[S1]], %[[M]], %[[L]], %[[ACC]] : {{.*}} mask(#attn.causal)
// CHECK: %[[O:.*]] = linalg.generic {indexing_maps = [#[[$B]], #[[$AT]], #[[$C]]], {{.*}}} ins(%[[U]]#0, %[[V]] : {{.*}}) outs(%[[U]]#3 :
// CHECK-NEXT: ^bb0(%[[P:.*]]: f32, %[[VALUE:.*]]: f32, %[[SUM:.*]]: f32):
// CHECK-NEXT: %[[LIVE:.*]] = arith.cmpf une, %[[P]], %[[ZERO]]
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[P]], %[[VALUE]]
// CHECK-NEXT: %[[ADDED:.*]] = arith.addf %[[SUM]], %[[PRODUCT]]
// CHECK-NEXT: %[[KEPT:.*]] = arith.select %[[LIVE]], %[[ADDED]], %[[SUM]]
// CHECK-NEXT: linalg.yield %[[KEPT]]
// CHECK: return %[[U]]#1, %[[U]]#2, %[[O]]
func.func @masked(%q: tensor<64x48xf32>, %k: tensor<?x64xf32>, %v: tensor<?x32xf32>, %s: tensor<?x48xf32>, %m: tensor<48xf32>, %l: tensor<48xf32>, %a: tensor<32x48xf32>,
                  %b: index, %i: index, %j: index) -> (tensor<48xf32>, tensor<48xf32>, tensor<32x48xf32>) {
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<64x48xf32>, tensor<?x64xf32>, tensor<?x32xf32>)
      outs(%s, %m, %l, %a : tensor<?x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<32x48xf32>)
      at(%b, %i, %j) mask(#attn.causal) {capture_maps = [], scale = 1.25e-01 : f32} -> tensor<?x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<32x48xf32>
  return %r#1, %r#2, %r#3 : tensor<48xf32>, tensor<48xf32>, tensor<32x48xf32>
}

// Without a mask both products are plain; captured tiles and the score region go to the update.
// CHECK-LABEL: @full(
// CHECK-SAME: %[[V:[^ ]*]]: tensor<128x32xf32>, %[[CAPTURED:[^ ]*]]: tensor<128x48xf32>,
// CHECK: %[[S:.*]] = linalg.contract
// CHECK: %[[U:.*]]:4 = attn.online_update captures(%[[CAPTURED]] : tensor<128x48xf32>) outs(%[[S]],
// CHECK: arith.addf
// CHECK: attn.yield
// CHECK: %[[O:.*]] = linalg.contract indexing_maps = [#[[$AT]], #[[$B]], #[[$C]]] ins(%[[V]], %[[U]]#0 : {{.*}}) outs(%[[U]]#3 :
// CHECK: return %[[U]]#1, %[[U]]#2, %[[O]]
func.func @full(%q: tensor<64x48xf32>, %k: tensor<128x64xf32>, %v: tensor<128x32xf32>, %c: tensor<128x48xf32>, %s: tensor<128x48xf32>, %m: tensor<48xf32>, %l: tensor<48xf32>, %a: tensor<32x48xf32>,
                %i: index, %j: index) -> (tensor<48xf32>, tensor<48xf32>, tensor<32x48xf32>) {
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<64x48xf32>, tensor<128x64xf32>, tensor<128x32xf32>) captures(%c : tensor<128x48xf32>)
      outs(%s, %m, %l, %a : tensor<128x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<32x48xf32>)
      at(%i, %j) {capture_maps = [affine_map<(k, q) -> (k, q)>], scale = 1.25e-01 : f32} score {
      ^bb0(%row: index, %column: index, %score: f32, %bias: f32):
        %t = arith.addf %score, %bias : f32
        attn.yield %t : f32
      } -> tensor<128x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<32x48xf32>
  return %r#1, %r#2, %r#3 : tensor<48xf32>, tensor<48xf32>, tensor<32x48xf32>
}
