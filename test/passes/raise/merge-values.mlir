// RUN: attn-opt %s -attn-merge-values -cse -canonicalize | FileCheck %s

#p = affine_map<(h, q, k, e) -> (h, q, k)>
#v = affine_map<(h, q, k, e) -> (h, k, e)>
#shared = affine_map<(h, q, k, e) -> (k, e)>
#out = affine_map<(h, q, k, e) -> (h, q, e)>
#turned = affine_map<(h, q, k, e) -> (q, h, e)>

// The second values have no heads, and the second result has another order of dimensions.
// CHECK-DAG: #[[P:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-LABEL: @two(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<4x?x?xf32>, %[[X:[a-z0-9]*]]: tensor<4x?x32xf32>, %[[Y:[a-z0-9]*]]: tensor<?x3xf32>
// CHECK: %[[SOFTMAX:.*]] = linalg.softmax
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[Y]] : tensor<?x3xf32>) outs(%{{.*}} : tensor<4x?x3xf32>)
// CHECK: %[[ALL:.*]] = tensor.concat dim(2) %[[X]], %[[WIDE]] : (tensor<4x?x32xf32>, tensor<4x?x3xf32>) -> tensor<4x?x35xf32>
// CHECK: %[[R:.*]] = linalg.contract indexing_maps = [#[[P]], #[[V]], #[[OUT]]] ins(%[[SOFTMAX]], %[[ALL]] :
// CHECK-DAG: %[[A:.*]] = tensor.extract_slice %[[R]][0, 0, 0] [4, %{{.*}}, 32] [1, 1, 1]
// CHECK-DAG: %[[B:.*]] = tensor.extract_slice %[[R]][0, 0, 32] [4, %{{.*}}, 3] [1, 1, 1]
// CHECK: %[[TURNED:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<4x?x3xf32>) outs(%{{.*}} : tensor<?x4x3xf32>)
// CHECK: return %[[A]], %[[TURNED]]
func.func @two(%s: tensor<4x?x?xf32>, %x: tensor<4x?x32xf32>, %y: tensor<?x3xf32>, %a: tensor<4x?x32xf32>, %b: tensor<?x4x3xf32>) -> (tensor<4x?x32xf32>, tensor<?x4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x?x?xf32>) outs(%s : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %a0 = linalg.fill ins(%zero : f32) outs(%a : tensor<4x?x32xf32>) -> tensor<4x?x32xf32>
  %b0 = linalg.fill ins(%zero : f32) outs(%b : tensor<?x4x3xf32>) -> tensor<?x4x3xf32>
  %first = linalg.contract indexing_maps = [#p, #v, #out] ins(%p, %x : tensor<4x?x?xf32>, tensor<4x?x32xf32>) outs(%a0 : tensor<4x?x32xf32>) -> tensor<4x?x32xf32>
  %second = linalg.contract indexing_maps = [#shared, #p, #turned] ins(%y, %p : tensor<?x3xf32>, tensor<4x?x?xf32>) outs(%b0 : tensor<?x4x3xf32>) -> tensor<?x4x3xf32>
  return %first, %second : tensor<4x?x32xf32>, tensor<?x4x3xf32>
}

// The second values depend on the first product.
// CHECK-LABEL: @chain(
// CHECK-COUNT-2: linalg.contract
// CHECK-NOT: linalg.contract
func.func @chain(%s: tensor<4x8x8xf32>, %x: tensor<4x8x32xf32>) -> tensor<4x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x8x8xf32>) outs(%s : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  %a0 = linalg.fill ins(%zero : f32) outs(%x : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
  %first = linalg.contract indexing_maps = [#p, #v, #out] ins(%p, %x : tensor<4x8x8xf32>, tensor<4x8x32xf32>) outs(%a0 : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
  %second = linalg.contract indexing_maps = [#p, #v, #out] ins(%p, %first : tensor<4x8x8xf32>, tensor<4x8x32xf32>) outs(%a0 : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
  return %second : tensor<4x8x32xf32>
}

// One of three values is a product of the same probabilities. The other two are merged.
// CHECK-LABEL: @rest(
// CHECK: %[[P:.*]] = linalg.softmax
// CHECK: %[[ALL:.*]] = tensor.concat dim(2)
// CHECK: linalg.contract {{.*}} ins(%[[P]], %[[ALL]] :
// CHECK: linalg.contract {{.*}} ins(%[[P]],
// CHECK-NOT: linalg.contract
// CHECK: return
func.func @rest(%s: tensor<4x32x32xf32>, %x: tensor<4x32x8xf32>, %y: tensor<4x32x8xf32>) -> (tensor<4x32x8xf32>, tensor<4x32x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x32x32xf32>) outs(%s : tensor<4x32x32xf32>) -> tensor<4x32x32xf32>
  %a0 = linalg.fill ins(%zero : f32) outs(%x : tensor<4x32x8xf32>) -> tensor<4x32x8xf32>
  %first = linalg.contract indexing_maps = [#p, #v, #out] ins(%p, %x : tensor<4x32x32xf32>, tensor<4x32x8xf32>) outs(%a0 : tensor<4x32x8xf32>) -> tensor<4x32x8xf32>
  %second = linalg.contract indexing_maps = [#p, #v, #out] ins(%p, %y : tensor<4x32x32xf32>, tensor<4x32x8xf32>) outs(%a0 : tensor<4x32x8xf32>) -> tensor<4x32x8xf32>
  %third = linalg.contract indexing_maps = [#p, #v, #out] ins(%p, %first : tensor<4x32x32xf32>, tensor<4x32x8xf32>) outs(%a0 : tensor<4x32x8xf32>) -> tensor<4x32x8xf32>
  return %second, %third : tensor<4x32x8xf32>, tensor<4x32x8xf32>
}

// Values that vary with the query, and a decoder's single query, are not merged.
// CHECK-LABEL: @apart(
// CHECK-NOT: tensor.concat
// CHECK: return
func.func @apart(%s: tensor<4x32x32xf32>, %x: tensor<4x32x8xf32>, %r: tensor<32x32x8xf32>, %one: tensor<4x1x32xf32>) -> (tensor<4x32x8xf32>, tensor<4x32x8xf32>, tensor<4x1x8xf32>, tensor<4x1x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x32x32xf32>) outs(%s : tensor<4x32x32xf32>) -> tensor<4x32x32xf32>
  %a0 = linalg.fill ins(%zero : f32) outs(%x : tensor<4x32x8xf32>) -> tensor<4x32x8xf32>
  %first = linalg.contract indexing_maps = [#p, #v, #out] ins(%p, %x : tensor<4x32x32xf32>, tensor<4x32x8xf32>) outs(%a0 : tensor<4x32x8xf32>) -> tensor<4x32x8xf32>
  %second = linalg.contract indexing_maps = [#p, affine_map<(h, q, k, e) -> (q, k, e)>, #out] ins(%p, %r : tensor<4x32x32xf32>, tensor<32x32x8xf32>) outs(%a0 : tensor<4x32x8xf32>) -> tensor<4x32x8xf32>
  %o = linalg.softmax dimension(2) ins(%one : tensor<4x1x32xf32>) outs(%one : tensor<4x1x32xf32>) -> tensor<4x1x32xf32>
  %e = tensor.empty() : tensor<4x1x8xf32>
  %b0 = linalg.fill ins(%zero : f32) outs(%e : tensor<4x1x8xf32>) -> tensor<4x1x8xf32>
  %third = linalg.contract indexing_maps = [#p, #v, #out] ins(%o, %x : tensor<4x1x32xf32>, tensor<4x32x8xf32>) outs(%b0 : tensor<4x1x8xf32>) -> tensor<4x1x8xf32>
  %y = linalg.exp ins(%x : tensor<4x32x8xf32>) outs(%x : tensor<4x32x8xf32>) -> tensor<4x32x8xf32>
  %fourth = linalg.contract indexing_maps = [#p, #v, #out] ins(%o, %y : tensor<4x1x32xf32>, tensor<4x32x8xf32>) outs(%b0 : tensor<4x1x8xf32>) -> tensor<4x1x8xf32>
  return %first, %second, %third, %fourth : tensor<4x32x8xf32>, tensor<4x32x8xf32>, tensor<4x1x8xf32>, tensor<4x1x8xf32>
}
