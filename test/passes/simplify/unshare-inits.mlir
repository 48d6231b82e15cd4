// RUN: attn-opt %s -attn-unshare-inits | FileCheck %s

#x = affine_map<(s, n, c) -> (s, c)>
#w = affine_map<(s, n, c) -> (n, c)>
#y = affine_map<(s, n, c) -> (s, n)>

// CHECK-LABEL: @two_products
// CHECK-DAG: %[[E0:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-DAG: %[[F0:.*]] = linalg.fill {{.*}} outs(%[[E0]]
// CHECK-DAG: %[[E1:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-DAG: %[[F1:.*]] = linalg.fill {{.*}} outs(%[[E1]]
// CHECK: linalg.contract {{.*}} outs(%[[F1]]
// CHECK: linalg.contract {{.*}} outs(%[[F0]]
func.func @two_products(%x: tensor<4x16xf32>, %wk: tensor<8x16xf32>, %wv: tensor<8x16xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wk : tensor<4x16xf32>, tensor<8x16xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wv : tensor<4x16xf32>, tensor<8x16xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %k, %v : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: @init_with_data
// CHECK-SAME: %[[R:[a-z0-9]*]]: tensor<4x8xf32>)
// CHECK: linalg.contract {{.*}} outs(%[[R]]
// CHECK: linalg.contract {{.*}} outs(%[[R]]
func.func @init_with_data(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>, %r: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%r : tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%r : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %k, %v : tensor<4x8xf32>, tensor<4x8xf32>
}
