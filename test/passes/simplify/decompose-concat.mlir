// RUN: attn-opt %s -attn-decompose-concat | FileCheck %s

// CHECK-LABEL: @heads
// CHECK-SAME: %[[A:.*]]: tensor<2x?x4xf32>, %[[B:.*]]: tensor<2x?x4xf32>)
// CHECK: %[[E:.*]] = tensor.empty(%{{.*}}) : tensor<2x?x8xf32>
// CHECK: %[[C:.*]] = tensor.insert_slice %[[A]] into %[[E]][0, 0, 0]
// CHECK: %[[D:.*]] = tensor.insert_slice %[[B]] into %[[C]][0, 0, 4]
// CHECK: return %[[D]]
func.func @heads(%a: tensor<2x?x4xf32>, %b: tensor<2x?x4xf32>) -> tensor<2x?x8xf32> {
  %c = tensor.concat dim(2) %a, %b : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x8xf32>
  return %c : tensor<2x?x8xf32>
}
