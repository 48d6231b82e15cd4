// RUN: attn-opt %s -attn-drop-dead-outputs | FileCheck %s

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#c = affine_map<(b, q, k, d, e) -> (k)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#w = affine_map<(b, q, k, d, e) -> (b, q, k)>

// CHECK: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>
// CHECK-LABEL: @dead_weights
// CHECK-SAME: %[[E:[^:]*]]: tensor<2x5x8xf32>,
// CHECK: %[[O:.*]] = attn.attention
// CHECK-SAME: captures(%{{.*}} : tensor<7xi1>) outs(%[[E]] : tensor<2x5x8xf32>) mask(#attn.dense<0>)
// CHECK-SAME: empty_row = #attn.empty_row<nan>
// CHECK-SAME: -> tensor<2x5x8xf32>
// CHECK: return %[[O]]
func.func @dead_weights(%q: tensor<2x5x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x8xf32>, %hide: tensor<7xi1>,
                        %e: tensor<2x5x8xf32>, %w: tensor<2x5x7xf32>) -> tensor<2x5x8xf32> {
  %o:2 = attn.attention ins(%q, %k, %v : tensor<2x5x4xf32>, tensor<2x7x4xf32>, tensor<2x7x8xf32>)
      captures(%hide : tensor<7xi1>) outs(%e, %w : tensor<2x5x8xf32>, tensor<2x5x7xf32>) mask(#attn.dense<0>) {
      indexing_maps = [#q, #k, #v, #c, #o, #w], scale = 5.000000e-01 : f32, empty_row = #attn.empty_row<nan>}
      -> tensor<2x5x8xf32>, tensor<2x5x7xf32>
  return %o#0 : tensor<2x5x8xf32>
}

// CHECK-LABEL: @weights_read
// CHECK: attn.attention {{.*}} -> tensor<2x5x8xf32>, tensor<2x5x7xf32>
func.func @weights_read(%q: tensor<2x5x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x8xf32>,
                        %e: tensor<2x5x8xf32>, %w: tensor<2x5x7xf32>) -> tensor<2x5x7xf32> {
  %o:2 = attn.attention ins(%q, %k, %v : tensor<2x5x4xf32>, tensor<2x7x4xf32>, tensor<2x7x8xf32>)
      outs(%e, %w : tensor<2x5x8xf32>, tensor<2x5x7xf32>) {
      indexing_maps = [#q, #k, #v, #o, #w], scale = 5.000000e-01 : f32} -> tensor<2x5x8xf32>, tensor<2x5x7xf32>
  return %o#1 : tensor<2x5x7xf32>
}
