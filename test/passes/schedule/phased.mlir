// RUN: attn-opt %s -attn-phased -canonicalize | FileCheck %s

#x = affine_map<(b, s, h, j, c) -> (b, s, c)>
#w = affine_map<(b, s, h, j, c) -> (h, c, j)>
#y = affine_map<(b, s, h, j, c) -> (b, h, s, j)>
#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>
// Projections precede the tasks; a task computes the attention of 48 queries of one head.
// CHECK-LABEL: @attend(
// CHECK: %[[Q:.*]] = linalg.contract
// CHECK: %[[K:.*]] = linalg.contract
// CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 12, 480) step (1, 1, 48)
// CHECK-NOT: linalg.contract
// CHECK-DAG: tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 48, 64]
// CHECK-DAG: tensor.extract_slice %[[K]][%[[B]], %[[H]], 0, 0] [1, 1, 480, 64]
// CHECK: attn.attention {{.*}} at(%[[B]], %[[H]], %[[I]], %{{.*}}) plan(<phased, q = 48, k = 96>)
func.func @attend(%x: tensor<2x480x768xf32>, %wq: tensor<12x768x64xf32>, %wk: tensor<12x768x64xf32>, %e: tensor<2x12x480x64xf32>) -> tensor<2x12x480x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2x12x480x64xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2x12x480x64xf32>) -> tensor<2x12x480x64xf32>
  %q = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wq : tensor<2x480x768xf32>, tensor<12x768x64xf32>) outs(%i0 : tensor<2x12x480x64xf32>) -> tensor<2x12x480x64xf32>
  %e1 = tensor.empty() : tensor<2x12x480x64xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x12x480x64xf32>) -> tensor<2x12x480x64xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wk : tensor<2x480x768xf32>, tensor<12x768x64xf32>) outs(%i1 : tensor<2x12x480x64xf32>) -> tensor<2x12x480x64xf32>
  %o = attn.attention ins(%q, %k, %k : tensor<2x12x480x64xf32>, tensor<2x12x480x64xf32>, tensor<2x12x480x64xf32>) outs(%e : tensor<2x12x480x64xf32>)
      plan(<phased, q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<2x12x480x64xf32>
  return %o : tensor<2x12x480x64xf32>
}

// An attention with another schedule stays.
// CHECK-LABEL: @per_head(
// CHECK-NOT: scf.forall
func.func @per_head(%q: tensor<2x12x480x64xf32>, %e: tensor<2x12x480x64xf32>) -> tensor<2x12x480x64xf32> {
  %o = attn.attention ins(%q, %q, %q : tensor<2x12x480x64xf32>, tensor<2x12x480x64xf32>, tensor<2x12x480x64xf32>) outs(%e : tensor<2x12x480x64xf32>)
      plan(<"per-head", q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<2x12x480x64xf32>
  return %o : tensor<2x12x480x64xf32>
}
