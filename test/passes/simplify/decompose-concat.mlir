// RUN: attn-opt %s -attn-decompose-concat | FileCheck %s

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>

// An attention is computed where it belongs, an argument is copied there.
// CHECK-LABEL: @heads
// CHECK-SAME: %[[A:[^:]*]]: tensor<2x?x4xf32>, %[[B:[^:]*]]: tensor<2x?x4xf32>, %[[I:[^:]*]]: tensor<2x?x4xf32>
// CHECK: %[[P:.*]] = attn.attention
// CHECK: %[[COPY:.*]] = linalg.copy ins(%[[B]] :
// CHECK: %[[E:.*]] = tensor.empty(%{{.*}}) : tensor<2x?x8xf32>
// CHECK: %[[C:.*]] = tensor.insert_slice %[[P]] into %[[E]][0, 0, 0]
// CHECK: %[[D:.*]] = tensor.insert_slice %[[COPY]] into %[[C]][0, 0, 4]
// CHECK: return %[[D]]
func.func @heads(%a: tensor<2x?x4xf32>, %b: tensor<2x?x4xf32>, %init: tensor<2x?x4xf32>) -> tensor<2x?x8xf32> {
  %p = attn.attention ins(%a, %b, %b : tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>) outs(%init : tensor<2x?x4xf32>)
    {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x?x4xf32>
  %c = tensor.concat dim(2) %p, %b : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x8xf32>
  return %c : tensor<2x?x8xf32>
}
