// RUN: attn-opt %s -attn-pad-depth | FileCheck %s

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>

// CHECK-LABEL: @uniform(
// CHECK-SAME: %{{.*}}: tensor<2x?x0xf32>, %{{.*}}: tensor<8x0xf32>, %[[V:.*]]: tensor<2x8x16xf32>
// CHECK: %[[Q:.*]] = linalg.fill {{.*}} -> tensor<2x?x1xf32>
// CHECK: %[[K:.*]] = linalg.fill {{.*}} -> tensor<8x1xf32>
// CHECK: attn.attention ins(%[[Q]], %[[K]], %[[V]] : tensor<2x?x1xf32>, tensor<8x1xf32>, tensor<2x8x16xf32>)
func.func @uniform(%q: tensor<2x?x0xf32>, %k: tensor<8x0xf32>, %v: tensor<2x8x16xf32>, %e: tensor<2x?x16xf32>) -> tensor<2x?x16xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x?x0xf32>, tensor<8x0xf32>, tensor<2x8x16xf32>) outs(%e : tensor<2x?x16xf32>)
      mask(#attn.causal) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x?x16xf32>
  return %o : tensor<2x?x16xf32>
}

// CHECK-LABEL: @others(
// CHECK-NOT: linalg.fill
// CHECK: attn.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8x4xf32>, tensor<8x4xf32>
func.func @others(%q: tensor<2x8x4xf32>, %k: tensor<8x4xf32>, %v: tensor<2x8x16xf32>, %e: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x8x4xf32>, tensor<8x4xf32>, tensor<2x8x16xf32>) outs(%e : tensor<2x8x16xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x16xf32>
  return %o : tensor<2x8x16xf32>
}
